//! Q5_1: f16 scale `d`, f16 minimum `m`, a word of fifth bits, 16 bytes of nibbles; weight = d * code + m.

use super::codes::{float, nibbles, with_fifth};
use super::{BlockRun, RunDecoder, WeightGroup};
use yirage_kir::{KernelWriter, Register, UnaryFunction};

pub(super) const DECODER: RunDecoder = RunDecoder::whole(decode);

fn decode(w: &mut KernelWriter, at: &BlockRun<'_>) -> Vec<WeightGroup> {
    let mut bytes = at.bytes(w, 0, 24);
    let (scale, least, fifths) = (bytes.f16(w, 0), bytes.f16(w, 2), bytes.word(w, 4));
    let minimum = w.unary(UnaryFunction::Neg, least);
    let words: Vec<Register> = (0..4).map(|number| bytes.word(w, 8 + 4 * number)).collect();
    let codes = nibbles(w, &words, |w, number, nibble| {
        let code = with_fifth(w, nibble, fifths, number);
        float(w, code)
    });
    vec![WeightGroup { scale: Some(scale), minimum: Some(minimum), codes }]
}
