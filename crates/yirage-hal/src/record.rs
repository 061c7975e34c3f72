//! Memory of the host that steps read and write.

use bytemuck::{AnyBitPattern, NoUninit};
use std::fmt;

/// Memory of the host that a step may read until its fence. Dropping the last handle gives it back to its owner.
pub trait HostMemory: Send + Sync {
    /// The bytes, which stay where they are and what they are for as long as a step may read them.
    fn bytes(&self) -> &[u8];
}

/// Memory of the host that a device copies from without help of the host: page-locked, where a runtime has such memory.
pub trait StagingMemory: HostMemory {
    /// The bytes, to write.
    fn bytes_mut(&mut self) -> &mut [u8];
}

impl fmt::Debug for dyn HostMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes of host memory", self.bytes().len())
    }
}

/// Elements of a step input or of an output, row-major, at an address that is a multiple of four.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Record {
    words: Vec<u32>,
    /// Those of the last word beyond them are zero.
    bytes: usize,
}

impl Record {
    /// Zeros.
    pub fn zeroed(bytes: usize) -> Record {
        Record { words: vec![0; bytes.div_ceil(size_of::<u32>())], bytes }
    }

    /// These elements.
    pub fn of<T: NoUninit>(values: &[T]) -> Record {
        let bytes: &[u8] = bytemuck::cast_slice(values);
        let mut record = Record::zeroed(bytes.len());
        record.bytes_mut().copy_from_slice(bytes);
        record
    }

    /// Has these words from now on.
    pub fn refill(&mut self, words: impl IntoIterator<Item = u32>) {
        self.words.clear();
        self.words.extend(words);
        self.bytes = size_of_val(&self.words[..]);
    }

    /// The bytes, to write.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[..self.bytes]
    }

    /// The elements as numbers of at most four bytes. Bytes behind the last whole one are left out.
    pub fn values<T: AnyBitPattern>(&self) -> &[T] {
        const { assert!(align_of::<T>() <= align_of::<u32>() && size_of::<T>() > 0) };
        let whole = self.bytes / size_of::<T>() * size_of::<T>();
        bytemuck::cast_slice(&self.bytes()[..whole])
    }
}

impl HostMemory for Record {
    fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.bytes]
    }
}

impl StagingMemory for Record {
    fn bytes_mut(&mut self) -> &mut [u8] {
        Record::bytes_mut(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_of_any_size_come_back() {
        assert_eq!(Record::of(&[1.5f32, -2.0]).values::<f32>(), [1.5, -2.0]);
        assert_eq!(Record::of(&[1u16, 2, 3]).values::<u16>(), [1, 2, 3]);
        assert_eq!(Record::of(&[7u8; 5]).bytes(), [7; 5]);
        assert!(Record::of::<i32>(&[]).values::<i32>().is_empty());
    }

    #[test]
    fn a_refilled_record_has_the_new_words_alone() {
        let mut record = Record::of(&[1u8; 9]);
        record.refill([5, 6]);
        assert_eq!(record.values::<u32>(), [5, 6]);
        record.refill([]);
        assert!(record.bytes().is_empty());
    }
}
