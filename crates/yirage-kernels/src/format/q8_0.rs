//! Q8_0: f16 scale `d`, 32 signed codes; weight = d * code.

use super::codes::signed_byte;
use super::{BlockRun, RunDecoder, WeightGroup};
use yirage_kir::KernelWriter;

pub(super) const DECODER: RunDecoder = RunDecoder::whole(decode);

fn decode(w: &mut KernelWriter, at: &BlockRun<'_>) -> Vec<WeightGroup> {
    let mut bytes = at.bytes(w, 0, 34);
    let scale = bytes.f16(w, 0);
    let mut codes = Vec::with_capacity(32);
    for number in 0..8 {
        let word = bytes.word(w, 2 + 4 * number);
        codes.extend((0..4).map(|byte| signed_byte(w, word, byte)));
    }
    vec![WeightGroup { scale: Some(scale), minimum: None, codes }]
}
