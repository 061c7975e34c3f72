//! The collectives of a group as a kernel of a target: what compilers are told of them.

use yirage_ir::{DType, Format, Op};
use yirage_plan::rules::{OpRule, OperandConstraint, OperandKind};
use yirage_plan::{KernelFacts, KernelOrigin, KernelRef};

/// What all devices of a group of so many do together, under the name that plans of a backend have for it: every collective of
/// matrices of `f32`, `f16` and `bf16`.
pub fn collective_kernel(name: &str, ranks: u32) -> KernelFacts {
    let matrix = [DType::F32, DType::Stored(Format::F16), DType::Stored(Format::BF16)];
    let rule = |op: &&str| {
        OpRule::new(op, vec![vec![OperandConstraint::new(OperandKind::Arena, matrix)]]).when("ranks", ranks)
    };
    KernelFacts {
        kernel: KernelRef::new(name, "rendezvous", Vec::new()),
        origin: KernelOrigin::Library,
        regions: Vec::new(),
        rules: Op::COLLECTIVES.iter().map(rule).collect(),
    }
}
