//! Elementary functions on lanes, made of the same operations at every level. The polynomials are our own minimax
//! fits (relative error in parentheses).

use super::Lanes;

/// `e^x`, relative error below 2e-7; 0 below -104, infinite above 88.8.
#[inline(always)]
pub fn exp<V: Lanes>(x: V) -> V {
    let x = V::splat(89.0).min(V::splat(-104.0).max(x));
    let n = x.mul(V::splat(std::f32::consts::LOG2_E)).round();
    // ln 2 in two parts: n times the first is exact.
    let r = n.fma(V::splat(-0.693_359_4), x);
    let r = n.fma(V::splat(2.121_944_4e-4), r);
    exp_near(r).scale(n)
}

/// `e^r` within half of ln 2 of 0.
#[inline(always)]
pub(super) fn exp_near<V: Lanes>(r: V) -> V {
    polynomial(r, [1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0])
}

/// `1 / (1 + e^-x)`.
#[inline(always)]
pub fn sigmoid<V: Lanes>(x: V) -> V {
    let one = V::splat(1.0);
    one.div(one.add(exp(V::splat(0.0).sub(x))))
}

/// Horner's rule, highest coefficient first.
#[inline(always)]
pub(super) fn polynomial<V: Lanes, const N: usize>(x: V, c: [f32; N]) -> V {
    let mut p = V::splat(c[0]);
    for c in &c[1..] {
        p = p.fma(x, V::splat(*c));
    }
    p
}

/// `tanh x`: odd polynomial below 0.65 (2e-7 of the second term on), by the exponential above.
#[inline(always)]
pub fn tanh<V: Lanes>(x: V) -> V {
    let z = x.mul(x);
    let p = polynomial(z, [-0.005_923_963, 0.020_873_662, -0.053_823_81, 0.133_325_84, -0.333_333_27]);
    let near = p.mul(z).fma(x, x);
    let (one, t) = (V::splat(1.0), exp(x.abs().mul(V::splat(-2.0))));
    let far = one.sub(t).div(one.add(t)).with_sign(x);
    x.abs().if_less(V::splat(0.65), near, far)
}

/// `0.5 (1 + erf(x / sqrt 2))`, the normal distribution; relative error below 1e-6, in the tail below -4 growing as
/// `x^2` times an f32 rounding. With `y = |x / sqrt 2|`: below 1 an odd polynomial (1e-9), else `e^(-y^2) t P(t)` with
/// `t = 1 / (1 + y / 2)` (1.5e-8).
#[inline(always)]
pub fn normal_cdf<V: Lanes>(x: V) -> V {
    let (one, half) = (V::splat(1.0), V::splat(0.5));
    let y = x.mul(V::splat(std::f32::consts::FRAC_1_SQRT_2));
    let size = V::splat(14.0).min(y.abs());
    let z = y.mul(y);
    let p = polynomial(
        z,
        [
            7.853_847e-5,
            -8.010_189e-4,
            5.188_327e-3,
            -0.026_853_812,
            0.112_835_85,
            -0.376_126_26,
            std::f32::consts::FRAC_2_SQRT_PI,
        ],
    );
    let near = p.mul(y).fma(half, half);
    let t = one.div(half.fma(size, one));
    let q = polynomial(
        t,
        [
            0.096_422_4,
            -0.234_974_81,
            0.093_251_94,
            0.053_802_067,
            0.181_567_82,
            0.246_339_98,
            0.282_114_1,
            0.282_094_75,
        ],
    );
    let tail = half.mul(exp(V::splat(0.0).sub(size.mul(size)))).mul(t.mul(q));
    let far = y.if_less(V::splat(0.0), tail, one.sub(tail));
    size.if_less(one, near, far)
}

/// `x sigmoid(x)`.
#[inline(always)]
pub fn silu<V: Lanes>(x: V) -> V {
    x.mul(sigmoid(x))
}

/// `0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))` (Hendrycks and Gimpel, 2016).
#[inline(always)]
pub fn gelu_tanh<V: Lanes>(x: V) -> V {
    // 0.5 (1 + tanh u) = sigmoid(2u) keeps the small values of negative x.
    let u = x.mul(x).mul(x).fma(V::splat(0.044_715), x).mul(V::splat(1.595_769));
    x.mul(sigmoid(u))
}

/// `0.5 x (1 + erf(x / sqrt 2))`.
#[inline(always)]
pub fn gelu_erf<V: Lanes>(x: V) -> V {
    x.mul(normal_cdf(x))
}

/// The larger; NaN where either is NaN.
#[inline(always)]
pub fn larger<V: Lanes>(a: V, b: V) -> V {
    a.equal(a).choose(a.max(b), a)
}

/// The smaller; NaN where either is NaN.
#[inline(always)]
pub fn smaller<V: Lanes>(a: V, b: V) -> V {
    a.equal(a).choose(a.min(b), a)
}
