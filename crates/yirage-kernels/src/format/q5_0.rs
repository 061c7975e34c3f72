//! Q5_0: f16 scale `d`, a word of fifth bits, 16 bytes of nibbles; weight = d * (code - 16).

use super::codes::{float_less, nibbles, with_fifth};
use super::{BlockRun, RunDecoder, WeightGroup};
use yirage_kir::{KernelWriter, Register};

pub(super) const DECODER: RunDecoder = RunDecoder::whole(decode);

fn decode(w: &mut KernelWriter, at: &BlockRun<'_>) -> Vec<WeightGroup> {
    let mut bytes = at.bytes(w, 0, 22);
    let (scale, fifths) = (bytes.f16(w, 0), bytes.word(w, 2));
    let words: Vec<Register> = (0..4).map(|number| bytes.word(w, 6 + 4 * number)).collect();
    let codes = nibbles(w, &words, |w, number, nibble| {
        let code = with_fifth(w, nibble, fifths, number);
        float_less(w, code, 16.0)
    });
    vec![WeightGroup { scale: Some(scale), minimum: None, codes }]
}
