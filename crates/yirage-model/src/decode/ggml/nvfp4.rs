//! NVFP4: 64 weights in 36 bytes: an unsigned E4M3 scale for each 16 weights, then for each 16 eight bytes of nibbles (byte
//! i: weight i low, weight i + 8 high) of the E2M1 values of MXFP4. A value has two bits and a scale four, so that their
//! product is a bf16.

use yirage_ir::quant::mxfp4::TABLE;

pub(super) fn decode(b: &[u8], out: &mut [f32]) {
    for (group, out) in out.chunks_exact_mut(16).enumerate() {
        let scale = half_scale(b[group]);
        for (i, q) in b[4 + 8 * group..][..8].iter().enumerate() {
            out[i] = scale * f32::from(TABLE[usize::from(q & 15)]);
            out[i + 8] = scale * f32::from(TABLE[usize::from(q >> 4)]);
        }
    }
}

/// Half of an unsigned E4M3 number, for values that are stored doubled; the code without a number is 0, as the format's
/// reference has it.
fn half_scale(code: u8) -> f32 {
    let (exponent, mantissa) = (u32::from(code >> 3 & 15), f32::from(code & 7));
    if code == 0x7f {
        return 0.0;
    }
    // 2^-10 and 2^(exponent - 8).
    let power = |e: u32| f32::from_bits(e << 23);
    if exponent == 0 { mantissa * power(117) } else { (1.0 + mantissa / 8.0) * power(exponent + 119) }
}
