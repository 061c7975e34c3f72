//! Q4_1: f16 scale `d`, f16 minimum `m`, 16 bytes of nibbles; weight = d * nibble + m.

use super::codes::{float, nibbles};
use super::{BlockRun, RunDecoder, WeightGroup};
use yirage_kir::{KernelWriter, Register, UnaryFunction};

pub(super) const DECODER: RunDecoder = RunDecoder::whole(decode);

fn decode(w: &mut KernelWriter, at: &BlockRun<'_>) -> Vec<WeightGroup> {
    let mut bytes = at.bytes(w, 0, 20);
    let (scale, least) = (bytes.f16(w, 0), bytes.f16(w, 2));
    let minimum = w.unary(UnaryFunction::Neg, least);
    let words: Vec<Register> = (0..4).map(|number| bytes.word(w, 4 + 4 * number)).collect();
    let codes = nibbles(w, &words, |w, _, nibble| float(w, nibble));
    vec![WeightGroup { scale: Some(scale), minimum: Some(minimum), codes }]
}
