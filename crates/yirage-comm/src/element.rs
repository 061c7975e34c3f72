//! The types of elements that ranks give each other, and how sums of them are held.

use crate::wide::{FloatSum, IntegerSum, WideNumber};
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use std::fmt;

/// The type of an element.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ElementType {
    /// `f32`.
    F32,
    /// IEEE binary16.
    F16,
    /// The upper half of an `f32`.
    BF16,
    /// `i32`.
    I32,
    /// `u8`.
    U8,
}

impl ElementType {
    pub(crate) const ALL: [ElementType; 5] =
        [ElementType::F32, ElementType::F16, ElementType::BF16, ElementType::I32, ElementType::U8];

    /// Bytes of one.
    pub fn bytes(self) -> usize {
        match self {
            ElementType::F32 | ElementType::I32 => 4,
            ElementType::F16 | ElementType::BF16 => 2,
            ElementType::U8 => 1,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            ElementType::F32 => "f32",
            ElementType::F16 => "f16",
            ElementType::BF16 => "bf16",
            ElementType::I32 => "i32",
            ElementType::U8 => "u8",
        }
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A Rust type of elements: `f32`, `f16`, `bf16`, `i32`, `u8`.
pub trait CommElement: sealed::Sealed + Copy + 'static {
    /// Which it is.
    const TYPE: ElementType;
    /// What its sums are held in.
    #[doc(hidden)]
    type Sum: WideNumber;

    /// Their bytes, as this machine has them.
    fn as_bytes(values: &[Self]) -> &[u8];
    /// Their bytes, to be written.
    fn as_bytes_mut(values: &mut [Self]) -> &mut [u8];
    #[doc(hidden)]
    fn read(bytes: &[u8]) -> Self::Sum;
    #[doc(hidden)]
    fn rounded(sum: Self::Sum) -> Self;
}

/// The bytes of one element at the beginning of `bytes`, which the caller has cut into elements.
#[inline(always)]
fn first<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.first_chunk().copied().unwrap_or([0; N])
}

macro_rules! element {
    ($ty:ty, $type:ident, $sum:ty, |$bytes:ident| $read:expr, |$wide:ident| $rounded:expr, $as:expr, $as_mut:expr) => {
        impl sealed::Sealed for $ty {}

        impl CommElement for $ty {
            const TYPE: ElementType = ElementType::$type;
            type Sum = $sum;

            fn as_bytes(values: &[$ty]) -> &[u8] {
                $as(values)
            }

            fn as_bytes_mut(values: &mut [$ty]) -> &mut [u8] {
                $as_mut(values)
            }

            #[inline(always)]
            fn read($bytes: &[u8]) -> $sum {
                $read
            }

            #[inline(always)]
            fn rounded($wide: $sum) -> $ty {
                $rounded
            }
        }
    };
}

fn f16_bytes(values: &[f16]) -> &[u8] {
    bytemuck::cast_slice(values.reinterpret_cast())
}

fn f16_bytes_mut(values: &mut [f16]) -> &mut [u8] {
    bytemuck::cast_slice_mut(values.reinterpret_cast_mut())
}

fn bf16_bytes(values: &[bf16]) -> &[u8] {
    bytemuck::cast_slice(values.reinterpret_cast())
}

fn bf16_bytes_mut(values: &mut [bf16]) -> &mut [u8] {
    bytemuck::cast_slice_mut(values.reinterpret_cast_mut())
}

// A sum that is whole becomes an `f32`, and that what the type has: so do sums of plans.
element!(
    f32,
    F32,
    FloatSum,
    |bytes| FloatSum(f64::from(f32::from_ne_bytes(first(bytes)))),
    |sum| sum.0 as f32,
    bytemuck::cast_slice,
    bytemuck::cast_slice_mut
);
element!(
    f16,
    F16,
    FloatSum,
    |bytes| FloatSum(f64::from(f16::from_ne_bytes(first(bytes)).to_f32())),
    |sum| f16::from_f32(sum.0 as f32),
    f16_bytes,
    f16_bytes_mut
);
element!(
    bf16,
    BF16,
    FloatSum,
    |bytes| FloatSum(f64::from(bf16::from_ne_bytes(first(bytes)).to_f32())),
    |sum| bf16::from_f32(sum.0 as f32),
    bf16_bytes,
    bf16_bytes_mut
);
element!(
    i32,
    I32,
    IntegerSum,
    |bytes| IntegerSum(i64::from(i32::from_ne_bytes(first(bytes)))),
    |sum| sum.0 as i32,
    bytemuck::cast_slice,
    bytemuck::cast_slice_mut
);
element!(
    u8,
    U8,
    IntegerSum,
    |bytes| IntegerSum(i64::from(bytes[0])),
    |sum| sum.0 as u8,
    std::convert::identity,
    std::convert::identity
);
