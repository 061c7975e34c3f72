//! Operands of general kernels: a loop's sizes, and where each operand's elements lie.

use super::elem::Elem;
use thiserror::Error;
use yirage_ir::dim::Dims;
use yirage_ir::strided::Strided;
use yirage_ir::types::MAX_RANK;

/// Why memory cannot be an operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum OperandError {
    /// Too many dimensions.
    #[error("{0} dimensions: {MAX_RANK} are the most")]
    Rank(usize),
    /// A dimension without a stride, or a stride without one.
    #[error("{sizes} sizes and {strides} strides: one of each a dimension is wanted")]
    Uneven {
        /// How many sizes.
        sizes: usize,
        /// How many strides.
        strides: usize,
    },
    /// The number of elements, or a place among them, fits no address.
    #[error("the sizes of an operand are too large for memory")]
    TooLarge,
    /// The address is not that of an element.
    #[error("an operand's address is not a multiple of its element's {0} bytes")]
    Misaligned(usize),
    /// Elements outside of the memory.
    #[error("elements {low} to {high} of memory that holds {held}")]
    Outside {
        /// The lowest element that is reached.
        low: i64,
        /// The highest element that is reached.
        high: i64,
        /// Elements that the memory holds.
        held: usize,
    },
}

/// The sizes of a loop, outermost first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoopSizes {
    rank: usize,
    sizes: [usize; MAX_RANK],
}

impl LoopSizes {
    /// Checked: at most eight, and their product fits an address.
    ///
    /// # Errors
    /// Sizes that do not.
    pub fn new(sizes: &[usize]) -> Result<LoopSizes, OperandError> {
        if sizes.len() > MAX_RANK {
            return Err(OperandError::Rank(sizes.len()));
        }
        // Zeros do not hide what else is too large: strides are computed from the other sizes.
        let product = sizes.iter().try_fold(1usize, |n, &size| n.checked_mul(size.max(1)));
        if product.is_none_or(|n| isize::try_from(n).is_err()) {
            return Err(OperandError::TooLarge);
        }
        let mut all = [1; MAX_RANK];
        all[..sizes.len()].copy_from_slice(sizes);
        Ok(LoopSizes { rank: sizes.len(), sizes: all })
    }

    /// Those of a view under `dims`.
    ///
    /// # Errors
    /// As [`LoopSizes::new`].
    pub fn of(view: &Strided, dims: &Dims) -> Result<LoopSizes, OperandError> {
        let mut sizes = [1; MAX_RANK];
        let rank = view.shape.len();
        for (size, dim) in sizes.iter_mut().zip(&view.shape) {
            *size = dim.get(dims);
        }
        LoopSizes::new(sizes.get(..rank).ok_or(OperandError::Rank(rank))?)
    }

    /// One for each dimension.
    pub fn as_slice(&self) -> &[usize] {
        &self.sizes[..self.rank]
    }

    /// The sizes of the dimensions that are marked, or of the others.
    pub(super) fn only(&self, marked: &[bool; MAX_RANK], want: bool) -> LoopSizes {
        let mut only = LoopSizes { rank: 0, sizes: [1; MAX_RANK] };
        for (&size, _) in self.as_slice().iter().zip(marked).filter(|(_, is)| **is == want) {
            only.sizes[only.rank] = size;
            only.rank += 1;
        }
        only
    }

    /// Elements of the loop.
    pub fn count(&self) -> usize {
        self.as_slice().iter().product()
    }
}

/// Elements between neighbours along each dimension of the loop, outermost first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Strides {
    rank: usize,
    strides: [i64; MAX_RANK],
}

impl Strides {
    /// At most eight.
    ///
    /// # Errors
    /// More.
    pub fn new(strides: &[i64]) -> Result<Strides, OperandError> {
        if strides.len() > MAX_RANK {
            return Err(OperandError::Rank(strides.len()));
        }
        let mut all = [0; MAX_RANK];
        all[..strides.len()].copy_from_slice(strides);
        Ok(Strides { rank: strides.len(), strides: all })
    }

    /// Row-major without gaps.
    pub fn dense(sizes: &LoopSizes) -> Strides {
        let (mut strides, mut next) = ([0; MAX_RANK], 1);
        for (stride, &size) in strides.iter_mut().zip(sizes.as_slice()).rev() {
            *stride = next;
            // `LoopSizes::new` has checked the product.
            next *= size.max(1) as i64;
        }
        Strides { rank: sizes.rank, strides }
    }

