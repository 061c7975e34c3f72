//! Checksums: SHA-256, which current processors compute at the speed of a disk, cut to what is needed.

use sha2::{Digest, Sha256};

/// SHA-256 of pieces one behind the other.
pub(crate) fn sha256(pieces: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    pieces.iter().for_each(|piece| hash.update(piece));
    hash.finalize().into()
}

/// The checksum of a range, as 32 hexadecimal digits.
pub(crate) fn range_sum(bytes: &[u8]) -> String {
    let mut high = [0; 16];
    high.copy_from_slice(&sha256(&[bytes])[..16]);
    format!("{:032x}", u128::from_be_bytes(high))
}
