//! Images of weights: the bytes a device made of a weight, as another run of the same program can use them again.

use crate::MappedFile;
use std::ops::Range;
use std::sync::Arc;

/// The image of a weight in a mapped file.
#[derive(Clone, Debug)]
pub struct WeightImage {
    file: Arc<MappedFile>,
    range: Range<usize>,
}

impl WeightImage {
    /// The bytes `range` of `file`; `None` where it has no such bytes.
    pub fn new(file: Arc<MappedFile>, range: Range<usize>) -> Option<WeightImage> {
        file.get(range.clone())?;
        Some(WeightImage { file, range })
    }

    /// The bytes. They stay where they are as long as any copy of this value lives.
    pub fn bytes(&self) -> &[u8] {
        &self.file[self.range.clone()]
    }
}
