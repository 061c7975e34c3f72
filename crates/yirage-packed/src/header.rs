//! The head of an entry: 64 bytes, then a description in JSON, both under one checksum.
//!
//! ```text
//!  0  8   magic
//!  8  4   version
//! 12  4   zero
//! 16  8   bytes of the description
//! 24  8   bytes of the file
//! 32 32   SHA-256 of the first 32 bytes and the description
//! 64      the description
//! ```
//! Numbers are little-endian. Images lie behind it in the order of the description, each at the next multiple of
//! [`limits::ALIGN`], with zeros between; the file ends with the last one.

use crate::PackedError;
use crate::key::{PackedKey, VERSION};
use crate::limits;
use crate::source::SourceFile;
use crate::sum::sha256;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// The first bytes of an entry.
pub const MAGIC: [u8; 8] = *b"YIRPACK\0";
/// Bytes before the description.
pub(crate) const PREFIX: usize = 64;
/// Digits of a range's checksum.
const SUM_DIGITS: usize = 32;

/// The image of one weight.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Image {
    /// Its name.
    pub name: String,
    /// Its first byte in the file.
    pub offset: u64,
    /// Its bytes.
    pub bytes: u64,
    /// The checksums of its ranges, XXH3 of 128 bits in hexadecimal digits.
    pub sums: Vec<String>,
}

/// What an entry says of itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackedHeader {
    /// The entry's key, so that a file under another name is found out.
    pub key: String,
    /// What the images are for, in the words of the device.
    pub device: String,
    /// The files they were made from.
    pub source: Vec<SourceFile>,
    /// Bytes of an image that share a checksum.
    pub range_bytes: u64,
    /// The images, in the order they lie in the file.
    pub images: Vec<Image>,
}

impl PackedHeader {
    /// A header for images of these names and sizes, with places and without checksums.
    pub(crate) fn plan(
        key: PackedKey,
        device: String,
        source: Vec<SourceFile>,
        images: Vec<(String, u64)>,
    ) -> PackedHeader {
        let range_bytes = limits::RANGE_BYTES;
        let sums = |bytes: u64| vec!["0".repeat(SUM_DIGITS); bytes.div_ceil(range_bytes) as usize];
        let image = |(name, bytes): (String, u64)| Image { name, offset: u64::MAX, bytes, sums: sums(bytes) };
        let images = images.into_iter().map(image).collect();
        let mut header = PackedHeader { key: key.to_string(), device, source, range_bytes, images };
        // Places are written as numbers of up to twenty digits, so the longest ones say how much room is needed.
        let mut end = PREFIX as u64 + header.json().len() as u64;
        for image in &mut header.images {
            image.offset = end.next_multiple_of(limits::ALIGN);
            end = image.offset.saturating_add(image.bytes);
        }
        header
    }

    /// Bytes of the whole file.
    pub fn file_bytes(&self) -> u64 {
        match self.images.last() {
            Some(last) => last.offset.saturating_add(last.bytes),
            None => PREFIX as u64 + self.json().len() as u64,
        }
    }

    /// Bytes of all images.
    pub fn image_bytes(&self) -> u64 {
        self.images.iter().fold(0, |sum, image| sum.saturating_add(image.bytes))
    }

