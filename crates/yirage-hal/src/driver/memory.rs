//! Places in a device's memory.

/// Memory that a driver has given. The number means what the driver wants it to mean; the host cannot read there, and no
/// two pieces of memory that are held at the same time have the same one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BufferId(pub u64);

/// Bytes of a buffer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BufferSlice {
    /// The buffer.
    pub buffer: BufferId,
    /// Bytes in it before these.
    pub offset: u64,
    /// How many they are.
    pub bytes: u64,
}

impl BufferSlice {
    /// So many of these bytes, `offset` from their beginning; none where they are not among them.
    #[must_use]
    pub fn part(self, offset: u64, bytes: u64) -> Option<BufferSlice> {
        let inside = offset.checked_add(bytes).is_some_and(|end| end <= self.bytes);
        inside.then_some(BufferSlice { buffer: self.buffer, offset: self.offset.checked_add(offset)?, bytes })
    }

    /// Whether they have a byte in common.
    pub fn overlaps(&self, other: &BufferSlice) -> bool {
        let end = |slice: &BufferSlice| slice.offset.saturating_add(slice.bytes);
        let (from, to) = (self.offset.max(other.offset), end(self).min(end(other)));
        self.buffer == other.buffer && from < to
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: BufferSlice = BufferSlice { buffer: BufferId(1), offset: 64, bytes: 100 };

    #[test]
    fn parts_lie_inside() {
        assert_eq!(WHOLE.part(60, 40), Some(BufferSlice { offset: 124, bytes: 40, ..WHOLE }));
        assert_eq!((WHOLE.part(60, 41), WHOLE.part(u64::MAX, 2), WHOLE.part(1, u64::MAX)), (None, None, None));
    }

    #[test]
    fn slices_of_one_buffer_overlap_where_a_byte_is_of_both() {
        let at = |offset, bytes| BufferSlice { offset, bytes, ..WHOLE };
        assert!(WHOLE.overlaps(&at(163, 1)) && at(0, 65).overlaps(&WHOLE));
        assert!(!WHOLE.overlaps(&at(164, 1)) && !at(0, 64).overlaps(&WHOLE) && !WHOLE.overlaps(&at(70, 0)));
        assert!(!WHOLE.overlaps(&BufferSlice { buffer: BufferId(2), ..WHOLE }));
    }
}
