//! Arithmetic of two rows.

use super::{Dst, Map2, Src, map2};
use crate::isa::Isa;
use crate::simd::{Kernel, Lanes, launch};
use std::ops::Range;
use yirage_ir::op::BinaryKind;

/// `out = a (op) b`, `width` elements a row. A stride of 0 repeats a row.
///
/// # Safety
/// The rows of the range exist; `out` is `a` or `b` or overlaps neither.
pub unsafe fn binary(isa: Isa, rows: Range<usize>, width: usize, kind: BinaryKind, a: Src, b: Src, out: Dst) {
    match kind {
        BinaryKind::Add => launch(isa, Each { rows, width, a, b, out, f: Add }),
        BinaryKind::Mul => launch(isa, Each { rows, width, a, b, out, f: Mul }),
        BinaryKind::Sub => launch(isa, Each { rows, width, a, b, out, f: Sub }),
        BinaryKind::Div => launch(isa, Each { rows, width, a, b, out, f: Div }),
    }
}

struct Each<F> {
    rows: Range<usize>,
    width: usize,
    a: Src,
    b: Src,
    out: Dst,
    f: F,
}

impl<F: Map2> Kernel for Each<F> {
    type Out = ();
    #[inline(always)]
    fn run<V: Lanes>(self) {
        for r in self.rows {
            // SAFETY: the contract of `binary`.
            unsafe { map2::<V, F>(&self.f, self.a.row(r), self.b.row(r), self.out.row(r), self.width) };
        }
    }
}

struct Add;
struct Mul;
struct Sub;
struct Div;

impl Map2 for Add {
    #[inline(always)]
    fn at<V: Lanes>(&self, a: V, b: V) -> V {
        a.add(b)
    }
}
impl Map2 for Mul {
    #[inline(always)]
    fn at<V: Lanes>(&self, a: V, b: V) -> V {
        a.mul(b)
    }
}
impl Map2 for Sub {
    #[inline(always)]
    fn at<V: Lanes>(&self, a: V, b: V) -> V {
        a.sub(b)
    }
}
impl Map2 for Div {
    #[inline(always)]
    fn at<V: Lanes>(&self, a: V, b: V) -> V {
        a.div(b)
    }
}
