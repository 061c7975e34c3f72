//! IQ2_XXS: 256 weights in 66 bytes: f16 `d`, then for each 32 weights four bytes of entries of the codebook and a u32 of
//! four times seven bits of signs and a scale of four bits; weight = d * (scale + 1/2) / 4 * number.

use super::codebooks::{IQ2_XXS, eight, even_signs, signed};
use super::scaled_codes::{ScaledCodes, scale_at, u32_at};

pub(super) fn unpack(b: &[u8], to: &mut ScaledCodes) {
    to.scale = scale_at(b, 0, 3);
    for group in 0..8 {
        let entries = &b[2 + 8 * group..][..4];
        let packed = u32_at(b, 6 + 8 * group);
        to.scale_32(group, 2 * (packed >> 28) as i8 + 1);
        for (i, &entry) in entries.iter().enumerate() {
            let signs = even_signs(packed >> (7 * i));
            to.set(32 * group + 8 * i, signed(eight(&IQ2_XXS, usize::from(entry)), signs));
        }
    }
}
