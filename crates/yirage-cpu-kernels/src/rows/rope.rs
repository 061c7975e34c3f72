//! Rotary position embedding (Su et al., 2021) by table.

use super::{Dst, Src, load, store};
use crate::isa::Isa;
use crate::simd::{LANES, Lanes, WithLanes, launch};
use std::ops::Range;

/// Heads that rotate, and the tables.
#[derive(Clone, Copy, Debug)]
pub struct RopeParams<'a> {
    /// Heads of a row.
    pub heads: usize,
    /// Elements of a head.
    pub width: usize,
    /// Elements of a head that rotate: even, at most `width`. The rest is copied.
    pub rotary: usize,
    /// Pairs are neighbours `(2i, 2i + 1)` instead of `(i, i + rotary / 2)`.
    pub interleaved: bool,
    /// `[positions][rotary / 2]` cosines; without positions, those of the range's rows.
    pub cos: &'a [f32],
    /// As many sines.
    pub sin: &'a [f32],
}

/// Pair `(a, b)` with `(c, s)` of the row's position becomes `(a c - b s, b c + a s)`. `positions` are those of the range's
/// rows; without them, row i of the range has row i of the tables. Positions outside the tables give NaN.
///
/// # Safety
/// The rows of the range exist in `x` and `out`; `out` is `x` or does not overlap it.
///
/// # Panics
/// If widths or tables do not fit together or positions are too few.
pub unsafe fn rope(isa: Isa, rows: Range<usize>, rope: RopeParams<'_>, positions: Option<&[i32]>, x: Src, out: Dst) {
    let fits = rope.rotary.is_multiple_of(2) && rope.rotary <= rope.width && rope.cos.len() == rope.sin.len();
    assert!(
        fits,
        "rotary {} of heads of {}, tables {} and {}",
        rope.rotary,
        rope.width,
        rope.cos.len(),
        rope.sin.len()
    );
    if let Some(positions) = positions {
        assert!(positions.len() == rows.len(), "{} positions for {} rows", positions.len(), rows.len());
    }
    // SAFETY: `RopeKernel` wants what `rope` promises of its rows.
    unsafe { launch(isa, RopeKernel { rows, rope, positions, x, out }) };
}

/// Needs the rows that [`rope`] is promised.
struct RopeKernel<'a> {
    rows: Range<usize>,
    rope: RopeParams<'a>,
    positions: Option<&'a [i32]>,
    x: Src,
    out: Dst,
}

impl WithLanes for RopeKernel<'_> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        let r = &self.rope;
        let half = r.rotary / 2;
        for (i, row) in self.rows.enumerate() {
            let at = self.positions.map_or(Ok(i), |p| usize::try_from(p[i]));
            let at = at.ok().map(|p| p.saturating_mul(half));
            let at = at.filter(|&a| a.checked_add(half).is_some_and(|end| end <= r.cos.len()));
            for h in 0..r.heads {
                // SAFETY: the contract of `rope`; the table row lies inside the tables.
                unsafe {
                    let (x, out) = (self.x.row(row).add(h * r.width), self.out.row(row).add(h * r.width));
                    std::ptr::copy(x.add(r.rotary), out.add(r.rotary), r.width - r.rotary);
                    match at {
                        None => std::slice::from_raw_parts_mut(out, r.rotary).fill(f32::NAN),
                        Some(at) if r.interleaved => neighbours(&r.cos[at..at + half], &r.sin[at..at + half], x, out),
                        Some(at) => halves::<V>(&r.cos[at..at + half], &r.sin[at..at + half], x, out),
                    }
                }
            }
        }
    }
}

/// Pairs of elements half a head apart.
///
/// # Safety
/// `x` and `out` have two elements for each of `cos`, of which there are as many as of `sin`.
#[inline(always)]
unsafe fn halves<V: Lanes>(cos: &[f32], sin: &[f32], x: *const f32, out: *mut f32) {
    let half = cos.len();
    let zero = V::splat(0.0);
    for i in (0..half).step_by(LANES) {
        let n = half - i;
        // SAFETY: `halves` is promised 2 * half elements of x and out; i is below half; `Site` binds whole rows.
        unsafe {
            let (a, b) = (load::<V>(x.add(i), n, 0.0), load::<V>(x.add(half + i), n, 0.0));
            let (c, s) = (load::<V>(cos.as_ptr().add(i), n, 0.0), load::<V>(sin.as_ptr().add(i), n, 0.0));
            store(two_products(a, c, zero.sub(b), s), out.add(i), n);
            store(two_products(b, c, a, s), out.add(half + i), n);
        }
    }
}

/// `a c + b s` within two units in the last place, also where the products all but cancel (Kahan's way; Jeannerod, Louvet
/// and Muller, 2013).
#[inline(always)]
fn two_products<V: Lanes>(a: V, c: V, b: V, s: V) -> V {
    let product = b.mul(s);
    let lost = b.fma(s, V::splat(0.0).sub(product));
    let sum = a.fma(c, product);
    let whole = sum.add(lost);
    // An infinite product has lost nothing.
    whole.abs().if_less(V::splat(f32::INFINITY), whole, sum)
}

/// Pairs of elements side by side.
///
/// # Safety
/// As for [`halves`].
#[inline(always)]
unsafe fn neighbours(cos: &[f32], sin: &[f32], x: *const f32, out: *mut f32) {
    for (i, (c, s)) in cos.iter().zip(sin).enumerate() {
        // SAFETY: `neighbours` is promised 2 * half elements of x and out; `Site` binds whole rows.
        unsafe {
            let (a, b) = (*x.add(2 * i), *x.add(2 * i + 1));
            *out.add(2 * i) = two_products_of_one(a, *c, -b, *s);
            *out.add(2 * i + 1) = two_products_of_one(b, *c, a, *s);
        }
    }
}

/// [`two_products`] of a single element, to the same bits.
#[inline(always)]
fn two_products_of_one(a: f32, c: f32, b: f32, s: f32) -> f32 {
    let product = b * s;
    let lost = b.mul_add(s, -product);
    let sum = a.mul_add(c, product);
    let whole = sum + lost;
    if whole.is_finite() { whole } else { sum }
}
