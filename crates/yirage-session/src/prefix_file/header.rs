//! What a file says before its contents.

use crate::prefix_file_error::PrefixFileFault;
use serde_json::{Value, json};

/// The first bytes.
pub(super) const MAGIC: &[u8; 8] = b"YIRAGEKV";
/// How files are written here.
pub(super) const VERSION: u32 = 2;
/// Bytes before the header.
pub(super) const BEFORE: u64 = 16;
/// Bytes behind the contents.
pub(super) const SUM: u64 = 32;
/// Bytes of the longest header: ten million tokens.
const LONGEST: u32 = 128 << 20;
/// Layers of the deepest model.
const LAYERS: usize = 65_536;

/// The header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct PrefixHeader {
    /// The model's fingerprint.
    pub(super) model: String,
    /// Device, cache and precision.
    pub(super) computed_by: String,
    /// The tokens, of whole blocks.
    pub(super) tokens: Vec<u32>,
    /// What keeps it apart from equal tokens of others.
    pub(super) salt: Vec<u8>,
    /// Names of the layers' caches, with the bytes of each.
    pub(super) caches: Vec<(String, u64)>,
}

impl PrefixHeader {
    /// Magic, version, length and the header itself.
    pub(super) fn print(&self) -> Result<Vec<u8>, PrefixFileFault> {
        let text = json!({
            "model": self.model,
            "computed_by": self.computed_by,
            "tokens": self.tokens,
            "salt": self.salt,
            "caches": self.caches,
        })
        .to_string();
        let length = u32::try_from(text.len()).ok().filter(|&length| length <= LONGEST);
        let too_long = || PrefixFileFault::Header { why: format!("{} bytes, {LONGEST} at most", text.len()) };
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(length.ok_or_else(too_long)?.to_le_bytes());
        bytes.extend(text.as_bytes());
        Ok(bytes)
    }

    /// How long the header is, by the bytes before it.
    pub(super) fn length(before: &[u8; BEFORE as usize]) -> Result<usize, PrefixFileFault> {
        let number = |at: usize| u32::from_le_bytes([before[at], before[at + 1], before[at + 2], before[at + 3]]);
        if !before.starts_with(MAGIC) {
            return Err(PrefixFileFault::NotOne);
        }
        let (version, length) = (number(8), number(12));
        if version != VERSION {
            return Err(PrefixFileFault::Version { expected: VERSION, found: version });
        }
        if length > LONGEST {
            return Err(PrefixFileFault::Header { why: format!("{length} bytes, {LONGEST} at most") });
        }
        Ok(length as usize)
    }

    /// The header of a file.
    pub(super) fn parse(text: &[u8]) -> Result<PrefixHeader, PrefixFileFault> {
        let fault = |why: &str| PrefixFileFault::Header { why: why.to_owned() };
        let value: Value = serde_json::from_slice(text).map_err(|e| fault(&e.to_string()))?;
        let word = |key: &str| value[key].as_str().map(str::to_owned);
        let numbers = |key: &str| value[key].as_array()?.iter().map(Value::as_u64).collect::<Option<Vec<u64>>>();
        let cache = |pair: &Value| Some((pair[0].as_str()?.to_owned(), pair[1].as_u64()?));
        let tokens = numbers("tokens").and_then(|all| all.into_iter().map(|id| u32::try_from(id).ok()).collect());
        let salt = numbers("salt").and_then(|all| all.into_iter().map(|byte| u8::try_from(byte).ok()).collect());
        let caches = value["caches"].as_array().filter(|all| all.len() <= LAYERS);
        Ok(PrefixHeader {
            model: word("model").ok_or_else(|| fault("no model"))?,
            computed_by: word("computed_by").ok_or_else(|| fault("nothing that it was computed by"))?,
            tokens: tokens.ok_or_else(|| fault("no tokens"))?,
            salt: salt.ok_or_else(|| fault("no salt"))?,
            caches: caches.and_then(|all| all.iter().map(cache).collect()).ok_or_else(|| fault("no list of layers"))?,
        })
    }

    /// Bytes of the whole file, whose header has so many; none where they are more than a file can have.
    pub(super) fn file_bytes(&self, header: usize) -> Option<u64> {
        let contents = self.caches.iter().try_fold(0u64, |sum, (_, bytes)| sum.checked_add(*bytes))?;
        BEFORE.checked_add(header as u64)?.checked_add(contents)?.checked_add(SUM)
    }
}

/// Bytes of a token in a header at most.
const TOKEN_DIGITS: u64 = 11;
/// Bytes of everything else in a header at most.
const OTHERS: u64 = 4 << 20;

/// Bytes of the file of so many tokens at most, whose caches take so many.
pub(super) fn most_bytes(tokens: usize, caches: u64) -> u64 {
    let header = (tokens as u64).saturating_mul(TOKEN_DIGITS).saturating_add(OTHERS);
    caches.saturating_add(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> PrefixHeader {
        let caches = vec![("kv.0".to_owned(), 96), ("kv.1".to_owned(), 32)];
        PrefixHeader { model: "ab".into(), computed_by: "cpu".into(), tokens: vec![3, 9], salt: vec![7], caches }
    }

    #[test]
    fn a_header_comes_back() {
        let bytes = header().print().unwrap();
        let (before, text) = bytes.split_at(BEFORE as usize);
        assert_eq!(PrefixHeader::length(before.try_into().unwrap()).unwrap(), text.len());
        assert_eq!(PrefixHeader::parse(text).unwrap(), header());
        assert_eq!(header().file_bytes(text.len()), Some(BEFORE + text.len() as u64 + 128 + SUM));
    }

    #[test]
    fn what_is_no_header_is_told() {
        let bytes = header().print().unwrap();
        let mut before: [u8; BEFORE as usize] = bytes[..BEFORE as usize].try_into().unwrap();
        before[8] = 9;
        assert!(matches!(PrefixHeader::length(&before), Err(PrefixFileFault::Version { found: 9, .. })));
        before[0] = b'y';
        assert!(matches!(PrefixHeader::length(&before), Err(PrefixFileFault::NotOne)));
        for text in ["", "[]", "{}", r#"{"model":"m","computed_by":"c","tokens":[-1],"salt":[],"caches":[]}"#] {
            assert!(matches!(PrefixHeader::parse(text.as_bytes()), Err(PrefixFileFault::Header { .. })), "{text}");
        }
    }

    #[test]
    fn sizes_beyond_all_files_are_none() {
        let caches = vec![("a".to_owned(), u64::MAX), ("b".to_owned(), 1)];
        assert_eq!(PrefixHeader { caches, ..header() }.file_bytes(5), None);
    }
}
