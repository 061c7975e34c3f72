//! Functions of one element.

use super::{Dst, Map, Src, map};
use crate::isa::Isa;
use crate::simd::{Kernel, Lanes, launch, math};
use std::ops::Range;
use yirage_ir::op::UnaryKind;

/// The function of `width` elements of each row, with the parameter that some have.
///
/// # Safety
/// The rows of the range exist in `x` and `out`; `out` is `x` or does not overlap it.
#[allow(clippy::too_many_arguments)]
pub unsafe fn unary(isa: Isa, rows: Range<usize>, width: usize, kind: UnaryKind, c: f32, x: Src, out: Dst) {
    let call = Call { rows, width, x, out };
    match kind {
        UnaryKind::Scale => launch(isa, Each(call, Scale(c))),
        UnaryKind::Silu => launch(isa, Each(call, Silu)),
        UnaryKind::GeluTanh => launch(isa, Each(call, GeluTanh)),
        UnaryKind::GeluErf => launch(isa, Each(call, GeluErf)),
        UnaryKind::Tanh => launch(isa, Each(call, Tanh)),
        UnaryKind::Sigmoid => launch(isa, Each(call, Sigmoid)),
        UnaryKind::Relu => launch(isa, Each(call, Relu)),
        UnaryKind::Exp => launch(isa, Each(call, Exp)),
        UnaryKind::Softcap => launch(isa, Each(call, Softcap(c))),
        UnaryKind::Square => launch(isa, Each(call, Square)),
        UnaryKind::Sqrt => launch(isa, Each(call, Sqrt)),
        UnaryKind::Rsqrt => launch(isa, Each(call, Rsqrt(c))),
    }
}

struct Call {
    rows: Range<usize>,
    width: usize,
    x: Src,
    out: Dst,
}

struct Each<F>(Call, F);

impl<F: Map> Kernel for Each<F> {
    type Out = ();
    #[inline(always)]
    fn run<V: Lanes>(self) {
        let Each(call, f) = self;
        for r in call.rows {
            // SAFETY: the contract of `unary`.
            unsafe { map::<V, F>(&f, call.x.row(r), call.out.row(r), call.width) };
        }
    }
}

struct Scale(f32);
struct Relu;
struct Exp;
struct Tanh;
struct Sigmoid;
struct Softcap(f32);
struct Square;
struct Sqrt;
struct Rsqrt(f32);
/// Also a gate of [`super::glu`].
pub(super) struct Silu;
/// Also a gate of [`super::glu`].
pub(super) struct GeluTanh;
/// Also a gate of [`super::glu`].
pub(super) struct GeluErf;

impl Map for Scale {
    #[inline(always)]
    fn at<V: Lanes>(&self, x: V) -> V {
        x.mul(V::splat(self.0))
    }
}
impl Map for Relu {
    #[inline(always)]
    fn at<V: Lanes>(&self, x: V) -> V {
        // The order keeps NaN.
        V::splat(0.0).max(x)
    }
}
impl Map for Exp {
    #[inline(always)]
    fn at<V: Lanes>(&self, x: V) -> V {
        math::exp(x)
    }
}
impl Map for Tanh {
    #[inline(always)]
    fn at<V: Lanes>(&self, x: V) -> V {
        math::tanh(x)
    }
}
impl Map for Sigmoid {
    #[inline(always)]
    fn at<V: Lanes>(&self, x: V) -> V {
        math::sigmoid(x)
    }
}
impl Map for Softcap {
    #[inline(always)]
    fn at<V: Lanes>(&self, x: V) -> V {
        math::tanh(x.div(V::splat(self.0))).mul(V::splat(self.0))
    }
}
impl Map for Square {
    #[inline(always)]
    fn at<V: Lanes>(&self, x: V) -> V {
        x.mul(x)
    }
}
impl Map for Sqrt {
    #[inline(always)]
    fn at<V: Lanes>(&self, x: V) -> V {
        x.sqrt()
    }
}
impl Map for Rsqrt {
    #[inline(always)]
    fn at<V: Lanes>(&self, x: V) -> V {
        V::splat(1.0).div(x.add(V::splat(self.0)).sqrt())
    }
}
impl Map for Silu {
    #[inline(always)]
    fn at<V: Lanes>(&self, x: V) -> V {
        math::silu(x)
    }
}
impl Map for GeluTanh {
    #[inline(always)]
    fn at<V: Lanes>(&self, x: V) -> V {
        math::gelu_tanh(x)
    }
}
impl Map for GeluErf {
    #[inline(always)]
    fn at<V: Lanes>(&self, x: V) -> V {
        math::gelu_erf(x)
    }
}
