//! Elements as a protocol says that they lie.

use crate::dtype::ForeignDType;
use crate::memory::Keeper;

/// Elements of another library, where they lie: as many as sizes and strides say, for as long as `keeper` lives.
pub(crate) struct ForeignArray {
    pub(crate) at: *const u8,
    pub(crate) element: ForeignDType,
    pub(crate) shape: Vec<i64>,
    /// In elements.
    pub(crate) strides: Vec<i64>,
    /// Whether their owner lets others write.
    pub(crate) writable: bool,
    pub(crate) keeper: Keeper,
}

/// Strides of dense elements, in elements.
pub(crate) fn row_major(shape: &[i64]) -> Vec<i64> {
    let mut strides = vec![1i64; shape.len()];
    for dim in (1..shape.len()).rev() {
        strides[dim - 1] = strides[dim].saturating_mul(shape[dim].max(1));
    }
    strides
}
