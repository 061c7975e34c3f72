//! What each kernel may be given, op by op and input by input.

use yirage_ir::{DType, Format};
use yirage_plan::rules::{OpRule, OperandKind, Reading, Way, WeightLayout};

/// Floats by row, from the arena or a slot.
fn floats() -> Vec<Way> {
    [OperandKind::Arena, OperandKind::Slot].map(|kind| Way::new(kind, [DType::F32]).read(Reading::ByRow)).into()
}

/// Integers, from the arena or a slot.
fn integers() -> Vec<Way> {
    [OperandKind::Arena, OperandKind::Slot].map(|kind| Way::new(kind, [DType::I32]).read(Reading::ByRow)).into()
}

/// Integers that the host gives: they decide how a step is cut.
fn host_integers() -> Vec<Way> {
    vec![Way::new(OperandKind::Slot, [DType::I32])]
}

/// A weight held as plain floats, whatever its format in the file.
fn plain() -> Vec<Way> {
    vec![Way::new(OperandKind::Weight(WeightLayout::Rows), stored())]
}

/// A weight held as it is repacked for products.
fn packed() -> Vec<Way> {
    vec![Way::new(OperandKind::Weight(WeightLayout::Product), stored())]
}

/// Quantised activations.
fn quantised() -> Vec<Way> {
    vec![Way::new(OperandKind::Arena, [DType::Q8A]).read(Reading::ByRow)]
}

/// A cache state.
fn state() -> Vec<Way> {
    vec![Way::new(OperandKind::State, [Format::F32, Format::F16, Format::BF16, Format::Q8_0])]
}

fn stored() -> impl Iterator<Item = DType> {
    Format::ALL.iter().map(|&f| f.into())
}

fn either(mut ways: Vec<Way>, more: Vec<Way>) -> Vec<Way> {
    ways.extend(more);
    ways
}

/// Row-wise ops.
pub(super) fn rows() -> Vec<OpRule> {
    let table = || either(vec![Way::new(OperandKind::Slot, [DType::F32])], plain());
    vec![
        OpRule::new("embed", vec![either(plain(), packed()), integers()]),
        OpRule::new("quantize", vec![floats()]),
        OpRule::new("rms_norm", vec![floats(), plain()]),
        OpRule::new("layer_norm", vec![floats(), plain()]),
        OpRule::new("softmax", vec![floats()]),
        OpRule::new("unary", vec![floats()]),
        OpRule::new("binary", vec![floats(), either(floats(), whole(plain()))]),
        OpRule::new("glu", vec![floats()]),
        OpRule::new("concat", vec![floats()]),
        OpRule::new("matmul", vec![floats()]),
        OpRule::new("top_k", vec![floats()]),
        OpRule::new("rope", vec![floats(), table(), table(), integers()]).when("per_row", false),
        OpRule::new("rope", vec![floats(), table()]).when("per_row", true),
        OpRule::new("hadamard", vec![floats()]),
        OpRule::new("kv_append", vec![state(), floats(), integers()]),
        OpRule::new("kv_append", vec![state(), floats(), floats(), integers()]),
        OpRule::new("route", vec![floats(), plain()]),
        OpRule::new("expert_bias", vec![floats(), plain(), integers()]),
        OpRule::new("expert_sum", vec![floats()]),
    ]
}

fn whole(ways: Vec<Way>) -> Vec<Way> {
    ways.into_iter().map(|way| way.read(Reading::Whole)).collect()
}

/// Products with one weight. Of groups each reads its own part of a row, which quantised rows do not have apart.
pub(super) fn products() -> Vec<OpRule> {
    vec![
        OpRule::new("linear", vec![floats(), packed()]),
        OpRule::new("linear", vec![quantised(), packed()]).when("groups", 1),
    ]
}

/// Products with chosen experts.
pub(super) fn experts() -> Vec<OpRule> {
    vec![OpRule::new("expert_linear", vec![either(floats(), quantised()), packed(), integers()])]
}

/// Attention over a cache, or over the step's own keys and values; sinks are a weight.
pub(super) fn attention() -> Vec<OpRule> {
    let given = |keys: [Vec<Way>; 2], host: usize| {
        let [first, second] = keys;
        let ways = [floats(), first, second].into_iter().chain((3..3 + host).map(|_| host_integers()));
        ways.chain([plain()]).collect()
    };
    vec![
        OpRule::new("attention", given([state(), host_integers()], 2)).when("cached", true),
        OpRule::new("attention", given([floats(), floats()], 2)).when("cached", false),
    ]
}

/// Chosen rows.
pub(super) fn gather() -> Vec<OpRule> {
    vec![OpRule::new("gather", vec![floats(), integers()])]
}

/// Sampling: every input by the words of its rows.
pub(super) fn sample() -> Vec<OpRule> {
    let words = [DType::F32, DType::I32, DType::U32];
    let ways = [OperandKind::Arena, OperandKind::Slot].map(|kind| Way::new(kind, words)).into();
    vec![OpRule::new("sample", vec![ways])]
}
