//! Elements of others that are read and written where they lie: numbers one by one, whatever their strides.

use crate::dtype::{ArrayDType, ForeignDType, StorageDType};
use crate::error::ArrayError;
use crate::foreign_array::{ForeignArray, row_major};
use crate::import::read_array;
use crate::memory::Keeper;
use crate::tensor::PyTensor;
use half::{bf16, f16};
use pyo3::prelude::*;
use yirage_ir::{DType, Format};

/// The types of elements that are read and written so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Number {
    /// `float32`.
    F32,
    /// `float16`.
    F16,
    /// `bfloat16`.
    BF16,
    /// `int32`.
    I32,
    /// `int64`.
    I64,
    /// `uint64`.
    U64,
    /// `uint8`.
    U8,
    /// `float8_e4m3fn`, of which only the bytes are read.
    F8E4M3,
}

impl Number {
    /// As NumPy and PyTorch call it.
    pub fn name(self) -> &'static str {
        self.element().name()
    }

    fn element(self) -> ArrayDType {
        match self {
            Number::F32 => ArrayDType::Known(DType::F32),
            Number::F16 => ArrayDType::Known(DType::Stored(Format::F16)),
            Number::BF16 => ArrayDType::Known(DType::Stored(Format::BF16)),
            Number::I32 => ArrayDType::Known(DType::I32),
            Number::I64 => ArrayDType::Stored(StorageDType::I64),
            Number::U64 => ArrayDType::Stored(StorageDType::U64),
            Number::U8 => ArrayDType::Stored(StorageDType::U8),
            Number::F8E4M3 => ArrayDType::Stored(StorageDType::F8E4M3),
        }
    }

    /// Whether it is a whole number of 8 bytes.
    pub fn is_wide(self) -> bool {
        matches!(self, Number::I64 | Number::U64)
    }

    fn bytes(self) -> usize {
        self.element().bytes()
    }
}

/// An array of another library. Its owner may read and write it at the same time: who sees what then is the program's own
/// affair.
pub struct InPlace {
    at: *mut u8,
    number: Number,
    shape: Vec<usize>,
    /// In elements.
    strides: Vec<i64>,
    elements: usize,
    dense: bool,
    writable: bool,
    _keeper: Keeper,
}

// SAFETY: as for `Foreign`: keepers may be dropped anywhere, and what is read and written are single numbers of memory that
// stays allocated.
unsafe impl Send for InPlace {}
// SAFETY: as for `Send`.
unsafe impl Sync for InPlace {}

impl InPlace {
    /// The array that `object` is; `what` says in errors which argument it is.
    ///
    /// # Errors
    /// [`ArrayError`]: an object that is no array, elements that are no [`Number`], memory of a device, more elements than
    /// an address space has.
    pub fn taken(object: &Bound<'_, PyAny>, what: &str) -> Result<InPlace, ArrayError> {
        let found = match object.cast::<PyTensor>() {
            Ok(tensor) => tensor.get().as_foreign(),
            Err(_) => read_array(object, what)?,
        };
        InPlace::of(found, what)
    }

    fn of(found: ForeignArray, what: &str) -> Result<InPlace, ArrayError> {
        let ForeignArray { at, element, shape: sizes, strides, writable, keeper } = found;
        let other = |given: String| ArrayError::Number { what: what.to_owned(), given };
        let number = match element {
            ForeignDType::Is(ArrayDType::Known(DType::F32)) => Number::F32,
            ForeignDType::Is(ArrayDType::Known(DType::Stored(Format::F16))) => Number::F16,
            ForeignDType::Is(ArrayDType::Known(DType::Stored(Format::BF16))) => Number::BF16,
            ForeignDType::Is(ArrayDType::Known(DType::I32)) => Number::I32,
            ForeignDType::Is(ArrayDType::Known(dtype)) => return Err(other(dtype.to_string())),
            ForeignDType::Is(ArrayDType::Stored(StorageDType::I64)) => Number::I64,
            ForeignDType::Is(ArrayDType::Stored(StorageDType::U64)) => Number::U64,
            ForeignDType::Is(ArrayDType::Stored(StorageDType::U8)) => Number::U8,
            ForeignDType::Is(ArrayDType::Stored(StorageDType::F8E4M3)) => Number::F8E4M3,
            ForeignDType::Is(element) => return Err(other(element.name().into())),
            ForeignDType::Other(given) => return Err(other(given)),
        };
        let places =
            |why| ArrayError::Places { what: what.to_owned(), shape: sizes.clone(), strides: strides.clone(), why };
        let shape: Option<Vec<usize>> = sizes.iter().map(|&n| usize::try_from(n).ok()).collect();
        let shape = shape.ok_or_else(|| places("a size is negative"))?;
        let elements = shape.iter().try_fold(1usize, |n, &m| n.checked_mul(m));
        // A library that shares an array has its elements in memory, so sums of strides are offsets that exist.
        let elements = elements.filter(|&n| n <= isize::MAX as usize / 8).ok_or_else(|| places("too many elements"))?;
        let row = row_major(&sizes);
        let dense = elements == 0 || sizes.iter().zip(&strides).zip(&row).all(|((n, s), r)| *n == 1 || s == r);
        Ok(InPlace { at: at.cast_mut(), number, shape, strides, elements, dense, writable, _keeper: keeper })
    }

