//! The ways in which kernels take operands, as [`Site`](crate::bind::Site) binds them: what their rules are made of.

use crate::storage::{KV_LAYOUT, MATMUL_LAYOUT};
use yirage_ir::{ActivationFormat, DType, Format};
use yirage_plan::rules::{OperandConstraint, OperandKind};
use yirage_plan::{KvCacheLayout, WeightLayout};

fn of_kinds(kinds: &[OperandKind], dtype: DType) -> Vec<OperandConstraint> {
    kinds.iter().map(|&kind| OperandConstraint::new(kind, [dtype])).collect()
}

/// `Site::float_rows`, `Site::float_row`: floats, computed, in a step input, or of a weight held as plain rows, whatever its
/// format in the file.
pub(super) fn floats() -> Vec<OperandConstraint> {
    let mut ways = of_kinds(&[OperandKind::Arena, OperandKind::StepInput], DType::F32);
    ways.push(OperandConstraint::new(OperandKind::Weight(WeightLayout::ROWS), Format::ALL.iter().copied()));
    ways
}

/// `Site::array` of integers.
pub(super) fn integers() -> Vec<OperandConstraint> {
    of_kinds(&[OperandKind::Arena, OperandKind::StepInput], DType::I32)
}

/// `Site::slot`: integers that the host gives, which decide how a step is cut.
pub(super) fn host_integers() -> Vec<OperandConstraint> {
    of_kinds(&[OperandKind::StepInput], DType::I32)
}

/// `Site::packed`.
pub(super) fn packed() -> Vec<OperandConstraint> {
    vec![OperandConstraint::new(OperandKind::Weight(MATMUL_LAYOUT), Format::ALL.iter().copied())]
}

/// `Site::table`.
pub(super) fn table() -> Vec<OperandConstraint> {
    [floats(), packed()].concat()
}

/// `Site::quantized`.
pub(super) fn quantized() -> Vec<OperandConstraint> {
    vec![OperandConstraint::quantized(ActivationFormat::Q8A)]
}

/// `Site::cache`.
pub(super) fn cache() -> Vec<OperandConstraint> {
    vec![OperandConstraint::new(
        OperandKind::KvCache(KV_LAYOUT),
        [Format::F32, Format::F16, Format::BF16, Format::Q8_0],
    )]
}

/// `Site::states`.
pub(super) fn states() -> Vec<OperandConstraint> {
    vec![OperandConstraint::new(OperandKind::KvCache(KvCacheLayout::STATES), [Format::F32])]
}

/// `Site::array` of any words.
pub(super) fn words() -> Vec<OperandConstraint> {
    let words = [DType::F32, DType::I32, DType::U32];
    [OperandKind::Arena, OperandKind::StepInput].map(|kind| OperandConstraint::new(kind, words)).into()
}

/// A weight of floats whose elements lie as they are in the file.
fn elements_of_weight() -> OperandConstraint {
    OperandConstraint::new(OperandKind::Weight(WeightLayout::ELEMENTS), [Format::F16, Format::BF16])
}

/// `Whole::read`: plain elements of any type that general kernels compute with.
pub(super) fn elements() -> Vec<OperandConstraint> {
    let floats = [Format::F32, Format::F16, Format::BF16];
    let elements = || floats.map(DType::from).into_iter().chain([DType::I32, DType::U32, DType::Bool]);
    vec![
        OperandConstraint::new(OperandKind::Arena, elements()),
        OperandConstraint::new(OperandKind::StepInput, elements()).with_strides(),
        OperandConstraint::new(OperandKind::Weight(WeightLayout::ROWS), floats),
        elements_of_weight(),
    ]
}

/// `Whole::all` of elements that are moved as they lie: a weight of 16 bits in rows is held as f32, so it is none.
pub(super) fn moved() -> Vec<OperandConstraint> {
    let mut ways = elements();
    ways.truncate(2);
    ways.extend([OperandConstraint::new(OperandKind::Weight(WeightLayout::ROWS), [Format::F32]), elements_of_weight()]);
    ways
}
