//! Keys: who may ask. Only their SHA-256 is kept.

use crate::limits::{MAX_KEY_FILE, MAX_KEYS};
use sha2::{Digest, Sha256};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Before the hash of a key in a file.
const HASHED: &str = "sha256:";

/// The keys of a server.
#[derive(Clone, Default)]
pub struct ApiKeys(Vec<ApiKey>);

#[derive(Clone)]
struct ApiKey {
    name: String,
    hash: [u8; 32],
}

/// Who asks, once that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    /// The key's name; empty where none is wanted.
    pub(crate) name: String,
    /// What separates its cached beginnings of prompts from those of other keys.
    pub(crate) salt: Vec<u8>,
    /// On whose account the engine's scheduler puts its requests.
    pub(crate) account: u64,
}

/// A file of keys that cannot be used. No message has a key in it.
#[derive(Debug, Error)]
pub enum KeysError {
    /// It cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A line is none of a key.
    #[error("{}, line {line}: {why}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        why: &'static str,
    },
    /// More than a file of keys may have.
    #[error("{}: more than {MAX_KEYS} keys or {MAX_KEY_FILE} bytes are no file of keys; give a file with a key on each line", path.display())]
    Large {
        /// The file.
        path: PathBuf,
    },
    /// There is none in it.
    #[error("{}: there is no key in it; write lines of NAME sha256:HASH", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

impl fmt::Debug for ApiKeys {
    /// Names alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|key| &key.name)).finish()
    }
}

impl ApiKeys {
    /// Reads a file: a key a line, as `NAME sha256:HASH` or, which is said in the notes, `NAME KEY`. Empty lines and those
    /// that begin with `#` say nothing.
    ///
    /// # Errors
    /// [`KeysError`].
    pub fn read(path: &Path) -> Result<(ApiKeys, Vec<String>), KeysError> {
        let of = |source| KeysError::Io { path: path.to_owned(), source };
        let mut text = String::new();
        File::open(path).map_err(of)?.take(MAX_KEY_FILE + 1).read_to_string(&mut text).map_err(of)?;
        if text.len() as u64 > MAX_KEY_FILE {
            return Err(KeysError::Large { path: path.to_owned() });
        }
        let (keys, plain) = parse(&text).map_err(|(line, why)| KeysError::Line { path: path.to_owned(), line, why })?;
        if keys.0.is_empty() {
            return Err(KeysError::Empty { path: path.to_owned() });
        }
        if keys.0.len() > MAX_KEYS {
            return Err(KeysError::Large { path: path.to_owned() });
        }
        let note = |lines: Vec<String>| {
            format!("{}: keys in plain text on line {}; write their {HASHED}HASH", path.display(), lines.join(", "))
        };
        let notes = (!plain.is_empty()).then(|| note(plain.iter().map(usize::to_string).collect()));
        Ok((keys, notes.into_iter().collect()))
    }

    /// Adds a key.
    pub fn add(&mut self, name: &str, key: &str) {
        self.0.push(ApiKey { name: name.to_owned(), hash: Sha256::digest(key).into() });
    }

    /// Whether nobody needs a key.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Who has this key. All keys are looked at, and all of each, so that time tells nothing of them.
    pub(crate) fn caller(&self, key: &str) -> Option<Caller> {
        let hash: [u8; 32] = Sha256::digest(key).into();
        let mut found = None;
        for known in &self.0 {
            let differs = known.hash.iter().zip(&hash).fold(0, |sum, (a, b)| sum | (a ^ b));
            if std::hint::black_box(differs) == 0 {
                found = Some(known);
            }
        }
        found.map(ApiKey::caller)
    }
}

impl ApiKey {
    fn caller(&self) -> Caller {
        // The salt must not be the hash that a file holds: whoever sees one learns nothing of the other.
        let salt: [u8; 32] = Sha256::new().chain_update("cache salt\0").chain_update(self.hash).finalize().into();
        let account = u64::from_le_bytes([salt[0], salt[1], salt[2], salt[3], salt[4], salt[5], salt[6], salt[7]]);
        Caller { name: self.name.clone(), salt: salt.to_vec(), account }
    }
}

impl Caller {
    /// Whoever asks where no key is wanted.
    pub(crate) fn anybody() -> Caller {
        Caller { name: String::new(), salt: Vec::new(), account: 0 }
    }
}

/// The keys of a file and the lines in which they are not hashed; or the line that is wrong, and why.
fn parse(text: &str) -> Result<(ApiKeys, Vec<usize>), (usize, &'static str)> {
    let (mut keys, mut plain) = (ApiKeys::default(), Vec::new());
    for (at, line) in text.lines().enumerate().map(|(at, line)| (at + 1, line.trim())) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut words = line.split_whitespace();
        let (Some(name), Some(key), None) = (words.next(), words.next(), words.next()) else {
            return Err((at, "a name and a key are wanted, with a space between them"));
        };
        if keys.0.iter().any(|known| known.name == name) {
            return Err((at, "there is a key of this name already"));
        }
        match key.strip_prefix(HASHED) {
            Some(hex) => {
                let hash = from_hex(hex).ok_or((at, "behind sha256: 64 hexadecimal digits are wanted"))?;
                keys.0.push(ApiKey { name: name.to_owned(), hash });
            }
            None => {
                keys.add(name, key);
                plain.push(at);
            }
        }
    }
    Ok((keys, plain))
}

fn from_hex(hex: &str) -> Option<[u8; 32]> {
    let mut hash = [0; 32];
    if hex.len() != 64 || !hex.is_ascii() {
        return None;
    }
    for (byte, pair) in hash.iter_mut().zip(hex.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    // printf %s secret | sha256sum
    const SECRET: &str = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";

    #[test]
    fn keys_are_known_by_hash_and_in_plain_text() {
        let (keys, plain) = parse(&format!("# who\n\nann sha256:{SECRET}\nbob other\n")).unwrap();
        assert_eq!(plain, [4]);
        assert_eq!(keys.caller("secret").unwrap().name, "ann");
        assert_eq!(keys.caller("other").unwrap().name, "bob");
        assert_eq!(keys.caller("Secret"), None);
        assert_eq!(keys.caller(""), None);
        assert_ne!(keys.caller("secret").unwrap().salt, keys.caller("other").unwrap().salt);
        assert_eq!(format!("{keys:?}"), r#"["ann", "bob"]"#);
    }

    #[test]
    fn lines_that_are_wrong_are_named() {
        for (text, line) in [("a", 1), ("a b\nc d e", 2), ("a sha256:12", 1), ("a b\na c", 2), ("a sha256:zz", 1)] {
            assert_eq!(parse(text).unwrap_err().0, line, "{text:?}");
        }
    }
}
