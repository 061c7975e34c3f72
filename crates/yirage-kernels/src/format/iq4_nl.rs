//! IQ4_NL: f16 scale `d`, 16 bytes of nibbles that choose one of 16 values; weight = d * TABLE[nibble].

use super::codes::{bits, float_less, nibbles};
use super::{BlockRun, RunDecoder, WeightGroup};
use yirage_ir::quant::iq4_nl::TABLE;
use yirage_kir::{KernelWriter, Register};

pub(super) const DECODER: RunDecoder = RunDecoder::whole(decode);

/// The values in four words, each 127 more than it is.
const RAISED: [u32; 4] = {
    let mut words = [0; 4];
    let mut at = 0;
    while at < 16 {
        words[at / 4] |= ((TABLE[at] as i32 + 127) as u32) << (8 * (at % 4));
        at += 1;
    }
    words
};

fn decode(w: &mut KernelWriter, at: &BlockRun<'_>) -> Vec<WeightGroup> {
    let mut bytes = at.bytes(w, 0, 18);
    let scale = bytes.f16(w, 0);
    let words: Vec<Register> = (0..4).map(|number| bytes.word(w, 2 + 4 * number)).collect();
    let codes = nibbles(w, &words, |w, _, nibble| value(w, nibble));
    vec![WeightGroup { scale: Some(scale), minimum: None, codes }]
}

fn value(w: &mut KernelWriter, nibble: Register) -> Register {
    let (four, eight, twelve) = (w.u32(4), w.u32(8), w.u32(12));
    let words = RAISED.map(|word| w.u32(word));
    let (below_4, below_8, below_12) = (w.less(nibble, four), w.less(nibble, eight), w.less(nibble, twelve));
    let (low, high) = (w.select(below_4, words[0], words[1]), w.select(below_12, words[2], words[3]));
    let word = w.select(below_8, low, high);
    let (byte, bits_of_byte) = (bits(w, nibble, 0, 2), w.u32(8));
    let shift = w.mul(byte, bits_of_byte);
    let moved = w.shr(word, shift);
    let raised = bits(w, moved, 0, 8);
    float_less(w, raised, 127.0)
}
