//! A node's workspace: memory that its kernels leave things in for each other.

use crate::node_kernel::Operand;
use yirage_hal::HalError;
use yirage_ir::{Dims, Type};

/// What a temporary begins at a multiple of, in words.
const ALIGN_WORDS: usize = 64;

/// Words of which each element of a byte has a number.
const MOST_COUNTED_WORDS: usize = 1 << 30;

/// How much of it is taken.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Workspace {
    words: usize,
}

impl Workspace {
    /// Memory for a value at these sizes.
    pub(crate) fn take(&mut self, ty: &Type, bucket: &Dims) -> Result<Operand, HalError> {
        let too_large = || HalError::Load(format!("{ty} does not fit a kernel's workspace"));
        let first_word = u32::try_from(self.words).map_err(|_| too_large())?;
        let words = ty.checked_bytes(bucket).ok_or_else(too_large)?.div_ceil(4).next_multiple_of(ALIGN_WORDS);
        self.words = self.words.checked_add(words).ok_or_else(too_large)?;
        Ok(Operand::Temporary { first_word, dtype: ty.dtype })
    }

    /// The first of `times` times so many words.
    pub(crate) fn take_words(&mut self, times: u32, words: u32) -> Result<u32, HalError> {
        let too_large = || HalError::Load(format!("{times} times {words} words do not fit a kernel's workspace"));
        let first = u32::try_from(self.words).map_err(|_| too_large())?;
        let all = (times as usize).checked_mul(words as usize).and_then(|all| all.checked_add(self.words));
        // Elements are counted in 32 bits, and four of them may share a word.
        let end = all.filter(|&end| end <= MOST_COUNTED_WORDS).ok_or_else(too_large)?;
        self.words = end.next_multiple_of(ALIGN_WORDS);
        Ok(first)
    }

    /// Counts as taken what a kernel of so many bytes has taken.
    pub(crate) fn cover(&mut self, bytes: u64) {
        self.words = self.words.max((bytes / 4) as usize);
    }

    /// Bytes of all that was taken.
    pub(crate) fn bytes(&self) -> u64 {
        self.words as u64 * 4
    }
}
