//! Dense or strided copies of strided elements, as they are.

use super::nest::{AccessPattern, Coords, Nest};
use super::operand::{LoopSizes, StridedInput, StridedOutput};
use std::ops::Range;

/// Rows and columns that are turned together: their lines of memory stay in the cache.
const BLOCK: usize = 32;

/// The elements `range` of the loop, in row-major order, from the input to the output.
///
/// # Safety
/// All elements of the range exist in both, as [`StridedInput::within`] and [`StridedOutput::within`] check; no two of the output are
/// one; its memory is none of the input's.
///
/// # Panics
/// If elements are not of one size, or the operands have not a stride for each of the loop's.
pub unsafe fn copy(sizes: &LoopSizes, input: StridedInput, output: StridedOutput, range: Range<usize>) {
    assert_eq!(input.elem, output.elem, "a copy changes no type");
    assert!(range.end <= sizes.count(), "elements {range:?} of {sizes:?}");
    if range.is_empty() {
        return;
    }
    let nest = Nest::new(sizes, [input.strides, output.strides].into_iter());
    let bytes = input.elem.bytes();
    let copy = Copy { nest: &nest, from: input.base, to: output.base, bytes: bytes as isize };
    // SAFETY: what `copy` is promised; `StridedInput::within` and `StridedOutput::within` check the operands.
    unsafe {
        match bytes {
            4 => copy.run::<u32>(range),
            2 => copy.run::<u16>(range),
            _ => copy.run::<u8>(range),
        }
    }
}

const FROM: usize = 0;
const TO: usize = 1;

struct Copy<'a> {
    nest: &'a Nest,
    from: *const u8,
    to: *mut u8,
    bytes: isize,
}

impl Copy<'_> {
    /// Where an element is read and written.
    unsafe fn at<T>(&self, coords: &Coords) -> (*const T, *mut T) {
        // SAFETY: the contract of `copy`.
        unsafe {
            (
                self.from.offset(self.nest.offset(FROM, coords) * self.bytes).cast(),
                self.to.offset(self.nest.offset(TO, coords) * self.bytes).cast(),
            )
        }
    }

    unsafe fn run<T: std::marker::Copy>(&self, range: Range<usize>) {
        let nest = self.nest;
        // SAFETY: the contract of `copy`.
        unsafe {
            if nest.of(FROM) == AccessPattern::Dense && nest.of(TO) == AccessPattern::Dense {
                let (from, to) = (self.from.cast::<T>(), self.to.cast::<T>());
                return std::ptr::copy_nonoverlapping(from.add(range.start), to.add(range.start), range.len());
            }
            let (mut at, mut coords) = (range.start, nest.coords(range.start));
            while at < range.end {
                let rows = if self.turned() { nest.whole_rows(&coords, range.end - at) } else { 0 };
                if rows > 1 {
                    self.turn::<T>(&coords, rows);
                    nest.advance_rows(&mut coords, rows);
                    at += rows * nest.row();
                } else {
                    let n = nest.left_in_row(&coords).min(range.end - at);
                    self.line::<T>(&coords, n);
                    nest.advance(&mut coords, n);
                    at += n;
                }
            }
        }
    }

    /// Whether the input's neighbours lie across rows rather than along them.
    fn turned(&self) -> bool {
        self.nest.across(FROM).is_some_and(|across| across.abs() < self.nest.inner(FROM).abs())
    }

    /// Whole rows, block by block.
    unsafe fn turn<T: std::marker::Copy>(&self, coords: &Coords, rows: usize) {
        let nest = self.nest;
        let along = [FROM, TO].map(|operand| nest.inner(operand) as isize);
        let across = [FROM, TO].map(|operand| nest.across(operand).unwrap_or(0) as isize);
        // SAFETY: the contract of `copy`.
        unsafe {
            let (from, to) = self.at::<T>(coords);
            for left in (0..nest.row()).step_by(BLOCK) {
                for top in (0..rows).step_by(BLOCK) {
                    for r in top..rows.min(top + BLOCK) {
                        let row = [FROM, TO].map(|operand| r as isize * across[operand]);
                        for c in left as isize..nest.row().min(left + BLOCK) as isize {
                            *to.offset(row[TO] + c * along[TO]) = *from.offset(row[FROM] + c * along[FROM]);
                        }
                    }
                }
            }
        }
    }

    /// Elements of one row.
    unsafe fn line<T: std::marker::Copy>(&self, coords: &Coords, n: usize) {
        let (step_from, step_to) = (self.nest.inner(FROM) as isize, self.nest.inner(TO) as isize);
        // SAFETY: the contract of `copy`.
        unsafe {
            let (from, to) = self.at::<T>(coords);
            if step_from == 1 && step_to == 1 {
                return std::ptr::copy_nonoverlapping(from, to, n);
            }
            for i in 0..n as isize {
                *to.offset(i * step_to) = *from.offset(i * step_from);
            }
        }
    }
}
