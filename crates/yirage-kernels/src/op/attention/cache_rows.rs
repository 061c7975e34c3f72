//! Runs of elements of keys and values, whatever they are stored as.

use crate::elements::Elements;
use yirage_ir::{DType, Format};
use yirage_kir::{KernelWriter, Register, ScalarType};

/// Elements of a block of q8_0.
pub(super) const BLOCK: u32 = 32;

/// Elements in memory that are read several at a time.
#[derive(Clone, Copy)]
pub(super) struct CacheRows {
    pub(super) elements: Elements,
    /// Whether rows, and what is read of them, begin at words where two elements share one.
    pub(super) paired: bool,
}

impl CacheRows {
    pub(super) fn is_q8_0(&self) -> bool {
        self.elements.dtype == DType::Stored(Format::Q8_0)
    }

    /// Elements from number `at` on: two of q8_0 from an even one, or any number of others.
    pub(super) fn run(&self, w: &mut KernelWriter, at: Register, count: u32) -> Vec<Register> {
        match self.elements.dtype {
            DType::Stored(Format::Q8_0) => self.codes(w, at, count),
            DType::Stored(Format::F16 | Format::BF16) if self.paired && count.is_multiple_of(2) => {
                let two = w.u32(2);
                let first = w.div(at, two);
                let words: Vec<Register> = (0..count / 2).map(|at| self.word(w, first, at)).collect();
                words.into_iter().flat_map(|word| self.halves(w, word)).collect()
            }
            _ => (0..count)
                .map(|behind| {
                    let behind = w.u32(behind);
                    let at = w.add(at, behind);
                    self.elements.load(w, at)
                })
                .collect(),
        }
    }

    /// A block of q8_0: its scale, and its codes as floats.
    pub(super) fn block(&self, w: &mut KernelWriter, number: Register) -> (Register, Vec<Register>) {
        let (halves, two, one, sixteen) = (w.u32(17), w.u32(2), w.u32(1), w.u32(16));
        let first = w.mul(number, halves);
        let (word, odd) = (w.div(first, two), w.and(first, one));
        let (zero, words) = (w.u32(0), (0..9).map(|at| self.word(w, word, at)).collect::<Vec<_>>());
        let is_even = w.equal(odd, zero);
        let (low, high) = (w.unpack_half(words[0], false), w.unpack_half(words[0], true));
        let scale = w.select(is_even, low, high);
        let mut codes = Vec::with_capacity(BLOCK as usize);
        for pair in words.windows(2) {
            let (low, high) = (w.shr(pair[0], sixteen), w.shl(pair[1], sixteen));
            let across = w.or(low, high);
            let four = w.select(is_even, across, pair[1]);
            codes.extend((0..4).map(|at| code(w, four, at)));
        }
        (scale, codes)
    }

    /// One or two neighbours of a block of q8_0.
    fn codes(&self, w: &mut KernelWriter, at: Register, count: u32) -> Vec<Register> {
        let (elements, halves, two, one) = (w.u32(BLOCK), w.u32(17), w.u32(2), w.u32(1));
        let (block, within) = (w.div(at, elements), w.rem(at, elements));
        let first = w.mul(block, halves);
        let scale = self.half(w, first);
        let scale = w.unpack_half(scale, false);
        let pair = w.div(within, two);
        let pair = w.add(first, pair);
        let pair = w.add(pair, one);
        let codes = self.half(w, pair);
        let codes: Vec<Register> = (0..2).map(|at| code(w, codes, at)).collect();
        let codes: Vec<Register> = codes.into_iter().map(|code| w.mul(code, scale)).collect();
        if count == 2 {
            return codes;
        }
        let (odd, zero) = (w.and(within, one), w.u32(0));
        let is_first = w.equal(odd, zero);
        vec![w.select(is_first, codes[0], codes[1])]
    }

    /// The half of a word of this number, in the low half of one.
    fn half(&self, w: &mut KernelWriter, at: Register) -> Register {
        let (two, sixteen) = (w.u32(2), w.u32(16));
        let (word, part) = (w.div(at, two), w.rem(at, two));
        let (word, shift) = (self.elements.load_word(w, word), w.mul(part, sixteen));
        w.shr(word, shift)
    }

    fn word(&self, w: &mut KernelWriter, first: Register, behind: u32) -> Register {
        let behind = w.u32(behind);
        let at = w.add(first, behind);
        self.elements.load_word(w, at)
    }

    /// The two floats of 16 bits in a word.
    fn halves(&self, w: &mut KernelWriter, word: Register) -> [Register; 2] {
        if self.elements.dtype == DType::Stored(Format::F16) {
            return [w.unpack_half(word, false), w.unpack_half(word, true)];
        }
        let (sixteen, mask) = (w.u32(16), w.u32(0xffff_0000));
        [w.shl(word, sixteen), w.and(word, mask)].map(|bits| w.bitcast(ScalarType::F32, bits))
    }
}

/// The signed byte of this number in a word, as a float.
fn code(w: &mut KernelWriter, word: Register, at: u32) -> Register {
    let (turned, shift, mask, middle) = (w.u32(0x8080_8080), w.u32(8 * at), w.u32(0xff), w.f32(128.0));
    let word = w.xor(word, turned);
    let byte = w.shr(word, shift);
    let byte = w.and(byte, mask);
    let byte = w.convert(ScalarType::F32, byte);
    w.sub(byte, middle)
}
