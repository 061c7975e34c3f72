//! Codes of a few bits in words, as floats.

use yirage_kir::{KernelWriter, Register, ScalarType};

/// Bits from a fixed place of a word on.
pub(super) fn bits(w: &mut KernelWriter, word: Register, from: u32, count: u32) -> Register {
    let (shift, mask) = (w.u32(from), w.u32((1 << count) - 1));
    let moved = if from == 0 { word } else { w.shr(word, shift) };
    if from + count == 32 { moved } else { w.and(moved, mask) }
}

/// A small whole number that is not negative as a float.
pub(super) fn float(w: &mut KernelWriter, code: Register) -> Register {
    // Signed numbers become floats at once everywhere.
    let code = w.bitcast(ScalarType::I32, code);
    w.convert(ScalarType::F32, code)
}

/// A small whole number less a constant as a float, which is exact.
pub(super) fn float_less(w: &mut KernelWriter, code: Register, by: f32) -> Register {
    let (code, by) = (float(w, code), w.f32(by));
    w.sub(code, by)
}

/// The signed byte of this number in a word as a float.
pub(super) fn signed_byte(w: &mut KernelWriter, word: Register, number: u32) -> Register {
    // Moved into -128 to 127 by turning the sign, which is the same as adding 128.
    let byte = bits(w, word, 8 * number, 8);
    let (sign, bias) = (w.u32(0x80), w.f32(128.0));
    let turned = w.xor(byte, sign);
    let turned = float(w, turned);
    w.sub(turned, bias)
}

/// The codes of 32 weights in four words of nibbles: byte i of 16 holds weight i, above it weight i + 16.
pub(super) fn nibbles(
    w: &mut KernelWriter,
    words: &[Register],
    mut code: impl FnMut(&mut KernelWriter, usize, Register) -> Register,
) -> Vec<Register> {
    let at = |number: usize| (words[number % 16 / 4], (8 * (number % 4) + 4 * (number / 16)) as u32);
    (0..32)
        .map(|number| {
            let (word, from) = at(number);
            let nibble = bits(w, word, from, 4);
            code(w, number, nibble)
        })
        .collect()
}

/// A nibble with a fifth bit: bit `number` of a word.
pub(super) fn with_fifth(w: &mut KernelWriter, nibble: Register, fifths: Register, number: usize) -> Register {
    let (mask, number) = (w.u32(16), number as u32);
    let moved = match number {
        0..4 => {
            let up = w.u32(4 - number);
            w.shl(fifths, up)
        }
        4 => fifths,
        _ => {
            let down = w.u32(number - 4);
            w.shr(fifths, down)
        }
    };
    let fifth = w.and(moved, mask);
    w.or(nibble, fifth)
}
