//! Arrays of strings in one piece of memory: vocabularies have hundreds of thousands of short ones.

use super::cursor::Cursor;
use crate::error::ModelError;
use crate::flaw::Flaw;
use crate::limits::GGUF_STRING_BYTES;

/// An array of strings: one text and where each string ends in it (4 bytes a string beside the text).
#[derive(Clone, PartialEq, Eq, Default)]
pub struct StringArray {
    text: String,
    ends: Vec<u32>,
}

impl StringArray {
    /// Number of strings.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no strings.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// String `i`; `None` past the end.
    pub fn get(&self, i: usize) -> Option<&str> {
        let end = *self.ends.get(i)? as usize;
        let start = i.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        Some(&self.text[start..end])
    }

    /// All strings, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> + '_ {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let s = &self.text[start..end as usize];
            start = end as usize;
            s
        })
    }

    /// Reads `n` length-prefixed strings. The text is checked as a whole and at each border, which is the same as
    /// checking each string, and several times faster for short ones.
    pub(super) fn read(c: &mut Cursor<'_>, n: u64, key: &str) -> Result<StringArray, ModelError> {
        let start = c.pos();
        let mut ends = Vec::with_capacity(n as usize);
        let mut text = Vec::new();
        for _ in 0..n {
            let len = c.count(GGUF_STRING_BYTES, 1, key)?;
            text.extend_from_slice(c.take(len, key)?);
            // The header budget keeps the sum far below 4 GiB.
            ends.push(text.len() as u32);
        }
        text.shrink_to_fit();
        // A prefix of 8 bytes precedes every string, so a border's place in the file follows from its index.
        let place = |in_text: usize| {
            let before = ends.partition_point(|&end| end as usize <= in_text) as u64 + 1;
            start + in_text as u64 + 8 * before
        };
        let text = match String::from_utf8(text) {
            Ok(text) => text,
            Err(e) => return Err(c.error_at(place(e.utf8_error().valid_up_to()), key, Flaw::Utf8)),
        };
        match ends.iter().find(|&&end| !text.is_char_boundary(end as usize)) {
            Some(&end) => Err(c.error_at(place(end as usize), key, Flaw::Utf8)),
            None => Ok(StringArray { text, ends }),
        }
    }
}

impl std::fmt::Debug for StringArray {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<S: AsRef<str>> FromIterator<S> for StringArray {
    /// Joins strings of together less than 4 GiB, as every header budget ensures.
    fn from_iter<I: IntoIterator<Item = S>>(strings: I) -> StringArray {
        let mut out = StringArray::default();
        for s in strings {
            out.text.push_str(s.as_ref());
            out.ends.push(out.text.len() as u32);
        }
        out
    }
}
