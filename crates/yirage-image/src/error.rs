//! What can be wrong with a picture or with a processor's settings.

use crate::limits::{MAX_FILE_BYTES, MAX_PIXELS, MAX_TILES};
use thiserror::Error;

/// A picture that is not taken, or settings that are not understood.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum ImageError {
    /// Bytes of no format that is read.
    #[error("the bytes are no picture that can be read; send a PNG, JPEG or WebP file")]
    Format,
    /// A file that its decoder does not take.
    #[error("the {format} file cannot be decoded: {why}")]
    Decode {
        /// Its format.
        format: &'static str,
        /// What the decoder says.
        why: String,
    },
    /// A file of too many bytes.
    #[error("the picture's file has {bytes} bytes, {MAX_FILE_BYTES} are taken; send a smaller one")]
    FileBytes {
        /// How many.
        bytes: usize,
    },
    /// A picture without a pixel, or of too many.
    #[error("a picture of {width} x {height} pixels; 1 to {MAX_PIXELS} pixels are taken, send a smaller one")]
    Pixels {
        /// Pixels of a row.
        width: u64,
        /// Rows.
        height: u64,
    },
    /// A picture of too many tiles.
    #[error("a picture of {rows} x {columns} tiles; {MAX_TILES} are taken, send one with sides that differ less")]
    Tiles {
        /// Rows of tiles.
        rows: u64,
        /// Tiles of a row.
        columns: u64,
    },
    /// Samples that are no picture of the size.
    #[error(
        "{bytes} bytes are no picture of {width} x {height} pixels with {channels} channels; give 1 to 4 channels of 8 bits for each pixel"
    )]
    Samples {
        /// Pixels of a row.
        width: u32,
        /// Rows.
        height: u32,
        /// Numbers of a pixel.
        channels: usize,
        /// How many there are.
        bytes: usize,
    },
    /// A setting of a processor that has another type or value than can be.
    #[error("{file}: `{key}`: expected {expected}, got {found}")]
    Setting {
        /// The file, as errors call it.
        file: String,
        /// The setting.
        key: String,
        /// What it may be.
        expected: String,
        /// What it is.
        found: String,
    },
    /// A processor that does something that is not known here.
    #[error("{file}: {what} is not supported: {why}")]
    Unsupported {
        /// The file, as errors call it.
        file: String,
        /// What it wants.
        what: String,
        /// Why not.
        why: String,
    },
}
