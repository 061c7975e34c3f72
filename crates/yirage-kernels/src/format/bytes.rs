//! Bytes at any place in memory of words.

use yirage_kir::{KernelMemory, KernelWriter, Register, ScalarType};

/// What a place is a multiple of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Alignment {
    /// Four bytes.
    Word,
    /// Two.
    Half,
    /// One.
    Byte,
}

impl Alignment {
    /// Of places that are sums of multiples of numbers whose bits are these.
    pub(super) fn of(bits: u32) -> Alignment {
        match bits {
            bits if bits.is_multiple_of(4) => Alignment::Word,
            bits if bits.is_multiple_of(2) => Alignment::Half,
            _ => Alignment::Byte,
        }
    }
}

/// Bytes from a place on. Each word of memory that they lie in is loaded once, when it is wanted first.
pub(super) struct Bytes {
    memory: KernelMemory,
    alignment: Alignment,
    /// The word that the first lies in.
    word: Register,
    /// The word that the last lies in.
    last: Option<Register>,
    /// Of places of halves whether it is the upper one; of places of bytes the bits before the first.
    inside: Register,
    count: u32,
    loaded: Vec<Option<Register>>,
}

impl Bytes {
    pub(super) fn new(
        w: &mut KernelWriter,
        memory: KernelMemory,
        first: Register,
        alignment: Alignment,
        count: u32,
    ) -> Bytes {
        let two = w.u32(2);
        let word = w.shr(first, two);
        let (inside, last) = match alignment {
            Alignment::Word => (word, None),
            Alignment::Half => {
                let (part, zero) = (w.and(first, two), w.u32(0));
                (w.not_equal(part, zero), None)
            }
            Alignment::Byte => {
                let (three, bits, behind) = (w.u32(3), w.u32(8), w.u32(count - 1));
                let (part, last) = (w.and(first, three), w.add(first, behind));
                (w.mul(part, bits), Some(w.shr(last, two)))
            }
        };
        let words = count as usize / 4 + 2;
        Bytes { memory, alignment, word, last, inside, count, loaded: vec![None; words] }
    }

    /// A word of memory: the first is the one that the first byte lies in.
    fn loaded(&mut self, w: &mut KernelWriter, number: u32) -> Register {
        if let Some(word) = self.loaded[number as usize] {
            return word;
        }
        let behind = w.u32(number);
        let mut at = w.add(self.word, behind);
        // There may be no word behind the one with the last byte.
        if let Some(last) = self.last.filter(|_| number > (self.count - 1) / 4) {
            at = w.min(at, last);
        }
        let word = w.load(self.memory, at);
        self.loaded[number as usize] = Some(word);
        word
    }

    /// Two words of memory, from some bits of the first on.
    fn funnel(&mut self, w: &mut KernelWriter, number: u32, bits: u32) -> Register {
        let (low, high) = (self.loaded(w, number), self.loaded(w, number + 1));
        let (down, up) = (w.u32(bits), w.u32(32 - bits));
        let (low, high) = (w.shr(low, down), w.shl(high, up));
        w.or(low, high)
    }

    /// The four bytes from `offset` on.
    pub(super) fn word(&mut self, w: &mut KernelWriter, offset: u32) -> Register {
        let (number, part) = (offset / 4, offset % 4);
        match (self.alignment, part) {
            (Alignment::Word, 0) => self.loaded(w, number),
            (Alignment::Word, _) => self.funnel(w, number, 8 * part),
            (Alignment::Half, 0) => {
                let (lower, upper) = (self.loaded(w, number), self.funnel(w, number, 16));
                w.select(self.inside, upper, lower)
            }
            (Alignment::Half, _) => {
                let (lower, upper) = (self.funnel(w, number, 16), self.loaded(w, number + 1));
                w.select(self.inside, upper, lower)
            }
            (Alignment::Byte, _) => {
                // By 32 bits nothing can be shifted: up by one less, and one more.
                let (low, high) = (self.loaded(w, number), self.loaded(w, number + 1));
                let (most, one) = (w.u32(31), w.u32(1));
                let up = w.sub(most, self.inside);
                let (low, high) = (w.shr(low, self.inside), w.shl(high, up));
                let high = w.shl(high, one);
                w.or(low, high)
            }
        }
    }

    /// The two bytes from `offset`, an even one, on, in the lower half of a word; what is above them is something.
    fn half_word(&mut self, w: &mut KernelWriter, offset: u32) -> Register {
        let (number, sixteen) = (offset / 4, w.u32(16));
        match (self.alignment, offset.is_multiple_of(4)) {
            (Alignment::Byte, _) => self.word(w, offset),
            (Alignment::Word, true) => self.loaded(w, number),
            (Alignment::Word, false) => {
                let word = self.loaded(w, number);
                w.shr(word, sixteen)
            }
            (Alignment::Half, true) => {
                let word = self.loaded(w, number);
                let upper = w.shr(word, sixteen);
                w.select(self.inside, upper, word)
            }
            (Alignment::Half, false) => {
                let word = self.loaded(w, number);
                let (upper, next) = (w.shr(word, sixteen), self.loaded(w, number + 1));
                w.select(self.inside, next, upper)
            }
        }
    }

    /// The f16 at an even `offset`.
    pub(super) fn f16(&mut self, w: &mut KernelWriter, offset: u32) -> Register {
        if self.alignment == Alignment::Word {
            let word = self.loaded(w, offset / 4);
            return w.unpack_half(word, offset % 4 == 2);
        }
        let half = self.half_word(w, offset);
        w.unpack_half(half, false)
    }

    /// The bf16 at an even `offset`.
    pub(super) fn bf16(&mut self, w: &mut KernelWriter, offset: u32) -> Register {
        let (half, sixteen) = (self.half_word(w, offset), w.u32(16));
        let bits = w.shl(half, sixteen);
        w.bitcast(ScalarType::F32, bits)
    }

    /// The first byte.
    pub(super) fn first_byte(&mut self, w: &mut KernelWriter) -> Register {
        let (word, mask) = (self.loaded(w, 0), w.u32(0xff));
        let byte = match self.alignment {
            Alignment::Word => word,
            Alignment::Half => self.half_word(w, 0),
            Alignment::Byte => w.shr(word, self.inside),
        };
        w.and(byte, mask)
    }
}