    /// Sizes, outermost first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// How many elements there are.
    pub fn elements(&self) -> usize {
        self.elements
    }

    /// Their type.
    pub fn number(&self) -> Number {
        self.number
    }

    /// Whether their owner lets others write.
    pub fn writable(&self) -> bool {
        self.writable
    }

    /// All of their bytes, where they lie in row-major order without gaps.
    pub fn bytes(&self) -> Option<&[u8]> {
        if self.elements == 0 {
            return Some(&[]);
        }
        // SAFETY: the elements lie without gaps from here on, and the keeper keeps them.
        self.dense.then(|| unsafe { std::slice::from_raw_parts(self.at, self.elements * self.number.bytes()) })
    }

    /// A copy of their bytes in row-major order.
    pub fn gathered(&self) -> Vec<u8> {
        let width = self.number.bytes();
        let mut bytes = vec![0; self.elements * width];
        for (at, out) in bytes.chunks_exact_mut(width).enumerate() {
            // SAFETY: the number is below that of the elements, each of which is `width` bytes long.
            unsafe { out.as_mut_ptr().copy_from_nonoverlapping(self.element_ptr(at), width) };
        }
        bytes
    }

    /// Whole numbers in row-major order; none where the elements are floats.
    pub fn ints(&self) -> Option<Vec<i64>> {
        // SAFETY: each number is below that of the elements, and they are of the type that is read.
        let read = |at: usize| unsafe {
            match self.number {
                Number::I32 => Some(i64::from(self.element_ptr(at).cast::<i32>().read_unaligned())),
                Number::I64 | Number::U64 => Some(self.element_ptr(at).cast::<i64>().read_unaligned()),
                Number::U8 => Some(i64::from(self.element_ptr(at).read())),
                Number::F32 | Number::F16 | Number::BF16 | Number::F8E4M3 => None,
            }
        };
        (0..self.elements).map(read).collect()
    }

    /// Writes a whole number at a place in row-major order. Nothing is written behind the end, into an array that must not
    /// be written, and of a number that the type has not; `false` says so.
    pub fn set_int(&self, at: usize, value: i64) -> bool {
        if at >= self.elements || !self.writable {
            return false;
        }
        // SAFETY: the number is below that of the elements, whose type is the one that is written, and which may be written.
        unsafe {
            match self.number {
                Number::I64 | Number::U64 => self.element_ptr(at).cast::<i64>().write_unaligned(value),
                Number::I32 => match i32::try_from(value) {
                    Ok(value) => self.element_ptr(at).cast::<i32>().write_unaligned(value),
                    Err(_) => return false,
                },
                Number::U8 => match u8::try_from(value) {
                    Ok(value) => self.element_ptr(at).write(value),
                    Err(_) => return false,
                },
                Number::F32 | Number::F16 | Number::BF16 | Number::F8E4M3 => return false,
            }
        }
        true
    }

    /// Writes a float of 16 or 32 bits at a place in row-major order, rounded to the type. As [`InPlace::set_int`] otherwise.
    pub fn set_float(&self, at: usize, value: f32) -> bool {
        if at >= self.elements || !self.writable {
            return false;
        }
        // SAFETY: as of `set_int`.
        unsafe {
            match self.number {
                Number::F32 => self.element_ptr(at).cast::<f32>().write_unaligned(value),
                Number::F16 => self.element_ptr(at).cast::<u16>().write_unaligned(f16::from_f32(value).to_bits()),
                Number::BF16 => self.element_ptr(at).cast::<u16>().write_unaligned(bf16::from_f32(value).to_bits()),
                Number::I32 | Number::I64 | Number::U64 | Number::U8 | Number::F8E4M3 => return false,
            }
        }
        true
    }

    /// Where an element lies whose number in row-major order is below that of the elements.
    fn element_ptr(&self, at: usize) -> *mut u8 {
        if self.dense {
            return self.at.wrapping_add(at * self.number.bytes());
        }
        let (mut rest, mut offset) = (at, 0i64);
        for (size, stride) in self.shape.iter().zip(&self.strides).rev() {
            offset += (rest % size) as i64 * stride;
            rest /= size;
        }
        self.at.wrapping_offset(offset as isize * self.number.bytes() as isize)
    }
}
