//! IQ1_M: 256 weights in 56 bytes: for each 8 weights a byte of an entry of the codebook, then a nibble of three high bits
//! of it and the sign of an eighth, four u16 of four times three bits of scales, one for each 16 weights, whose highest
//! four bits together are the f16 `d`; weight = d * (2 * scale + 1) * (number ± 1/8).

use super::codebooks::ternary;
use super::scaled_codes::{BlockScale, ScaledCodes, u16_at};
use half::f16;

fn packed(b: &[u8]) -> [u16; 4] {
    std::array::from_fn(|i| u16_at(b, 48 + 2 * i))
}

pub(super) fn scale(b: &[u8]) -> BlockScale {
    let d = packed(b).iter().rev().fold(0, |d, p| d << 4 | p >> 12);
    BlockScale { d: f16::from_bits(d), shift: 3 }
}

pub(super) fn unpack(b: &[u8], to: &mut ScaledCodes) {
    let packed = packed(b);
    to.scale = scale(b);
    for (i, scale) in to.scales.iter_mut().enumerate() {
        *scale = 2 * (packed[i / 4] >> (3 * (i % 4)) & 7) as i8 + 1;
    }
    for i in 0..32 {
        let nibble = b[32 + i / 2] >> (4 * (i % 2)) & 15;
        let eighth = if nibble & 8 == 0 { 1 } else { -1 };
        let numbers = ternary(usize::from(b[i]) | usize::from(nibble & 7) << 8);
        to.set(8 * i, numbers.map(|n| 8 * n + eighth));
    }
}
