//! Elements that are moved and not computed with: runs along the innermost dimension of a loop, bit for bit.

use super::elem::Elem;
use super::nest::{Coords, Nest};
use std::ops::Range;

/// Calls `run` with where each run of the loop's elements `range` begins and how many elements it has.
pub(super) fn each(nest: &Nest, range: Range<usize>, mut run: impl FnMut(&Coords, usize)) {
    if range.is_empty() {
        return;
    }
    let (mut left, mut coords) = (range.len(), nest.coords(range.start));
    while left > 0 {
        let n = nest.left_in_row(&coords).min(left);
        run(&coords, n);
        left -= n;
        nest.advance(&mut coords, n);
    }
}

/// An element's bits as words of its size: a call with the type of the words as `$T`.
macro_rules! with_word {
    ($elem:expr, $T:ident => $call:expr) => {
        match $elem.bytes() {
            4 => {
                type $T = u32;
                $call
            }
            2 => {
                type $T = u16;
                $call
            }
            _ => {
                type $T = u8;
                $call
            }
        }
    };
}

/// Copies `n` elements between places a number of elements apart.
///
/// # Safety
/// They exist at both; the ones that are written overlap none that are read.
pub(super) unsafe fn copy(elem: Elem, from: *const u8, step: isize, to: *mut u8, to_step: isize, n: usize) {
    if step == 1 && to_step == 1 {
        // SAFETY: what `copy` is promised; `StridedInput::within` and `StridedOutput::within` check the operands.
        return unsafe { std::ptr::copy_nonoverlapping(from, to, n * elem.bytes()) };
    }
    with_word!(elem, T => for i in 0..n as isize {
        // SAFETY: what `copy` is promised; `StridedInput::within` and `StridedOutput::within` check the operands.
        unsafe { *to.cast::<T>().offset(i * to_step) = *from.cast::<T>().offset(i * step) };
    });
}

/// Puts the low bits of `bits` into `n` elements.
///
/// # Safety
/// They exist.
pub(super) unsafe fn put(elem: Elem, bits: u32, to: *mut u8, step: isize, n: usize) {
    with_word!(elem, T => for i in 0..n as isize {
        // SAFETY: what `put` is promised; `StridedInput::within` and `StridedOutput::within` check the operands.
        unsafe { *to.cast::<T>().offset(i * step) = bits as T };
    });
}
