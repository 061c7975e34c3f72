//! Values that are made of nothing: one everywhere, or numbers that count.

use super::elem::{Elem, NoElem};
use super::nest::Nest;
use super::operand::{LoopSizes, StridedOutput, Strides};
use super::runs;
use std::ops::Range;
use yirage_ir::expr::Scalar;

/// Puts `value` into elements `range` of the result, in row-major order.
///
/// # Errors
/// A value of another type than the result's elements.
///
/// # Panics
/// If the range is not of the result, or ranks differ.
///
/// # Safety
/// All elements exist, as [`StridedOutput::within`] checks; those of the result are distinct, and nobody else touches those of
/// the range.
pub unsafe fn fill(sizes: &LoopSizes, value: Scalar, out: StridedOutput, range: Range<usize>) -> Result<(), NoElem> {
    assert!(range.end <= sizes.count(), "elements {range:?} of {sizes:?}");
    let bits = match (value, out.elem) {
        (Scalar::F32(x), Elem::F32) => x.0.to_bits(),
        (Scalar::I32(x), Elem::I32) => x as u32,
        (Scalar::U32(x), Elem::U32) => x,
        (Scalar::Bool(x), Elem::Bool) => x.into(),
        (other, _) => return Err(NoElem(other.dtype())),
    };
    let nest = Nest::new(sizes, std::iter::once(out.strides));
    runs::each(&nest, range, |coords, n| {
        let to = out.base.wrapping_byte_offset(nest.offset(0, coords) * out.elem.bytes() as isize);
        // SAFETY: a run of elements, which `fill` is promised; `StridedInput::within` and `StridedOutput::within`
        // check the operands.
        unsafe { runs::put(out.elem, bits, to, nest.inner(0) as isize, n) };
    });
    Ok(())
}

/// Puts each element's index along `axis` into elements `range` of the result, in row-major order.
///
/// # Panics
/// If the range is not of the result, there is no such axis, ranks differ, or the result is not of i32.
///
/// # Safety
/// As for [`fill`].
pub unsafe fn iota(sizes: &LoopSizes, axis: usize, out: StridedOutput, range: Range<usize>) {
    assert!(range.end <= sizes.count(), "elements {range:?} of {sizes:?}");
    assert_eq!(out.elem, Elem::I32, "numbers that count");
    // The index is where an operand would lie that has this stride alone.
    let mut only = [0; yirage_ir::types::MAX_RANK];
    only[axis] = 1;
    let only = Strides::new(&only[..sizes.as_slice().len()]).unwrap_or_else(|_| unreachable!("as many as sizes"));
    let nest = Nest::new(sizes, [only, out.strides].into_iter());
    let [count, step] = [0, 1].map(|operand| nest.inner(operand) as isize);
    runs::each(&nest, range, |coords, n| {
        let [first, to] = [0, 1].map(|operand| nest.offset(operand, coords));
        for i in 0..n as isize {
            // SAFETY: an element of the run, which `iota` is promised; `StridedInput::within` and
            // `StridedOutput::within` check the operands.
            unsafe { *out.base.cast::<i32>().offset(to + i * step) = (first + i * count) as i32 };
        }
    });
}
