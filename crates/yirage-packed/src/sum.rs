//! Checksums. SHA-256 for what names and describes entries; XXH3 for the weights themselves, which it reads as fast as
//! memory gives them on any processor: it finds damage, not forgery, and whoever can write an entry can write its sums.

use sha2::{Digest, Sha256};
use twox_hash::XxHash3_128;

/// SHA-256 of pieces one behind the other.
pub(crate) fn sha256(pieces: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    pieces.iter().for_each(|piece| hash.update(piece));
    hash.finalize().into()
}

/// The checksum of a range: its XXH3 of 128 bits, as 32 hexadecimal digits.
pub(crate) fn range_sum(bytes: &[u8]) -> String {
    format!("{:032x}", XxHash3_128::oneshot(bytes))
}

#[cfg(test)]
mod tests {
    use super::range_sum;

    /// The published sum of no bytes, by the reference implementation.
    #[test]
    fn it_is_the_xxh3_of_others() {
        assert_eq!(range_sum(b""), "99aa06d3014798d86001c324468d497f");
    }
}
