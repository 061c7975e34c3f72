//! Reading little-endian fields from a header, with every step checked against the file and the header budget.

use crate::error::{Corrupt, ModelError};
use crate::flaw::Flaw;
use crate::limits::GGUF_HEADER_BYTES;

/// A position in a header. Knows the file's name for its errors.
pub(super) struct Cursor<'a> {
    file: &'a str,
    bytes: &'a [u8],
    pos: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(file: &'a str, bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { file, bytes, pos: 0 }
    }

    /// Bytes from the start of the file.
    pub(super) fn pos(&self) -> u64 {
        self.pos as u64
    }

    /// Bytes left in the file.
    pub(super) fn remaining(&self) -> u64 {
        (self.bytes.len() - self.pos) as u64
    }

    /// An error about `field`, at the current position.
    pub(super) fn error(&self, field: &str, flaw: Flaw) -> ModelError {
        self.error_at(self.pos(), field, flaw)
    }

    pub(super) fn error_at(&self, offset: u64, field: &str, flaw: Flaw) -> ModelError {
        Corrupt::at(self.file, field, offset, flaw)
    }

    /// The next `n` bytes.
    pub(super) fn take(&mut self, n: u64, field: &str) -> Result<&'a [u8], ModelError> {
        if n > self.remaining() {
            return Err(self.error(field, Flaw::Truncated { needed: n, left: self.remaining() }));
        }
        // n <= left, so it fits usize and the sum stays inside the file.
        let end = self.pos + n as usize;
        if end > GGUF_HEADER_BYTES {
            let over = Flaw::OverBudget { found: end as u64, limit: GGUF_HEADER_BYTES as u64 };
            return Err(self.error("header length", over));
        }
        let taken = &self.bytes[self.pos..end];
        self.pos = end;
        Ok(taken)
    }

    /// The next `N` bytes, as an array.
    pub(super) fn array<const N: usize>(&mut self, field: &str) -> Result<[u8; N], ModelError> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N as u64, field)?);
        Ok(out)
    }

    pub(super) fn u32(&mut self, field: &str) -> Result<u32, ModelError> {
        Ok(u32::from_le_bytes(self.array(field)?))
    }

    pub(super) fn u64(&mut self, field: &str) -> Result<u64, ModelError> {
        Ok(u64::from_le_bytes(self.array(field)?))
    }

    /// A count of things that take at least `each` bytes: refused over `limit`, or where the file is too short to hold
    /// them, so that memory can be reserved by it.
    pub(super) fn count(&mut self, limit: u64, each: u64, field: &str) -> Result<u64, ModelError> {
        let at = self.pos();
        let n = self.u64(field)?;
        self.check_count(at, n, limit, each, field)?;
        Ok(n)
    }

    /// The check of [`Cursor::count`] for a number already read at `at`.
    pub(super) fn check_count(&self, at: u64, n: u64, limit: u64, each: u64, field: &str) -> Result<(), ModelError> {
        if n > limit {
            return Err(self.error_at(at, field, Flaw::OverBudget { found: n, limit }));
        }
        let needed = n.saturating_mul(each);
        if needed > self.remaining() {
            return Err(self.error_at(at, field, Flaw::Truncated { needed, left: self.remaining() }));
        }
        Ok(())
    }

    /// A length-prefixed UTF-8 string of at most `limit` bytes.
    pub(super) fn string(&mut self, limit: u64, field: &str) -> Result<&'a str, ModelError> {
        let n = self.count(limit, 1, field)?;
        let at = self.pos();
        let bytes = self.take(n, field)?;
        std::str::from_utf8(bytes).map_err(|e| self.error_at(at + e.valid_up_to() as u64, field, Flaw::Utf8))
    }
}
