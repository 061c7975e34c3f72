//! Element types of values.

use crate::quant::Format;
use std::fmt;

/// The element type of a value.
///
/// Stored number formats (plain floats and block-quantised weights) are [`Format`]s; the other variants are what
/// graphs compute with beside floats. What activations are worth that lie in codes is not said here, but by their
/// [`ActivationFormat`](crate::ActivationFormat).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum DType {
    /// A number format as it lies in files: floats and block-quantised weights.
    Stored(Format),
    /// 32-bit signed integer: ids, positions, slots, block tables (-1 = absent).
    I32,
    /// 32-bit mask word: allowed-token bitmask.
    U32,
    /// True or false, a byte each.
    Bool,
    /// 8-bit signed codes: the elements of a value in a layout of activations, and of no other.
    I8,
}

impl DType {
    /// Shorthand for the most common element type.
    pub const F32: DType = DType::Stored(Format::F32);

    /// Bytes of `elems` consecutive elements of one row; `elems` must be a multiple of the block length.
    pub fn row_bytes(self, elems: usize) -> usize {
        match self {
            DType::Stored(f) => f.info().row_bytes(elems),
            DType::I32 | DType::U32 => elems.saturating_mul(4),
            DType::Bool | DType::I8 => elems,
        }
    }

    /// Whether its elements are plain numbers, one by one: f32, f16, bf16, whole numbers of 32 bits, bools. These alone are
    /// computed with by ops of any shape, and go into and out of a device.
    pub fn is_plain(self) -> bool {
        match self {
            DType::Stored(format) => matches!(format, Format::F32 | Format::F16 | Format::BF16),
            DType::I32 | DType::U32 | DType::Bool => true,
            DType::I8 => false,
        }
    }

    /// The name used in text forms.
    pub fn name(self) -> &'static str {
        match self {
            DType::Stored(f) => f.info().name,
            DType::I32 => "i32",
            DType::U32 => "u32",
            DType::Bool => "bool",
            DType::I8 => "i8",
        }
    }

    /// The inverse of [`DType::name`].
    pub fn parse(name: &str) -> Option<DType> {
        match name {
            "i32" => Some(DType::I32),
            "u32" => Some(DType::U32),
            "bool" => Some(DType::Bool),
            "i8" => Some(DType::I8),
            _ => Format::parse(name).map(DType::Stored),
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl From<Format> for DType {
    fn from(format: Format) -> DType {
        DType::Stored(format)
    }
}
