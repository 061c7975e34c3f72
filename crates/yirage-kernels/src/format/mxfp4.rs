//! MXFP4 (OCP Microscaling Formats 1.0): an exponent, 16 bytes of nibbles that hold E2M1 values; weight = 2^(e - 128) times
//! twice the value, which is whole.

use super::codes::{bits, float, nibbles};
use super::{BlockRun, RunDecoder, WeightGroup};
use yirage_ir::quant::mxfp4::TABLE;
use yirage_kir::{KernelWriter, Register, ScalarType};

pub(super) const DECODER: RunDecoder = RunDecoder::whole(decode);

/// The values that are not negative, doubled, as nibbles.
const SIZES: u32 = {
    let (mut word, mut at) = (0, 0);
    while at < 8 {
        word |= (TABLE[at] as u32) << (4 * at);
        at += 1;
    }
    word
};

fn decode(w: &mut KernelWriter, at: &BlockRun<'_>) -> Vec<WeightGroup> {
    let exponent = at.bytes(w, 0, 1).first_byte(w);
    let mut bytes = at.bytes(w, 1, 16);
    let scale = half_scale(w, exponent);
    let words: Vec<Register> = (0..4).map(|number| bytes.word(w, 4 * number)).collect();
    let codes = nibbles(w, &words, |w, _, nibble| value(w, nibble));
    vec![WeightGroup { scale: Some(scale), minimum: None, codes }]
}

/// `2^(e - 128)`, exact down to the denormals.
fn half_scale(w: &mut KernelWriter, e: Register) -> Register {
    let (one, two, twenty_three, least) = (w.u32(1), w.u32(2), w.u32(23), w.u32(0x0020_0000));
    // Below 2 the exponent moves a bit of the mantissa; a shift by at most 1 is all that is wanted of it.
    let (small, bit) = (w.less(e, two), w.and(e, one));
    let denormal = w.shl(least, bit);
    let biased = w.sub(e, one);
    let normal = w.shl(biased, twenty_three);
    let bits = w.select(small, denormal, normal);
    w.bitcast(ScalarType::F32, bits)
}

fn value(w: &mut KernelWriter, nibble: Register) -> Register {
    let (sizes, eight, twenty_eight, two) = (w.u32(SIZES), w.u32(8), w.u32(28), w.u32(2));
    let shift = w.shl(nibble, two);
    let shift = w.and(shift, twenty_eight);
    let size = w.shr(sizes, shift);
    let size = bits(w, size, 0, 4);
    let size = float(w, size);
    let size = w.bitcast(ScalarType::U32, size);
    let sign = w.and(nibble, eight);
    let sign = w.shl(sign, twenty_eight);
    let bits = w.or(size, sign);
    w.bitcast(ScalarType::F32, bits)
}
