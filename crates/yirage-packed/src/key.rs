//! Names of entries.

use crate::sum::sha256;
use std::fmt;

/// The version of the file format. It is a part of every key.
pub const VERSION: u32 = 2;

/// The name of an entry: 128 bits of a hash, as 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PackedKey([u8; 16]);

impl PackedKey {
    /// The key of everything that an entry's bytes depend on. Parts are kept apart, so that no two lists of parts give
    /// the same key because their texts run into each other. The version of the file format is a part of every key.
    pub fn of(parts: &[&[u8]]) -> PackedKey {
        let version = VERSION.to_le_bytes();
        let lengths: Vec<[u8; 8]> = parts.iter().map(|part| (part.len() as u64).to_le_bytes()).collect();
        let mut pieces: Vec<&[u8]> = vec![&version];
        for (length, part) in lengths.iter().zip(parts) {
            pieces.extend([length.as_slice(), part]);
        }
        let mut key = [0; 16];
        key.copy_from_slice(&sha256(&pieces)[..16]);
        PackedKey(key)
    }

    /// The inverse of `Display`; `None` for anything but 32 lower-case hexadecimal digits.
    pub fn parse(text: &str) -> Option<PackedKey> {
        let digit = |c: u8| matches!(c, b'0'..=b'9' | b'a'..=b'f');
        if text.len() != 32 || !text.bytes().all(digit) {
            return None;
        }
        u128::from_str_radix(text, 16).ok().map(|bits| PackedKey(bits.to_be_bytes()))
    }
}

impl fmt::Display for PackedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::PackedKey;

    #[test]
    fn parts_are_kept_apart_and_keys_read_back() {
        let keys = [
            PackedKey::of(&[b"ab", b"c"]),
            PackedKey::of(&[b"a", b"bc"]),
            PackedKey::of(&[b"abc"]),
            PackedKey::of(&[b"abc", b""]),
        ];
        assert!((0..4).all(|i| (0..i).all(|j| keys[i] != keys[j])));
        assert!(keys.iter().all(|key| PackedKey::parse(&key.to_string()) == Some(*key)));
        assert_eq!([PackedKey::parse(""), PackedKey::parse("../x"), PackedKey::parse(&"F".repeat(32))], [None; 3]);
        assert_eq!(PackedKey::parse("+0000000000000000000000000000000"), None);
    }
}
