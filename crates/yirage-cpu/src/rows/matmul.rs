//! Products of two activations, a pair of matrices a row.

use super::{Dst, Src};
use crate::general::contract::Sweep;
use crate::isa::Isa;
use crate::simd::{Kernel, Lanes, launch};
use std::ops::Range;

/// Sizes of the matrices of a row: `[m, k]` times `[k, n]`, row-major.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatMul {
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
pub unsafe fn matmul(isa: Isa, rows: Range<usize>, sizes: MatMul, a: Src, b: Src, out: Dst) {
    launch(isa, Products { rows, sizes, a, b, out });
}

/// Sums that the first-level cache holds beside rows of b.
const SUMS: usize = 8192;
/// Rows of a that meet rows of b together.
const ROWS: usize = 32;

struct Products {
    rows: Range<usize>,
    sizes: MatMul,
    a: Src,
    b: Src,
    out: Dst,
}

impl Kernel for Products {
    type Out = ();
    #[inline(always)]
    fn run<V: Lanes>(self) {
        let MatMul { m, k, n } = self.sizes;
        let together = ROWS.min(m.max(1));
        let wide = SUMS / together;
        for r in self.rows {
            // SAFETY: the contract of `matmul`.
            let (a, b, out) = unsafe { (self.a.row(r), self.b.row(r), self.out.row(r)) };
            // SAFETY: as above; the sums are kept where the result goes.
            unsafe { out.write_bytes(0, m * n) };
            for (j, i) in (0..n).step_by(wide).flat_map(|j| (0..m).step_by(together).map(move |i| (j, i))) {
                let (rows, columns) = (together.min(m - i), wide.min(n - j));
                let (a, b, sums) = (a.wrapping_add(i * k), b.wrapping_add(j), out.wrapping_add(i * n + j));
                Sweep { a, line: k, b, down: n as isize, sums, pitch: n, rows, columns, depth: k }.run::<V>();
            }
        }
    }
}
