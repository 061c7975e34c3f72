//! Any bytes as the head of kept weights: as they are, and as a description under a prefix that fits it. Shared by the
//! fuzz target and the test that replays its corpus.

use yirage_packed::{MAGIC, PackedHeader, VERSION};

/// Parses; what parses prints to a head that parses to the same.
pub(crate) fn run(data: &[u8]) {
    parse(data, data.len() as u64);
    // Checksums stop nearly all inputs, so the description is tried by itself too. Its first bytes say how long the file
    // pretends to be.
    let Some((length, json)) = data.split_first_chunk::<4>() else { return };
    let file_bytes = u64::from(u32::from_le_bytes(*length));
    parse(&PackedHeader::seal(json, file_bytes), file_bytes);
}

fn parse(head: &[u8], file_bytes: u64) {
    let Ok(header) = PackedHeader::parse(head, file_bytes, "fuzz") else { return };
    assert!(head.starts_with(&MAGIC) && head[8..12] == VERSION.to_le_bytes());
    assert!(header.images.iter().all(|image| image.offset + image.bytes <= file_bytes));
    let again = PackedHeader::parse(&header.print(), header.file_bytes(), "again").map_err(|e| e.to_string());
    assert_eq!(again, Ok(header));
}
