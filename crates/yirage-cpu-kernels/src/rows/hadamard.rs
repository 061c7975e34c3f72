//! Parts of rows times a Hadamard matrix, by butterflies.

use super::{Dst, Src};
use crate::isa::Isa;
use crate::simd::{LANES, Lanes, WithLanes, launch};
use std::ops::Range;

/// Each `part` elements (a power of two) of rows of `width` times the Hadamard matrix of that size in Sylvester's order,
/// over the root of `part`. Sums of elements that are 1, 2, 4, ... apart, in this order at every level, then a product.
///
/// # Safety
/// The rows of the range exist in `x` and `out`; `out` is `x` or does not overlap it.
///
/// # Panics
/// If `part` is no power of two or does not divide `width`.
pub unsafe fn hadamard(isa: Isa, rows: Range<usize>, width: usize, part: usize, x: Src, out: Dst) {
    assert!(part.is_power_of_two() && width.is_multiple_of(part), "rows of {width} in parts of {part}");
    // SAFETY: `HadamardKernel` wants what `hadamard` promises of its rows.
    unsafe { launch(isa, HadamardKernel { rows, width, part, x, out }) };
}

/// Needs the rows that [`hadamard`] is promised.
struct HadamardKernel {
    rows: Range<usize>,
    width: usize,
    part: usize,
    x: Src,
    out: Dst,
}

impl WithLanes for HadamardKernel {
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        let factor = (1.0 / (self.part as f64).sqrt()) as f32;
        for row in self.rows {
            // SAFETY: the contract of `hadamard`; parts fill the row.
            unsafe {
                let out = self.out.row(row);
                std::ptr::copy(self.x.row(row), out, self.width);
                for at in (0..self.width).step_by(self.part) {
                    if self.part < LANES {
                        let part = std::slice::from_raw_parts_mut(out.add(at), self.part);
                        near(part);
                        part.iter_mut().for_each(|x| *x *= factor);
                    } else {
                        far::<V>(out.add(at), self.part, factor);
                    }
                }
            }
        }
    }
}

/// Butterflies within at most sixteen elements.
#[inline(always)]
fn near(x: &mut [f32]) {
    let mut apart = 1;
    while apart < x.len() {
        for pair in x.chunks_exact_mut(2 * apart) {
            let (low, high) = pair.split_at_mut(apart);
            for (a, b) in low.iter_mut().zip(high) {
                (*a, *b) = (*a + *b, *a - *b);
            }
        }
        apart *= 2;
    }
}

/// A part of whole vectors: butterflies within each, then between them.
///
/// # Safety
/// `x` has `part` elements, a multiple of sixteen.
#[inline(always)]
unsafe fn far<V: Lanes>(x: *mut f32, part: usize, factor: f32) {
    // SAFETY: `far` is promised `part` elements, a multiple of sixteen.
    unsafe {
        for at in (0..part).step_by(LANES) {
            near(&mut *x.add(at).cast::<[f32; LANES]>());
        }
        let mut apart = LANES;
        while apart < part {
            for first in (0..part).step_by(2 * apart) {
                for at in (first..first + apart).step_by(LANES) {
                    let (a, b) = (V::load(x.add(at)), V::load(x.add(at + apart)));
                    a.add(b).store(x.add(at));
                    a.sub(b).store(x.add(at + apart));
                }
            }
            apart *= 2;
        }
        for at in (0..part).step_by(LANES) {
            V::load(x.add(at)).mul(V::splat(factor)).store(x.add(at));
        }
    }
}
