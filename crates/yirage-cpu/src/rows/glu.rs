//! Gated linear units (Shazeer, 2020).

use super::unary::{GeluErf, GeluTanh, Silu};
use super::{Dst, Map, Map2, Src, map2};
use crate::isa::Isa;
use crate::simd::{Kernel, Lanes, launch, math};
use std::ops::Range;
use yirage_ir::op::GluKind;

/// The unit over `width` elements of each row.
///
/// # Safety
/// The rows of the range exist; `out` is `gate` or `up` or overlaps neither.
pub unsafe fn glu(isa: Isa, rows: Range<usize>, width: usize, kind: GluKind, gate: Src, up: Src, out: Dst) {
    let call = Call { rows, width, gate, up, out };
    match kind {
        GluKind::Silu => launch(isa, Each(call, Gate(Silu))),
        GluKind::GeluTanh => launch(isa, Each(call, Gate(GeluTanh))),
        GluKind::GeluErf => launch(isa, Each(call, Gate(GeluErf))),
        GluKind::GptOss => launch(isa, Each(call, GptOss)),
    }
}

struct Call {
    rows: Range<usize>,
    width: usize,
    gate: Src,
    up: Src,
    out: Dst,
}

struct Each<F>(Call, F);

impl<F: Map2> Kernel for Each<F> {
    type Out = ();
    #[inline(always)]
    fn run<V: Lanes>(self) {
        let Each(call, f) = self;
        for r in call.rows {
            // SAFETY: the contract of `glu`.
            unsafe { map2::<V, F>(&f, call.gate.row(r), call.up.row(r), call.out.row(r), call.width) };
        }
    }
}

struct Gate<F>(F);
struct GptOss;

impl<F: Map> Map2 for Gate<F> {
    #[inline(always)]
    fn at<V: Lanes>(&self, gate: V, up: V) -> V {
        self.0.at(gate).mul(up)
    }
}

impl Map2 for GptOss {
    #[inline(always)]
    fn at<V: Lanes>(&self, gate: V, up: V) -> V {
        let (gate, up) = (V::splat(7.0).min(gate), V::splat(7.0).min(V::splat(-7.0).max(up)));
        up.add(V::splat(1.0)).mul(gate).mul(math::sigmoid(gate.mul(V::splat(1.702))))
    }
}
