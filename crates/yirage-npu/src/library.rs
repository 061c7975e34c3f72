//! What the compiler is told: ops that operators compute, and all others as evaluated on the host, under a name of its own.

use crate::limits::ALIGN;
use crate::lowering::{FUNCTIONS, OPS};
use crate::maker::NpuMaker;
use crate::node_operation::{NodeOperation, NodeTable};
use std::sync::Arc;
use yirage_hal::HalError;
use yirage_hal::driver::{Binding, BindingAccess, KernelCall, Library, LibraryOperation, OperandBindings, ValueSlices};
use yirage_ir::op::Linear;
use yirage_ir::op::OpDef;
use yirage_ir::{DType, Format, Op};
use yirage_plan::rules::{OpRule, OperandConstraint, OperandKind};
use yirage_plan::{
    DeviceLimits, ExecutorKind, ExpertDivision, KernelCapabilities, KernelFacts, KernelOrigin, KernelRef,
    KvCacheLayout, KvCacheLayoutFacts, Plan, Predicate, Target, WeightLayout, WeightLayoutFacts, WeightRole,
};

/// The library of a chip.
pub(crate) struct OperatorLibrary {
    pub(crate) maker: &'static NpuMaker,
    pub(crate) chip: String,
    pub(crate) capabilities: KernelCapabilities,
    /// Floats that operators compute with.
    pub(crate) floats: Vec<DType>,
    pub(crate) nodes: Arc<NodeTable>,
}

impl OperatorLibrary {
    /// The type of a model's activations in `fast`: bf16, f16 before there was bf16, and f32 where neither is computed with.
    fn activations(&self) -> DType {
        let narrow = [(self.capabilities.bf16, Format::BF16), (self.capabilities.fp16, Format::F16)];
        let mut computed = narrow.into_iter().filter(|&(has, _)| has).map(|(_, format)| DType::Stored(format));
        computed.find(|dtype| self.floats.contains(dtype)).unwrap_or(DType::F32)
    }
}

/// Ops that the host evaluates whatever their operands are.
pub(crate) fn ops_of_host() -> Vec<&'static str> {
    Op::NAMES.iter().copied().filter(|op| !OPS.contains(op) && !Op::COLLECTIVES.contains(op)).collect()
}

fn facts(name: &str, variant: &str, origin: KernelOrigin, rules: Vec<OpRule>) -> KernelFacts {
    KernelFacts { kernel: KernelRef::new(name, variant, Vec::new()), origin, regions: Vec::new(), rules }
}

/// Values of these types from wherever they may come but the cache.
fn anywhere(dtypes: &[DType]) -> Vec<OperandConstraint> {
    let kinds = [OperandKind::Arena, OperandKind::StepInput, OperandKind::Weight(WeightLayout::ROWS)];
    kinds.into_iter().map(|kind| OperandConstraint::new(kind, dtypes.iter().copied())).collect()
}

fn operator_rule(op: &str, floats: &[DType]) -> OpRule {
    let computed = floats;
    let (floats, numbers) = (|| anywhere(computed), || anywhere(&[DType::I32]));
    let moved = || anywhere(&[computed, &[DType::I32, DType::U32, DType::Bool]].concat());
    let cache = || vec![OperandConstraint::new(OperandKind::KvCache(KvCacheLayout::ROWS), computed.iter().copied())];
    match op {
        "map" => OpRule::new(op, vec![floats()])
            .wanting(Predicate::Functions(FUNCTIONS.to_vec()))
            .wanting(Predicate::Outputs(computed.to_vec())),
        "view" | "concat" => OpRule::new(op, vec![moved()]),
        "kv_append" => OpRule::new(op, vec![cache(), [floats(), numbers()].concat()]),
        "embed" => OpRule::new(op, vec![floats(), numbers()]),
        "rope" => OpRule::new(op, vec![floats(), floats(), floats(), numbers()]),
        Linear::NAME => OpRule::new(op, vec![floats()]).when("groups", 1),
        _ => OpRule::new(op, vec![floats()]),
    }
}

fn host_rule(op: &str) -> OpRule {
    let rule = OpRule::new(op, vec![OperandConstraint::any(&[WeightLayout::ROWS], &[KvCacheLayout::ROWS])]);
    if Op::COLLECTIVES.contains(&op) { rule.when("ranks", 1) } else { rule }
}

impl Library for OperatorLibrary {
    fn target(&self) -> Target {
        let operators = OPS.iter().map(|op| operator_rule(op, &self.floats)).collect();
        let host = Op::NAMES.iter().map(|op| host_rule(op)).collect();
        Target {
            family: self.maker.family.name.into(),
            arch: self.chip.clone(),
            capabilities: self.capabilities,
            workers: 1,
            ranks: 1,
            experts: ExpertDivision::default(),
            weight_layouts: vec![WeightLayoutFacts::rows(&[WeightRole::Matmul, WeightRole::Factor, WeightRole::Plain])],
            kv_cache_layouts: vec![KvCacheLayoutFacts::rows(&[32, 16, 64])],
            activation_formats: Vec::new(),
            activation_dtype: self.activations(),
            limits: DeviceLimits::aligned(ALIGN),
            executors: vec![ExecutorKind::Steps],
            kernels: vec![
                facts(self.maker.operators, self.maker.variant, KernelOrigin::Library, operators),
                facts(self.maker.host, "host", KernelOrigin::Reference, host),
            ],
        }
    }

    /// Operators are the vendor's: there is no code of ours.
    fn code(&self, _: &Plan) -> Result<Vec<u8>, HalError> {
        Ok(Vec::new())
    }

    fn calls(&self, plan: &Plan, step: usize, values: &dyn ValueSlices) -> Result<Vec<KernelCall>, HalError> {
        let step = &plan.steps[step];
        let node = &plan.graph.nodes[step.node as usize];
        let bound = OperandBindings::of(&plan.graph, node, values)?;
        let operation = NodeOperation {
            largest: plan.bucket,
            on_host: plan.kernels[step.kernel as usize].name == self.maker.host,
            ..NodeOperation::of(&plan.graph, node, &bound, values)?
        };
        let mut bindings = vec![Binding { slice: values.sizes(), access: BindingAccess::Read }];
        bindings.extend(bound.bindings);
        let descriptor = self.nodes.describe(operation);
        Ok(vec![KernelCall::Operation(LibraryOperation { descriptor, bindings })])
    }
}
