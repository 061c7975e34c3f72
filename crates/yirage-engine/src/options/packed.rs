//! Where repacked weights are kept between starts.

use std::path::PathBuf;

/// Where repacked weights are kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PackedOptions {
    /// The folder of entries.
    pub folder: PathBuf,
    /// Bytes of all entries together.
    pub limit: u64,
}