    /// The strides of the dimensions that are marked, or of the others.
    pub(super) fn only(&self, marked: &[bool; MAX_RANK], want: bool) -> Strides {
        let mut only = Strides { rank: 0, strides: [0; MAX_RANK] };
        for (&stride, _) in self.as_slice().iter().zip(marked).filter(|(_, is)| **is == want) {
            only.strides[only.rank] = stride;
            only.rank += 1;
        }
        only
    }

    /// One for each dimension.
    pub fn as_slice(&self) -> &[i64] {
        &self.strides[..self.rank]
    }
}

/// Elements that are read.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct StridedInput {
    pub(super) base: *const u8,
    pub(super) elem: Elem,
    pub(super) strides: Strides,
}

/// Elements that are written.
#[derive(Clone, Copy, Debug)]
pub struct StridedOutput {
    pub(super) base: *mut u8,
    pub(super) elem: Elem,
    pub(super) strides: Strides,
}

// SAFETY: addresses; the unsafe functions that use them say who may touch what.
unsafe impl Send for StridedInput {}
// SAFETY: addresses; the unsafe functions that use them say who may touch what.
unsafe impl Sync for StridedInput {}
// SAFETY: addresses; the unsafe functions that use them say who may touch what.
unsafe impl Send for StridedOutput {}
// SAFETY: addresses; the unsafe functions that use them say who may touch what.
unsafe impl Sync for StridedOutput {}

impl StridedInput {
    /// The elements of `view` in `bytes` of memory at `memory`.
    ///
    /// # Errors
    /// Elements that lie outside, or an address that is none of an element.
    pub fn within(
        memory: *const u8,
        bytes: usize,
        elem: Elem,
        view: &Strided,
        dims: &Dims,
    ) -> Result<StridedInput, OperandError> {
        let offset = checked(memory as usize, bytes, elem, view, dims)?;
        Ok(StridedInput { base: memory.wrapping_byte_offset(offset), elem, strides: Strides::new(&view.strides)? })
    }

    /// Elements of which the first lies at `base`. Who calls a kernel vouches that all of the loop's exist.
    pub fn at(base: *const u8, elem: Elem, strides: Strides) -> StridedInput {
        StridedInput { base, elem, strides }
    }
}

impl StridedOutput {
    /// The elements of `view` in `bytes` of memory at `memory`.
    ///
    /// # Errors
    /// As [`StridedInput::within`].
    pub fn within(
        memory: *mut u8,
        bytes: usize,
        elem: Elem,
        view: &Strided,
        dims: &Dims,
    ) -> Result<StridedOutput, OperandError> {
        let offset = checked(memory as usize, bytes, elem, view, dims)?;
        Ok(StridedOutput { base: memory.wrapping_byte_offset(offset), elem, strides: Strides::new(&view.strides)? })
    }

    /// Elements of which the first lies at `base`. Who calls a kernel vouches that all of the loop's exist, that each is
    /// one of its own, and that it alone touches them.
    pub fn at(base: *mut u8, elem: Elem, strides: Strides) -> StridedOutput {
        StridedOutput { base, elem, strides }
    }
}

/// Bytes from the memory's start to the first element, all elements being inside of the memory.
fn checked(address: usize, bytes: usize, elem: Elem, view: &Strided, dims: &Dims) -> Result<isize, OperandError> {
    let (sizes, strides) = (view.shape.len(), view.strides.len());
    if sizes != strides {
        return Err(OperandError::Uneven { sizes, strides });
    }
    let count = LoopSizes::of(view, dims)?.count();
    if !address.is_multiple_of(elem.bytes()) {
        return Err(OperandError::Misaligned(elem.bytes()));
    }
    if count == 0 {
        return Ok(0);
    }
    let held = bytes / elem.bytes();
    let (low, high) = view.reach(dims).ok_or(OperandError::TooLarge)?;
    let held_signed = i64::try_from(held).map_err(|_| OperandError::TooLarge)?;
    if low < 0 || high >= held_signed {
        return Err(OperandError::Outside { low, high, held });
    }
    // Within the memory, so within an address.
    Ok(view.offset as isize * elem.bytes() as isize)
}
