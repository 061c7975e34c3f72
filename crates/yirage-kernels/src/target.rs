//! What the compiler is told of a device that runs these kernels.

use crate::native::{NativeAttention, NativeProducts};
use crate::op;
use yirage_ir::op::{Attention, Linear, OpDef};
use yirage_ir::{DType, Format, RegionKind};
use yirage_plan::rules::{OpRule, OperandConstraint, OperandKind};
use yirage_plan::{
    DeviceLimits, ExecutorKind, ExpertDivision, KernelCapabilities, KernelFacts, KernelOrigin, KernelRef,
    KvCacheLayout, KvCacheLayoutFacts, NumberTest, Predicate, Quantity, Target, WeightLayout, WeightLayoutFacts,
    WeightRole,
};

/// The name that plans have for the kernels.
pub(crate) const KERNELS: &str = "kir/kernels@1";

/// The name for regions of products with weights, where a target has kernels of a vendor's language for some of them.
const REGIONS: &str = "kir/matmul_group@1";

/// The target of a device of this family and architecture, within these limits.
pub fn target(family: &str, arch: &str, limits: DeviceLimits) -> Target {
    let kernels = KernelFacts {
        kernel: KernelRef::new(KERNELS, "portable", Vec::new()),
        origin: KernelOrigin::Generated,
        regions: RegionKind::ALL.to_vec(),
        rules: op::rules(),
    };
    Target {
        family: family.into(),
        arch: arch.into(),
        capabilities: KernelCapabilities { flash_attention: true, paged_attention: true, ..KernelCapabilities::LEAST },
        workers: 1,
        ranks: 1,
        experts: ExpertDivision::default(),
        weight_layouts: vec![WeightLayoutFacts::rows(&[WeightRole::Matmul, WeightRole::Factor, WeightRole::Plain])],
        kv_cache_layouts: vec![KvCacheLayoutFacts::rows(&[32, 16, 64])],
        activation_formats: Vec::new(),
        activation_dtype: DType::F32,
        // The right side of a product is read where it lies, where a block has no room for it.
        limits: DeviceLimits { right_side_piece: Some(0), ..limits },
        executors: vec![ExecutorKind::Steps],
        kernels: vec![kernels],
    }
}

/// The same target, which has a vendor's own kernels of products with weights too: they run single ones and whole regions of
/// products that are all as they want them.
pub(crate) fn with_products(mut target: Target, products: &dyn NativeProducts) -> Target {
    let Some(mut kernels) = target.kernels.pop() else { return target };
    let linear = OpRule::new(Linear::NAME, vec![native_inputs(), native_weights(products.formats())]);
    let linear = products.wants().into_iter().fold(linear.when("groups", 1), OpRule::wanting);
    let native = |name: &str, regions: Vec<RegionKind>, rules: Vec<OpRule>| KernelFacts {
        kernel: KernelRef::new(name, products.variant(), Vec::new()),
        origin: KernelOrigin::Template,
        regions,
        rules,
    };
    // What follows products in a region is run by kernels from here.
    let behind = ["map", "view"].into_iter().flat_map(|op| kernels.rules.iter().filter(move |rule| rule.op == op));
    let of_regions = std::iter::once(linear.clone()).chain(behind.cloned()).collect();
    let kernel = KernelRef { name: REGIONS.into(), ..kernels.kernel.clone() };
    let regions = KernelFacts { kernel, regions: vec![RegionKind::MatmulGroup], ..kernels.clone() };
    kernels.regions.retain(|&kind| kind != RegionKind::MatmulGroup);
    target.kernels.extend([
        native(products.name(), Vec::new(), vec![linear]),
        kernels,
        native(products.name_of_regions(), vec![RegionKind::MatmulGroup], of_regions),
        regions,
    ]);
    target
}

/// The same target, which has a vendor's own kernels of attention over a cache too.
pub(crate) fn with_attention(mut target: Target, attention: &dyn NativeAttention) -> Target {
    let cache =
        vec![OperandConstraint::new(OperandKind::KvCache(KvCacheLayout::ROWS), attention.formats().iter().copied())];
    let given = || vec![OperandConstraint::new(OperandKind::StepInput, [DType::I32])];
    let sinks = [native_inputs(), native_weights(&[Format::F32])].concat();
    let rule = OpRule::new(Attention::NAME, vec![native_inputs(), cache, given(), given(), given(), sinks]);
    let positions = Quantity::Size { input: 1, from_last: 2 };
    let positions = Predicate::Number(positions, NumberTest::OneOf(attention.block_positions().to_vec()));
    let rule = rule.when("cached", true).wanting(Predicate::Outputs(vec![DType::F32])).wanting(positions);
    let own = KernelFacts {
        kernel: KernelRef::new(attention.name(), attention.variant(), Vec::new()),
        origin: KernelOrigin::Template,
        regions: Vec::new(),
        rules: vec![attention.wants().into_iter().fold(rule, OpRule::wanting)],
    };
    // The first that takes a node runs it.
    target.kernels.insert(0, own);
    target
}

fn native_inputs() -> Vec<OperandConstraint> {
    [OperandKind::Arena, OperandKind::StepInput].map(|kind| OperandConstraint::new(kind, [DType::F32])).into()
}

fn native_weights(formats: &[Format]) -> Vec<OperandConstraint> {
    vec![OperandConstraint::new(OperandKind::Weight(WeightLayout::ROWS), formats.iter().copied())]
}
