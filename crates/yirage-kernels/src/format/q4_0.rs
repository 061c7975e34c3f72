//! Q4_0: f16 scale `d`, 16 bytes of nibbles; weight = d * (nibble - 8).

use super::codes::{float_less, nibbles};
use super::{BlockRun, RunDecoder, WeightGroup};
use yirage_kir::{KernelWriter, Register};

pub(super) const DECODER: RunDecoder = RunDecoder::whole(decode);

fn decode(w: &mut KernelWriter, at: &BlockRun<'_>) -> Vec<WeightGroup> {
    let mut bytes = at.bytes(w, 0, 18);
    let scale = bytes.f16(w, 0);
    let words: Vec<Register> = (0..4).map(|number| bytes.word(w, 2 + 4 * number)).collect();
    let codes = nibbles(w, &words, |w, _, nibble| float_less(w, nibble, 8.0));
    vec![WeightGroup { scale: Some(scale), minimum: None, codes }]
}
