//! Q2_K: 16 scales (low nibble scale, high nibble minimum, one a 16 weights), 64 bytes of 2-bit codes, f16 `d`, f16 `dmin`;
//! weight = d * scale * code - dmin * min. Of each 128 weights, byte l of 32 holds weights l, l+32, l+64, l+96.
//!
//! A run is what 16 bytes of codes hold: four times 16 weights, 32 apart.

use super::codes::{bits, float};
use super::{BlockRun, RunDecoder, WeightGroup};
use yirage_kir::{KernelWriter, Register};

pub(super) const DECODER: RunDecoder = RunDecoder { runs: 4, offsets: &[0, 32, 64, 96], first, decode };

/// The first weight of a run of 16 bytes of codes.
pub(super) fn first(w: &mut KernelWriter, run: Register) -> Register {
    let (one, four, seven) = (w.u32(1), w.u32(4), w.u32(7));
    let (half, part) = (w.shr(run, one), w.and(run, one));
    let (half, part) = (w.shl(half, seven), w.shl(part, four));
    w.add(half, part)
}

fn decode(w: &mut KernelWriter, at: &BlockRun<'_>) -> Vec<WeightGroup> {
    let (d, dmin) = {
        let mut bytes = at.bytes(w, 80, 4);
        (bytes.f16(w, 0), bytes.f16(w, 2))
    };
    let (sixteen, one, eight, three) = (w.u32(16), w.u32(1), w.u32(8), w.u32(3));
    let before = w.mul(at.run, sixteen);
    let codes_at = w.add(before, sixteen);
    let mut bytes = at.bytes_at(w, codes_at, 16);
    let words: Vec<Register> = (0..4).map(|number| bytes.word(w, 4 * number)).collect();
    // Scales of the half: eight bytes, of which every other one is of this run.
    let half = w.shr(at.run, one);
    let scales_at = w.shl(half, three);
    let part = w.and(at.run, one);
    let shift = w.mul(part, eight);
    let mut bytes = at.bytes_at(w, scales_at, 8);
    let scales = [0, 4].map(|offset| {
        let word = bytes.word(w, offset);
        w.shr(word, shift)
    });
    (0..4)
        .map(|group| {
            let from = 16 * (group % 2);
            let scale = bits(w, scales[group as usize / 2], from, 4);
            let minimum = bits(w, scales[group as usize / 2], from + 4, 4);
            let (scale, minimum) = (float(w, scale), float(w, minimum));
            let (scale, minimum) = (w.mul(d, scale), w.mul(dmin, minimum));
            let code = |number: u32| {
                let code = bits(w, words[number as usize / 4], 8 * (number % 4) + 2 * group, 2);
                float(w, code)
            };
            let codes = (0..16).map(code).collect();
            WeightGroup { scale: Some(scale), minimum: Some(minimum), codes }
        })
        .collect()
}
