//! Floats of 16 bits (IEEE 754).

/// The float that 16 bits are, exactly.
pub(super) fn from_half(bits: u16) -> f32 {
    let (sign, exponent, fraction) =
        (u32::from(bits >> 15) << 31, u32::from(bits >> 10 & 0x1f), u32::from(bits & 0x3ff));
    match exponent {
        // A multiple of 2^-24.
        0 => f32::from_bits(sign | (fraction as f32 / 16_777_216.0).to_bits()),
        0x1f => f32::from_bits(sign | 0x7f80_0000 | fraction << 13),
        _ => f32::from_bits(sign | (exponent + 112) << 23 | fraction << 13),
    }
}

/// The nearest 16 bits, ties to even; what is too large is infinite, and NaN stays NaN.
pub(super) fn to_half(x: f32) -> u16 {
    let (size, sign) = (x.to_bits() & 0x7fff_ffff, (x.to_bits() >> 16) as u16 & 0x8000);
    let half = match size {
        0x7f80_0001.. => 0x7e00,
        // From 65520 on the nearest is infinity.
        0x477f_f000.. => 0x7c00,
        // Normal: the exponent moves, and 13 bits are rounded away, into the exponent where they carry.
        0x3880_0000.. => (size - (112 << 23) + 0xfff + (size >> 13 & 1)) >> 13,
        // A multiple of 2^-24, which is the rounding that the float itself has at 0.5.
        _ => (f32::from_bits(size) + 0.5).to_bits() - 0.5f32.to_bits(),
    };
    sign | half as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_comes_back() {
        for bits in 0..=u16::MAX {
            let x = from_half(bits);
            if x.is_nan() {
                assert!(bits & 0x7c00 == 0x7c00 && bits & 0x3ff != 0, "{bits:04x}");
                assert_eq!(to_half(x), bits & 0x8000 | 0x7e00);
            } else {
                assert_eq!(to_half(x), bits, "{x}");
            }
        }
    }

    #[test]
    fn between_two_the_nearer_one_is_taken_and_of_both_the_even_one() {
        for bits in 0..0x7c00u16 {
            let next = f64::from(if bits == 0x7bff { 65536.0 } else { from_half(bits + 1) });
            let middle = f64::midpoint(f64::from(from_half(bits)), next) as f32;
            assert_eq!(to_half(middle), bits + (bits & 1), "{middle}");
            assert_eq!(to_half(middle.next_down()), bits, "{middle}");
            assert_eq!(to_half(middle.next_up()), bits + 1, "{middle}");
            assert_eq!(to_half(-middle.next_up()), (bits + 1) | 0x8000, "{middle}");
        }
        assert_eq!((to_half(f32::MAX), to_half(f32::NEG_INFINITY)), (0x7c00, 0xfc00));
    }
}
