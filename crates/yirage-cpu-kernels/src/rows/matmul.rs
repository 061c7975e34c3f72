//! Products of two activations, a pair of matrices a row.

use super::{Dst, Src, load, store};
use crate::isa::Isa;
use crate::simd::{LANES, Lanes, WithLanes, launch};
use std::ops::Range;

/// Sizes of the matrices of a row: `[m, k]` times `[k, n]`, row-major.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatMulSizes {
    /// Rows of the left matrix.
    pub m: usize,
    /// Columns of the left matrix, rows of the right one.
    pub k: usize,
    /// Columns of the right matrix.
    pub n: usize,
}

/// `out[r] = a[r] b[r]`. Each element is one sum over k in ascending order of fused multiply-adds.
///
/// # Safety
/// The rows of the range exist in all three; `out` overlaps neither input.
pub unsafe fn matmul(isa: Isa, rows: Range<usize>, sizes: MatMulSizes, a: Src, b: Src, out: Dst) {
    // SAFETY: `MatMulKernel` wants what `matmul` promises of its rows.
    unsafe { launch(isa, MatMulKernel { rows, sizes, a, b, out }) };
}

/// Rows of a register tile: with two vectors a row they fill the registers of every level.
const TILE: usize = 4;

/// Needs the rows that [`matmul`] is promised.
struct MatMulKernel {
    rows: Range<usize>,
    sizes: MatMulSizes,
    a: Src,
    b: Src,
    out: Dst,
}

impl WithLanes for MatMulKernel {
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        let MatMulSizes { m, k, n } = self.sizes;
        for r in self.rows {
            // SAFETY: the contract of `matmul`.
            let (a, b, out) = unsafe { (self.a.row(r), self.b.row(r), self.out.row(r)) };
            for j in (0..n).step_by(2 * LANES) {
                for i in (0..m).step_by(TILE) {
                    // SAFETY: rows i.. of a and columns j.. of b exist, and so does their part of the output.
                    unsafe {
                        let (a, out) = (a.add(i * k), out.add(i * n + j));
                        match m - i {
                            1 => tile::<V, 1>(k, n, a, b.add(j), n - j, out),
                            2 => tile::<V, 2>(k, n, a, b.add(j), n - j, out),
                            3 => tile::<V, 3>(k, n, a, b.add(j), n - j, out),
                            _ => tile::<V, TILE>(k, n, a, b.add(j), n - j, out),
                        }
                    }
                }
            }
        }
    }
}

/// `R` rows and up to two vectors of columns, `left` of which exist.
///
/// # Safety
/// R rows of a of k elements, k rows of b and R of out with `left` columns.
#[inline(always)]
unsafe fn tile<V: Lanes, const R: usize>(k: usize, n: usize, a: *const f32, b: *const f32, left: usize, out: *mut f32) {
    let second = left.saturating_sub(LANES);
    let mut acc = [[V::splat(0.0); 2]; R];
    for l in 0..k {
        // SAFETY: `tile` is promised `left` columns of each of the k rows, and R rows of a.
        unsafe {
            let row = b.add(l * n);
            let x = load::<V>(row, left, 0.0);
            let y = if second > 0 { load::<V>(row.add(LANES), second, 0.0) } else { V::splat(0.0) };
            for (i, acc) in acc.iter_mut().enumerate() {
                let w = V::splat(*a.add(i * k + l));
                *acc = [w.fma(x, acc[0]), w.fma(y, acc[1])];
            }
        }
    }
    for (i, [x, y]) in acc.into_iter().enumerate() {
        // SAFETY: `tile` is promised the rows and columns of the result; `Site` binds whole rows.
        unsafe {
            store(x, out.add(i * n), left);
            if second > 0 {
                store(y, out.add(i * n + LANES), second);
            }
        }
    }
}
