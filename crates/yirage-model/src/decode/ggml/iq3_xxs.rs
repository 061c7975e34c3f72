//! IQ3_XXS: 256 weights in 98 bytes: f16 `d`, for each 4 weights a byte of an entry of the codebook, then for each 32 a u32
//! of four times seven bits of signs and a scale of four bits; weight = d * (scale + 1/2) / 2 * number. Every number is
//! even, and halved here.

use super::codebooks::{even_signs, four_xxs, signed};
use super::scaled_codes::{BlockScale, ScaledCodes, scale_at, u32_at};

pub(super) fn scale(b: &[u8]) -> BlockScale {
    scale_at(b, 0, 1)
}

pub(super) fn unpack(b: &[u8], to: &mut ScaledCodes) {
    to.scale = scale(b);
    for group in 0..8 {
        let packed = u32_at(b, 66 + 4 * group);
        to.scale_32(group, 2 * (packed >> 28) as i8 + 1);
        for (i, &entry) in b[2 + 8 * group..][..8].iter().enumerate() {
            let signs = even_signs(packed >> (7 * (i / 2))) >> (4 * (i % 2));
            to.set(32 * group + 4 * i, signed(four_xxs(usize::from(entry)), signs));
        }
    }
}
