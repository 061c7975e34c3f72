//! Q3_K: 32 bytes of high bits (byte l: bit j is that of weight 32j + l), 64 bytes of 2-bit codes as Q2_K, 12 bytes of 6-bit
//! scales (minus 32), f16 `d`; weight = d * (scale - 32) * (code - 4 if the high bit is clear). Runs as Q2_K's.

use super::codes::{bits, float_less};
use super::q2_k::first;
use super::{BlockRun, RunDecoder, WeightGroup};
use yirage_kir::{KernelWriter, Register};

pub(super) const DECODER: RunDecoder = RunDecoder { runs: 4, offsets: &[0, 32, 64, 96], first, decode };

fn decode(w: &mut KernelWriter, at: &BlockRun<'_>) -> Vec<WeightGroup> {
    let (sixteen, one, two, thirty_two) = (w.u32(16), w.u32(1), w.u32(2), w.u32(32));
    let before = w.mul(at.run, sixteen);
    let codes_at = w.add(before, thirty_two);
    let mut bytes = at.bytes_at(w, codes_at, 16);
    let words: Vec<Register> = (0..4).map(|number| bytes.word(w, 4 * number)).collect();
    // High bits: the half chooses the nibble, the part which bytes.
    let (half, part) = (w.shr(at.run, one), w.and(at.run, one));
    let (nibble, high_at) = (w.shl(half, two), w.mul(part, sixteen));
    let mut bytes = at.bytes_at(w, high_at, 16);
    let highs: Vec<Register> = (0..4)
        .map(|number| {
            let word = bytes.word(w, 4 * number);
            w.shr(word, nibble)
        })
        .collect();
    let mut bytes = at.bytes(w, 96, 14);
    let scale_words = [bytes.word(w, 0), bytes.word(w, 4), bytes.word(w, 8)];
    let d = bytes.f16(w, 12);
    (0..4)
        .map(|group| {
            let scale = scale(w, scale_words, (half, part), group);
            let code = |number: u32| {
                let (word, byte) = (number as usize / 4, 8 * (number % 4));
                let low = bits(w, words[word], byte + 2 * group, 2);
                let high = bits(w, highs[word], byte + group, 1);
                let high = w.shl(high, two);
                let code = w.or(low, high);
                float_less(w, code, 4.0)
            };
            let codes = (0..16).map(code).collect();
            WeightGroup { scale: Some(w.mul(d, scale)), minimum: None, codes }
        })
        .collect()
}

/// The scale of sub-block `j = 8 half + part + 2 group`: its low nibble in byte `j % 8`, that of the second half above that
/// of the first, its high bits in byte `8 + j % 4`, from bit `j / 4 * 2` on.
fn scale(w: &mut KernelWriter, words: [Register; 3], (half, part): (Register, Register), group: u32) -> Register {
    let (two, three, four) = (w.u32(2), w.u32(3), w.u32(4));
    let (half_bits, part_bits) = (w.shl(half, two), w.shl(part, three));
    let low_shift = w.add(half_bits, part_bits);
    let low = w.shr(words[group as usize / 2], low_shift);
    let low = bits(w, low, 16 * (group % 2), 4);
    let high = w.shr(words[2], low_shift);
    let high = bits(w, high, 16 * (group % 2) + 2 * (group / 2), 2);
    let high = w.shl(high, four);
    let scale = w.or(low, high);
    float_less(w, scale, 32.0)
}
