//! IQ1_S: 256 weights in 50 bytes: f16 `d`, for each 8 weights a byte of an entry of the codebook, then for each 32 a u16:
//! four times three high bits of the entries, a scale of three bits, the sign of an eighth that is added to each number;
//! weight = d * (2 * scale + 1) * (number ± 1/8).

use super::codebooks::ternary;
use super::scaled_codes::{BlockScale, ScaledCodes, scale_at, u16_at};

pub(super) fn scale(b: &[u8]) -> BlockScale {
    scale_at(b, 0, 3)
}

pub(super) fn unpack(b: &[u8], to: &mut ScaledCodes) {
    to.scale = scale(b);
    for group in 0..8 {
        let packed = u16_at(b, 34 + 2 * group);
        to.scale_32(group, 2 * (packed >> 12 & 7) as i8 + 1);
        let eighth = if packed >> 15 == 0 { 1 } else { -1 };
        for i in 0..4 {
            let high = usize::from(packed >> (3 * i) & 7);
            let numbers = ternary(usize::from(b[2 + 4 * group + i]) | high << 8);
            to.set(32 * group + 8 * i, numbers.map(|n| 8 * n + eighth));
        }
    }
}
