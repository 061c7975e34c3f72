//! Q6_K: 128 bytes of low nibbles, 64 bytes of 2-bit high parts, 16 signed scales (one a 16 weights), f16 `d`;
//! weight = d * scale * (code - 32). Of each 128 weights, low byte l of 64 holds weights l (low) and l+64 (high), high byte l
//! of 32 holds weights l, l+32, l+64, l+96.
//!
//! A run is what 32 low bytes hold: twice 32 weights, 64 apart.

use super::codes::{bits, float_less, signed_byte};
use super::{BlockRun, RunDecoder, WeightGroup};
use yirage_kir::{KernelWriter, Register};

pub(super) const DECODER: RunDecoder = RunDecoder { runs: 4, offsets: &[0, 16, 64, 80], first, decode };

fn first(w: &mut KernelWriter, run: Register) -> Register {
    let (one, five, seven) = (w.u32(1), w.u32(5), w.u32(7));
    let (half, part) = (w.shr(run, one), w.and(run, one));
    let (half, part) = (w.shl(half, seven), w.shl(part, five));
    w.add(half, part)
}

fn decode(w: &mut KernelWriter, at: &BlockRun<'_>) -> Vec<WeightGroup> {
    let (one, three, four, five) = (w.u32(1), w.u32(3), w.u32(4), w.u32(5));
    let (half, part) = (w.shr(at.run, one), w.and(at.run, one));
    let lows_at = w.shl(at.run, five);
    let mut bytes = at.bytes_at(w, lows_at, 32);
    let lows: Vec<Register> = (0..8).map(|number| bytes.word(w, 4 * number)).collect();
    let (highs_at, behind_lows) = (w.shl(half, five), w.u32(128));
    let highs_at = w.add(highs_at, behind_lows);
    let mut bytes = at.bytes_at(w, highs_at, 32);
    let shift = w.shl(part, one);
    let highs: Vec<Register> = (0..8)
        .map(|number| {
            let word = bytes.word(w, 4 * number);
            w.shr(word, shift)
        })
        .collect();
    // Scales of the half: eight bytes, of which two are of this run's first weights, and two, four behind them, of its second.
    let (scales_at, behind_highs) = (w.shl(half, three), w.u32(192));
    let scales_at = w.add(scales_at, behind_highs);
    let mut bytes = at.bytes_at(w, scales_at, 8);
    let scale_shift = w.shl(part, four);
    let scales = [0, 4].map(|offset| {
        let word = bytes.word(w, offset);
        w.shr(word, scale_shift)
    });
    let d = at.bytes(w, 208, 2).f16(w, 0);
    (0..4)
        .map(|group| {
            let (upper, behind) = (group / 2, group % 2 * 16);
            let scale = signed_byte(w, scales[upper as usize], group % 2);
            let code = |number: u32| {
                let (word, byte) = ((behind + number) as usize / 4, 8 * (number % 4));
                let low = bits(w, lows[word], byte + 4 * upper, 4);
                let high = bits(w, highs[word], byte + 4 * upper, 2);
                let high = w.shl(high, four);
                let code = w.or(low, high);
                float_less(w, code, 32.0)
            };
            let codes = (0..16).map(code).collect();
            WeightGroup { scale: Some(w.mul(d, scale)), minimum: None, codes }
        })
        .collect()
}
