//! Choices read off bytes, so that a fuzzer can make them.

/// Bytes that decide. When they have run out every choice is the first one.
pub(super) struct Choices<'a> {
    bytes: &'a [u8],
}

impl<'a> Choices<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Choices<'a> {
        Choices { bytes }
    }

    fn byte(&mut self) -> usize {
        let Some((&first, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        usize::from(first)
    }

    /// A number below `n`, which is not 0.
    pub(super) fn below(&mut self, n: usize) -> usize {
        let word = if n > 256 { self.byte() << 8 | self.byte() } else { self.byte() };
        word % n
    }

    /// True once in `n` times; false when the bytes have run out.
    pub(super) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == n - 1
    }

    /// One of `items`, of which there are some.
    pub(super) fn choose<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    /// A seed of numbers.
    pub(super) fn seed(&mut self) -> u64 {
        (0..4).fold(0, |seed, _| seed << 8 | self.byte() as u64)
    }
}