    fn json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("strings, numbers and lists can be written as JSON")
    }

    /// The head of the file.
    pub fn print(&self) -> Vec<u8> {
        PackedHeader::seal(&self.json(), self.file_bytes())
    }

    /// A description under the prefix that fits it, for a file of `file_bytes` bytes.
    pub fn seal(json: &[u8], file_bytes: u64) -> Vec<u8> {
        let mut head = Vec::with_capacity(PREFIX + json.len());
        head.extend_from_slice(&MAGIC);
        head.extend_from_slice(&VERSION.to_le_bytes());
        head.extend_from_slice(&[0; 4]);
        head.extend_from_slice(&(json.len() as u64).to_le_bytes());
        head.extend_from_slice(&file_bytes.to_le_bytes());
        let sum = sha256(&[&head, json]);
        head.extend_from_slice(&sum);
        head.extend_from_slice(json);
        head
    }

    /// Bytes of the description that follows `prefix`, at most what is allowed; `None` where it is too short to say.
    pub(crate) fn description_bytes(prefix: &[u8]) -> Option<u64> {
        prefix.first_chunk().map(|prefix| number(prefix, 16).min(limits::HEADER_BYTES))
    }

    /// Bytes of the head at the beginning of `file`, which was parsed before.
    pub(crate) fn bytes_of_head(file: &[u8]) -> u64 {
        PREFIX as u64 + PackedHeader::description_bytes(file).unwrap_or_default()
    }

    /// The checksum of the head at the beginning of `file`, which was parsed before.
    pub(crate) fn sum_of_head(file: &[u8]) -> &[u8] {
        file.get(32..PREFIX).unwrap_or_default()
    }

    /// Reads the head of a file of `file_bytes` bytes from its beginning; `name` is how errors call it. What is
    /// returned is consistent: images have names of their own, lie in order inside the file, and have a checksum for
    /// each range.
    ///
    /// # Errors
    /// [`PackedError::Header`] with field and numbers, [`PackedError::Version`].
    pub fn parse(bytes: &[u8], file_bytes: u64, name: &str) -> Result<PackedHeader, PackedError> {
        let wrong = |field: &str, expected: String, found: String| {
            Err(PackedError::Header { path: name.to_owned(), field: field.to_owned(), expected, found })
        };
        let Some((prefix, rest)) = bytes.split_first_chunk::<PREFIX>() else {
            return wrong("head", format!("{PREFIX} bytes"), format!("{} bytes", bytes.len()));
        };
        if prefix[..8] != MAGIC {
            return wrong("magic", format!("{MAGIC:02x?}"), format!("{:02x?}", &prefix[..8]));
        }
        let version = u32::from_le_bytes([prefix[8], prefix[9], prefix[10], prefix[11]]);
        if version != VERSION {
            return Err(PackedError::Version { path: name.to_owned(), found: version, known: VERSION });
        }
        let (length, whole) = (number(prefix, 16), number(prefix, 24));
        if whole != file_bytes {
            return wrong("length of the file", format!("{whole} bytes"), format!("{file_bytes} bytes"));
        }
        if length > limits::HEADER_BYTES {
            return wrong("length of the description", format!("at most {}", limits::HEADER_BYTES), length.to_string());
        }
        let Some(json) = rest.get(..length as usize) else {
            return wrong("description", format!("{length} bytes"), format!("{} bytes", rest.len()));
        };
        if sha256(&[&prefix[..32], json]) != prefix[32..] {
            return wrong("checksum of the head", "the one written".into(), "another: the head is damaged".into());
        }
        let header: PackedHeader = match serde_json::from_slice(json) {
            Ok(header) => header,
            Err(e) => return wrong("description", "fields of an entry".into(), e.to_string()),
        };
        match header.check(PREFIX as u64 + length, file_bytes) {
            Ok(()) => Ok(header),
            Err((field, expected, found)) => wrong(&field, expected, found),
        }
    }

    /// Checks everything beyond the syntax. `end` is the first byte behind the head.
    fn check(&self, mut end: u64, file_bytes: u64) -> Result<(), (String, String, String)> {
        if PackedKey::parse(&self.key).is_none() {
            return Err(("key".into(), "32 hexadecimal digits".into(), format!("{:.80?}", self.key)));
        }
        if !limits::RANGES.contains(&self.range_bytes) {
            return Err(("range_bytes".into(), format!("{:?}", limits::RANGES), self.range_bytes.to_string()));
        }
        if self.images.len() > limits::IMAGES {
            return Err(("images".into(), format!("at most {}", limits::IMAGES), self.images.len().to_string()));
        }
        let mut names = HashSet::with_capacity(self.images.len());
        for (i, image) in self.images.iter().enumerate() {
            let field = |what: &str| format!("images[{i}].{what}");
            if image.name.len() > limits::NAME_BYTES || !names.insert(image.name.as_str()) {
                let expected = format!("at most {} bytes that no other image has", limits::NAME_BYTES);
                return Err((field("name"), expected, format!("{:.80?}", image.name)));
            }
            if image.offset < end || !image.offset.is_multiple_of(limits::ALIGN) {
                let expected = format!("a multiple of {} from {end} on", limits::ALIGN);
                return Err((field("offset"), expected, image.offset.to_string()));
            }
            end = match image.offset.checked_add(image.bytes).filter(|end| *end <= file_bytes) {
                Some(end) => end,
                None => {
                    let expected = format!("at most the file's {file_bytes} from {}", image.offset);
                    return Err((field("bytes"), expected, image.bytes.to_string()));
                }
            };
            let ranges = image.bytes.div_ceil(self.range_bytes);
            if image.sums.len() as u64 != ranges || image.sums.iter().any(|sum| PackedKey::parse(sum).is_none()) {
                let expected = format!("{ranges} of {SUM_DIGITS} hexadecimal digits");
                return Err((field("sums"), expected, format!("{}", image.sums.len())));
            }
        }
        Ok(())
    }
}

fn number(prefix: &[u8; PREFIX], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&prefix[at..at + 8]);
    u64::from_le_bytes(bytes)
}
