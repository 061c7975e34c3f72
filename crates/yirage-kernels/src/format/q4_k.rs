//! Q4_K: f16 `d`, f16 `dmin`, 12 bytes of eight 6-bit scales and minimums, 128 bytes of nibbles (of each 64 weights, byte l of
//! 32: weight l low, weight l+32 high); weight = d*scale * code - dmin*min.
//!
//! A run is what 32 bytes of nibbles hold: 64 weights.

use super::bytes::Bytes;
use super::codes::{bits, float};
use super::{BlockRun, RunDecoder, WeightGroup};
use yirage_kir::{KernelWriter, Register};

pub(super) const DECODER: RunDecoder = RunDecoder { runs: 4, offsets: &[0, 32], first, decode };

pub(super) fn first(w: &mut KernelWriter, run: Register) -> Register {
    let six = w.u32(6);
    w.shl(run, six)
}

fn decode(w: &mut KernelWriter, at: &BlockRun<'_>) -> Vec<WeightGroup> {
    let words = words(w, at, 16);
    groups(w, at, |w, group, number| bits(w, words[number / 4], 8 * (number as u32 % 4) + 4 * group, 4))
}

/// The run's eight words of nibbles, which begin at this byte of the block.
pub(super) fn words(w: &mut KernelWriter, at: &BlockRun<'_>, first: u32) -> Vec<Register> {
    let (thirty_two, first) = (w.u32(32), w.u32(first));
    let before = w.mul(at.run, thirty_two);
    let offset = w.add(before, first);
    let mut bytes = at.bytes_at(w, offset, 32);
    (0..8).map(|number| bytes.word(w, 4 * number)).collect()
}

/// The two groups of a run, whose codes are these.
pub(super) fn groups(
    w: &mut KernelWriter,
    at: &BlockRun<'_>,
    code: impl Fn(&mut KernelWriter, u32, usize) -> Register,
) -> Vec<WeightGroup> {
    let mut bytes = at.bytes(w, 0, 16);
    let (d, dmin) = (bytes.f16(w, 0), bytes.f16(w, 2));
    let factors = factors(w, at.run, &mut bytes);
    let group = |(group, (scale, minimum)): (u32, (Register, Register))| {
        let (scale, minimum) = (float(w, scale), float(w, minimum));
        let (scale, minimum) = (w.mul(d, scale), w.mul(dmin, minimum));
        let code = |number| {
            let code = code(w, group, number);
            float(w, code)
        };
        let codes = (0..32).map(code).collect();
        WeightGroup { scale: Some(scale), minimum: Some(minimum), codes }
    };
    (0..2).zip(factors).map(group).collect()
}

/// The scales and minimums of sub-blocks `2 run` and `2 run + 1`. Those of the first four are six bits of bytes 0 to 3 and 4 to
/// 7; of the others four bits each lie in bytes 8 to 11, and the two above them over those of the first.
fn factors(w: &mut KernelWriter, run: Register, bytes: &mut Bytes) -> [(Register, Register); 2] {
    let (one, two, four) = (w.u32(1), w.u32(2), w.u32(4));
    let (early, part) = (w.less(run, two), w.and(run, one));
    let shift = w.shl(part, four);
    let words = [4, 8, 12].map(|offset| {
        let word = bytes.word(w, offset);
        w.shr(word, shift)
    });
    [0, 8].map(|from| {
        let mut factor = |of: usize| {
            let first = bits(w, words[of], from, 6);
            let (low, high) = (bits(w, words[2], from + 4 * of as u32, 4), bits(w, words[of], from + 6, 2));
            let high = w.shl(high, four);
            let late = w.or(low, high);
            w.select(early, first, late)
        };
        (factor(0), factor(1))
    })
}
