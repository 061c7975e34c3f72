//! Q5_K: as Q4_K, with 32 bytes of fifth bits before the nibbles (byte l: bit j is that of weight 32j + l).

use super::codes::bits;
use super::q4_k::{first, groups, words};
use super::{BlockRun, RunDecoder, WeightGroup};
use yirage_kir::{KernelWriter, Register};

pub(super) const DECODER: RunDecoder = RunDecoder { runs: 4, offsets: &[0, 32], first, decode };

fn decode(w: &mut KernelWriter, at: &BlockRun<'_>) -> Vec<WeightGroup> {
    let lows = words(w, at, 48);
    let (one, four) = (w.u32(1), w.u32(4));
    let shift = w.shl(at.run, one);
    let mut bytes = at.bytes(w, 16, 32);
    let highs: Vec<Register> = (0..8)
        .map(|number| {
            let word = bytes.word(w, 4 * number);
            w.shr(word, shift)
        })
        .collect();
    groups(w, at, |w, group, number| {
        let byte = 8 * (number as u32 % 4);
        let (low, high) = (bits(w, lows[number / 4], byte + 4 * group, 4), bits(w, highs[number / 4], byte + group, 1));
        let high = w.shl(high, four);
        w.or(low, high)
    })
}
