//! The normalisation table of SentencePiece (`precompiled_charsmap`): a trie of byte strings in a double array, and
//! what each is replaced by.
//!
//! The bytes are those of the library that wrote them: the length of the trie, its units of four bytes each, and the
//! replacements, each ended by a zero byte. Tables are untrusted: every step is checked.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use unicode_segmentation::UnicodeSegmentation as _;

use super::error::TokenizerError;
use super::limits;

/// Longest run of characters that are replaced together, in bytes; the reference library looks at no longer ones.
const LONGEST_CLUSTER: usize = 5;

/// A table.
#[derive(Debug)]
pub(super) struct Charsmap {
    units: Vec<u32>,
    replacements: String,
}

impl Charsmap {
    /// From the text that a `tokenizer.json` has.
    pub(super) fn from_base64(name: &str, text: &str) -> Result<Self, TokenizerError> {
        let wrong = |detail: String| TokenizerError::field(name, "Precompiled.precompiled_charsmap", detail);
        let bytes = STANDARD.decode(text).map_err(|error| wrong(format!("is not base64: {error}")))?;
        Self::new(&bytes).map_err(wrong)
    }

    fn new(bytes: &[u8]) -> Result<Self, String> {
        let (length, rest) = bytes.split_first_chunk::<4>().ok_or("is too short")?;
        let length = u32::from_le_bytes(*length) as usize / 4 * 4;
        if length > limits::MAX_CHARSMAP_BYTES {
            return Err(format!("has {length} bytes, more than {}", limits::MAX_CHARSMAP_BYTES));
        }
        let (units, replacements) = rest.split_at_checked(length).ok_or("is cut off")?;
        let units = units.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect();
        let replacements = std::str::from_utf8(replacements).map_err(|_| "has replacements that are not UTF-8")?;
        Ok(Self { units, replacements: replacements.to_owned() })
    }

    /// `text` with everything replaced that the table replaces, as far as that has `longest` bytes or few more.
    pub(super) fn apply(&self, text: &str, longest: usize) -> String {
        let mut out = String::with_capacity(text.len());
        for cluster in text.graphemes(true) {
            let whole = if cluster.len() <= LONGEST_CLUSTER { self.replacement(cluster) } else { None };
            match whole {
                Some(replacement) => out.push_str(replacement),
                None => self.each_char(cluster, longest, &mut out),
            }
            if out.len() > longest {
                break;
            }
        }
        out
    }

    fn each_char(&self, cluster: &str, longest: usize, out: &mut String) {
        for c in cluster.chars() {
            match self.replacement(c.encode_utf8(&mut [0; 4])) {
                Some(replacement) => out.push_str(replacement),
                None => out.push(c),
            }
            if out.len() > longest {
                break;
            }
        }
    }

    /// What the shortest entry that `text` begins with is replaced by.
    fn replacement(&self, text: &str) -> Option<&str> {
        let unit = |at: usize| self.units.get(at).copied();
        let mut at = offset(unit(0)?);
        for &byte in text.as_bytes() {
            if byte == 0 {
                return None;
            }
            at ^= byte as usize;
            let found = unit(at)?;
            if found & (1 << 31 | 0xFF) != u32::from(byte) {
                return None;
            }
            at ^= offset(found);
            if found >> 8 & 1 == 1 {
                let start = (unit(at)? & !(1 << 31)) as usize;
                return self.replacements.get(start..)?.split('\0').next();
            }
        }
        None
    }
}

/// Where the children of a unit are.
fn offset(unit: u32) -> usize {
    ((unit >> 10) << ((unit & 1 << 9) >> 6)) as usize
}
