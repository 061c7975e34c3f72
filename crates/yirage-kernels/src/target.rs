//! What the compiler is told of a device that runs these kernels.

use crate::op;
use yirage_ir::{DType, RegionKind};
use yirage_plan::{
    DeviceLimits, ExecutorKind, KernelCapabilities, KernelFacts, KernelOrigin, Target, WeightLayoutFacts, WeightRole,
};

/// The name that plans have for the kernels.
pub(crate) const KERNELS: &str = "kir/kernels@1";

/// The target of a device of this family and architecture, within these limits.
pub fn target(family: &str, arch: &str, limits: DeviceLimits) -> Target {
    let kernels = KernelFacts {
        name: KERNELS.into(),
        variant: "portable".into(),
        origin: KernelOrigin::Generated,
        regions: RegionKind::ALL.to_vec(),
        rules: op::rules(),
        stages: Vec::new(),
        scratch: false,
    };
    Target {
        family: family.into(),
        arch: arch.into(),
        capabilities: KernelCapabilities { flash_attention: true, paged_attention: true, ..KernelCapabilities::LEAST },
        workers: 1,
        ranks: 1,
        weight_layouts: vec![WeightLayoutFacts::rows(&[WeightRole::Matmul, WeightRole::Factor, WeightRole::Plain])],
        activation_formats: Vec::new(),
        activation_dtype: DType::F32,
        // The right side of a product is read where it lies, where a block has no room for it.
        limits: DeviceLimits { right_side_piece: Some(0), ..limits },
        executors: vec![ExecutorKind::Steps],
        kernels: vec![kernels],
    }
}
