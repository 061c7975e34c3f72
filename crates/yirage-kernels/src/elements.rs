//! Elements of values in a kernel's buffers, whatever their type.
//!
//! Buffers are words of 32 bits: two floats of 16 bits a word, four bools. A word is written by one thread, so what is
//! narrower than a word is written a word at a time.

use crate::math;
use yirage_ir::{DType, Format};
use yirage_kir::{BinaryFunction, KernelMemory, KernelWriter, Register, ScalarType};

/// Plain elements in memory: floats of 32 or 16 bits, whole numbers, bools.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Elements {
    pub(crate) memory: KernelMemory,
    pub(crate) dtype: DType,
    /// Words of the memory before the first.
    pub(crate) first_word: u32,
}

/// The type that elements are computed with as.
pub(crate) fn computed_as(dtype: DType) -> ScalarType {
    match dtype {
        DType::I32 | DType::I8 => ScalarType::I32,
        DType::U32 => ScalarType::U32,
        DType::Bool => ScalarType::Bool,
        DType::Stored(_) => ScalarType::F32,
    }
}

/// Elements that share a word.
pub(crate) fn elements_per_word(dtype: DType) -> u32 {
    match dtype {
        DType::Stored(Format::F16 | Format::BF16) => 2,
        DType::Bool | DType::I8 => 4,
        DType::I32 | DType::U32 | DType::Stored(_) => 1,
    }
}

impl Elements {
    /// The element of this number.
    pub(crate) fn load(&self, w: &mut KernelWriter, at: Register) -> Register {
        let per_word = w.u32(elements_per_word(self.dtype));
        let (word, part) = (w.div(at, per_word), w.rem(at, per_word));
        let word = self.load_word(w, word);
        match self.dtype {
            DType::Stored(Format::F16) => {
                let (low, high) = (w.unpack_half(word, false), w.unpack_half(word, true));
                let zero = w.u32(0);
                let first = w.equal(part, zero);
                w.select(first, low, high)
            }
            DType::Stored(Format::BF16) => {
                let (sixteen, mask) = (w.u32(16), w.u32(0xffff_0000));
                let (low, high) = (w.shl(word, sixteen), w.and(word, mask));
                let zero = w.u32(0);
                let first = w.equal(part, zero);
                let bits = w.select(first, low, high);
                w.bitcast(ScalarType::F32, bits)
            }
            DType::Bool => {
                let (bits, mask, zero) = (w.u32(8), w.u32(0xff), w.u32(0));
                let shift = w.mul(part, bits);
                let shifted = w.shr(word, shift);
                let byte = w.and(shifted, mask);
                w.not_equal(byte, zero)
            }
            dtype => w.bitcast(computed_as(dtype), word),
        }
    }

    /// The word of this number, whatever lies in it.
    pub(crate) fn load_word(&self, w: &mut KernelWriter, at: Register) -> Register {
        let first = w.u32(self.first_word);
        let at = w.add(at, first);
        w.load(self.memory, at)
    }

    /// The floats in a word: as many as share one.
    pub(crate) fn in_word(&self, w: &mut KernelWriter, word: Register) -> Vec<Register> {
        match self.dtype {
            DType::Stored(Format::F16) => vec![w.unpack_half(word, false), w.unpack_half(word, true)],
            DType::Stored(Format::BF16) => {
                let (sixteen, mask) = (w.u32(16), w.u32(0xffff_0000));
                let halves = [w.shl(word, sixteen), w.and(word, mask)];
                halves.map(|bits| w.bitcast(ScalarType::F32, bits)).to_vec()
            }
            _ => vec![w.bitcast(ScalarType::F32, word)],
        }
    }

    /// Writes word `at`: as many elements as share one.
    pub(crate) fn store_word(&self, w: &mut KernelWriter, at: Register, elements: &[Register]) {
        let word = match (self.dtype, elements) {
            (DType::Stored(Format::F16), &[low, high]) => math::pack_f16(w, low, high),
            (DType::Stored(Format::BF16), &[low, high]) => {
                let (low, high) = (math::bf16_bits(w, low), math::bf16_bits(w, high));
                let sixteen = w.u32(16);
                let high = w.shl(high, sixteen);
                w.or(low, high)
            }
            (DType::Bool, bools) => {
                let mut word = w.u32(0);
                for (at, &element) in bools.iter().enumerate() {
                    let (byte, shift) = (w.convert(ScalarType::U32, element), w.u32(8 * at as u32));
                    let byte = w.shl(byte, shift);
                    word = w.binary(BinaryFunction::Or, word, byte);
                }
                word
            }
            (_, elements) => w.bitcast(ScalarType::U32, elements[0]),
        };
        let first = w.u32(self.first_word);
        let at = w.add(at, first);
        w.store(self.memory, at, word);
    }

    /// Writes element `at` of a type that fills words.
    pub(crate) fn store(&self, w: &mut KernelWriter, at: Register, element: Register) {
        self.store_word(w, at, &[element]);
    }
}
