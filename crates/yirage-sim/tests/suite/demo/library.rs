//! The library: what the compiler is told of the kernels, and what a step of a plan launches.

use yirage_hal::HalError;
use yirage_hal::driver::{Binding, BindingAccess, KernelCall, KernelLaunch, Library, OperandBindings, ValueSlices};
use yirage_ir::{DType, Dim, NodeKind, Op, Sym, Type};
use yirage_plan::rules::{OpRule, OperandConstraint, OperandKind};
use yirage_plan::{
    DeviceLimits, ExecutorKind, ExpertDivision, KernelCapabilities, KernelFacts, KernelOrigin, KernelRef,
    KvCacheLayoutFacts, Plan, Target, WeightLayout, WeightLayoutFacts, WeightRole,
};

/// The ops that there are kernels for.
pub(crate) const OPS: [&str; 3] = ["embed", "softmax", "rms_norm"];

pub(crate) struct DemoLibrary;

impl Library for DemoLibrary {
    fn target(&self) -> Target {
        let any = [OperandKind::Arena, OperandKind::StepInput, OperandKind::Weight(WeightLayout::ROWS)];
        let of = |dtype: DType| any.map(|kind| OperandConstraint::new(kind, [dtype])).to_vec();
        let (floats, ids) = (of(DType::F32), of(DType::I32));
        let rules = vec![
            OpRule::new("embed", vec![floats.clone(), ids]),
            OpRule::new("softmax", vec![floats.clone()]),
            OpRule::new("rms_norm", vec![floats.clone(), floats]),
        ];
        Target {
            family: "demo".into(),
            arch: "host".into(),
            capabilities: KernelCapabilities::LEAST,
            workers: 1,
            ranks: 1,
            experts: ExpertDivision::default(),
            weight_layouts: vec![WeightLayoutFacts::rows(&[WeightRole::Matmul, WeightRole::Factor, WeightRole::Plain])],
            kv_cache_layouts: vec![KvCacheLayoutFacts::rows(&[32])],
            activation_formats: Vec::new(),
            activation_dtype: DType::F32,
            limits: DeviceLimits::aligned(64),
            executors: vec![ExecutorKind::Steps],
            kernels: vec![KernelFacts {
                kernel: KernelRef::new("demo/rows@1", "host", Vec::new()),
                origin: KernelOrigin::Library,
                regions: Vec::new(),
                rules,
            }],
        }
    }

    fn code(&self, _: &Plan) -> Result<Vec<u8>, HalError> {
        Ok(Vec::new())
    }

    /// One launch, bound to the sizes of the step and to the node's operands.
    fn calls(&self, plan: &Plan, step: usize, values: &dyn ValueSlices) -> Result<Vec<KernelCall>, HalError> {
        let node = &plan.graph.nodes[plan.steps[step].node as usize];
        let mut bindings = vec![Binding { slice: values.sizes(), access: BindingAccess::Read }];
        bindings.extend(OperandBindings::of(&plan.graph, node, values)?.bindings);
        let out = plan.graph.ty(node.outs[0]);
        let mut words = rows(out)?.to_vec();
        words.push(out.width().unwrap_or(1) as u32);
        match &node.kind {
            NodeKind::Op(Op::Softmax(_)) => {}
            NodeKind::Op(Op::RmsNorm(op)) => words.extend([op.width, op.eps.0.to_bits(), op.unit_offset.into()]),
            NodeKind::Op(Op::Embed(op)) => {
                let vocabulary = plan.graph.ty(node.ins[0]).shape[0].as_const().unwrap_or(0) as u32;
                words.extend([op.scale.0.to_bits(), vocabulary]);
            }
            _ => return Err(HalError::Load(format!("there is no kernel for {}", node.name()))),
        }
        let arguments = words.into_iter().flat_map(u32::to_le_bytes).collect();
        Ok(vec![KernelCall::Launch(KernelLaunch::new(node.name(), bindings, arguments))])
    }
}

/// The rows of an output, for any sizes of a step: a number of them for each of a size, and which size that is.
fn rows(out: &Type) -> Result<[u32; 2], HalError> {
    let (mut fixed, mut size) = (1, Sym::ALL.len() as u32);
    for dim in &out.shape[..out.shape.len().saturating_sub(1)] {
        match dim {
            Dim::Const(n) => fixed *= n,
            Dim::Sym(sym) if size as usize == Sym::ALL.len() => {
                size = Sym::ALL.iter().position(|known| known == sym).unwrap_or_default() as u32;
            }
            Dim::Sym(_) => return Err(HalError::Load(format!("rows of two sizes: {out}"))),
        }
    }
    Ok([fixed, size])
}
