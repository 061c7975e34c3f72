//! Elementary functions as kernels compute them: made of additions, multiplications and bits alone, so that they are the same
//! on every device, whatever its own functions are worth.

mod power;

pub(crate) use power::{log, pow};

use yirage_kir::{BinaryFunction, KernelWriter, Register, ScalarType, UnaryFunction};

/// Whether it is NaN. Told by its bits: compilers may take for granted that a float equals itself.
pub(crate) fn is_nan(w: &mut KernelWriter, x: Register) -> Register {
    let bits = w.bitcast(ScalarType::U32, x);
    let (sign, infinity) = (w.u32(0x7fff_ffff), w.u32(0x7f80_0000));
    let size = w.and(bits, sign);
    w.less(infinity, size)
}

/// The larger; NaN where either is NaN.
pub(crate) fn larger(w: &mut KernelWriter, a: Register, b: Register) -> Register {
    let (nan, above) = (is_nan(w, a), w.less(b, a));
    let first = w.binary(BinaryFunction::Or, nan, above);
    w.select(first, a, b)
}

/// The smaller; NaN where either is NaN.
pub(crate) fn smaller(w: &mut KernelWriter, a: Register, b: Register) -> Register {
    let (nan, below) = (is_nan(w, a), w.less(a, b));
    let first = w.binary(BinaryFunction::Or, nan, below);
    w.select(first, a, b)
}

/// Cut off to a whole number: at the ends of the range the nearest, NaN 0.
pub(crate) fn to_i32(w: &mut KernelWriter, x: Register) -> Register {
    let (low, high) = (w.f32(-2_147_483_648.0), w.f32(2_147_483_648.0));
    let (below, above, nan) = (w.less(x, low), w.less_equal(high, x), is_nan(w, x));
    let zero = w.f32(0.0);
    let out = w.or(below, above);
    let out = w.or(out, nan);
    let inside = w.select(out, zero, x);
    let cut = w.convert(ScalarType::I32, inside);
    let (least, most) = (w.i32(i32::MIN), w.i32(i32::MAX));
    let cut = w.select(below, least, cut);
    w.select(above, most, cut)
}

/// The same without sign.
pub(crate) fn to_u32(w: &mut KernelWriter, x: Register) -> Register {
    let (zero, high) = (w.f32(0.0), w.f32(4_294_967_296.0));
    let (below, above, nan) = (w.less(x, zero), w.less_equal(high, x), is_nan(w, x));
    let out = w.or(below, above);
    let out = w.or(out, nan);
    let inside = w.select(out, zero, x);
    let cut = w.convert(ScalarType::U32, inside);
    let most = w.u32(u32::MAX);
    w.select(above, most, cut)
}

/// Two floats as f16 in a word: to nearest, ties to even, what is too large infinite.
pub(crate) fn pack_f16(w: &mut KernelWriter, low: Register, high: Register) -> Register {
    let (low, high) = (f16_bits(w, low), f16_bits(w, high));
    let sixteen = w.u32(16);
    let high = w.shl(high, sixteen);
    w.or(low, high)
}

/// A float as the bits of the nearest f16, ties to even.
pub(crate) fn f16_bits(w: &mut KernelWriter, x: Register) -> Register {
    let bits = w.bitcast(ScalarType::U32, x);
    let (mask, sign_mask, sixteen) = (w.u32(0x7fff_ffff), w.u32(0x8000_0000), w.u32(16));
    let (size, sign) = (w.and(bits, mask), w.and(bits, sign_mask));
    let sign = w.shr(sign, sixteen);
    // A normal f16: the exponent moves by 112, and 13 bits are rounded away.
    let (thirteen, one, half, bias) = (w.u32(13), w.u32(1), w.u32(0xfff), w.u32(112 << 23));
    let moved = w.sub(size, bias);
    let odd = w.shr(moved, thirteen);
    let odd = w.and(odd, one);
    let up = w.add(moved, half);
    let up = w.add(up, odd);
    let normal = w.shr(up, thirteen);
    // A subnormal one: the float that is added leaves the rounded number in the lowest bits.
    let magic = w.f32(0.5);
    let float = w.bitcast(ScalarType::F32, size);
    let sum = w.add(float, magic);
    let sum = w.bitcast(ScalarType::U32, sum);
    let magic = w.u32(0.5f32.to_bits());
    let subnormal = w.sub(sum, magic);
    let (least_normal, past_largest, infinity) = (w.u32(113 << 23), w.u32(0x4780_0000), w.u32(0x7c00));
    let small = w.less(size, least_normal);
    let value = w.select(small, subnormal, normal);
    let large = w.less_equal(past_largest, size);
    let value = w.select(large, infinity, value);
    let (nan, nan_bits) = (is_nan(w, x), w.u32(0x7e00));
    let value = w.select(nan, nan_bits, value);
    w.or(sign, value)
}

/// A float as the bits of the nearest bf16, ties to even.
pub(crate) fn bf16_bits(w: &mut KernelWriter, x: Register) -> Register {
    let bits = w.bitcast(ScalarType::U32, x);
    let (sixteen, one, half) = (w.u32(16), w.u32(1), w.u32(0x7fff));
    let odd = w.shr(bits, sixteen);
    let odd = w.and(odd, one);
    let up = w.add(bits, half);
    let up = w.add(up, odd);
    let rounded = w.shr(up, sixteen);
    let (nan, nan_bits) = (is_nan(w, x), w.u32(0x7fc0));
    w.select(nan, nan_bits, rounded)
}

/// The nearest f16 as a float.
pub(crate) fn round_to_f16(w: &mut KernelWriter, x: Register) -> Register {
    let bits = f16_bits(w, x);
    w.unpack_half(bits, false)
}

/// The nearest bf16 as a float.
pub(crate) fn round_to_bf16(w: &mut KernelWriter, x: Register) -> Register {
    let (bits, sixteen) = (bf16_bits(w, x), w.u32(16));
    let bits = w.shl(bits, sixteen);
    w.bitcast(ScalarType::F32, bits)
}

/// Horner's rule, highest coefficient first.
fn polynomial(w: &mut KernelWriter, x: Register, coefficients: &[f32]) -> Register {
    let mut value = w.f32(coefficients[0]);
    for &c in &coefficients[1..] {
        let (product, c) = (w.mul(value, x), w.f32(c));
        value = w.add(product, c);
    }
    value
}

/// `x` times 2 to the power of a whole number from -300 to 300: by two factors, so that each is a number.
fn scale(w: &mut KernelWriter, x: Register, n: Register) -> Register {
    let n = w.convert(ScalarType::I32, n);
    let two = w.i32(2);
    let half = w.div(n, two);
    let rest = w.sub(n, half);
    let (a, b) = (power_of_two(w, half), power_of_two(w, rest));
    let x = w.mul(x, a);
    w.mul(x, b)
}

fn power_of_two(w: &mut KernelWriter, n: Register) -> Register {
    let bias = w.i32(127);
    let biased = w.add(n, bias);
    let biased = w.bitcast(ScalarType::U32, biased);
    let bits = w.u32(23);
    let bits = w.shl(biased, bits);
    w.bitcast(ScalarType::F32, bits)
}

/// `e^r` within half of ln 2 of 0.
fn exp_near(w: &mut KernelWriter, r: Register) -> Register {
    polynomial(w, r, &[1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0])
}

/// `e^x`; NaN of NaN.
pub(crate) fn exp(w: &mut KernelWriter, x: Register) -> Register {
    let (low, high) = (w.f32(-104.0), w.f32(89.0));
    let nan = is_nan(w, x);
    let inside = w.select(nan, low, x);
    let inside = w.max(inside, low);
    let inside = w.min(inside, high);
    let log2e = w.f32(std::f32::consts::LOG2_E);
    let n = w.mul(inside, log2e);
    let n = w.unary(UnaryFunction::Round, n);
    // ln 2 in two parts: n times the first is exact.
    let (first, second) = (w.f32(0.693_359_4), w.f32(-2.121_944_4e-4));
    let (a, b) = (w.mul(n, first), w.mul(n, second));
    let r = w.sub(inside, a);
    let r = w.sub(r, b);
    let near = exp_near(w, r);
    let value = scale(w, near, n);
    w.select(nan, x, value)
}

/// `1 / (1 + e^-x)`.
pub(crate) fn sigmoid(w: &mut KernelWriter, x: Register) -> Register {
    let (minus, one) = (w.unary(UnaryFunction::Neg, x), w.f32(1.0));
    let e = exp(w, minus);
    let below = w.add(one, e);
    w.div(one, below)
}

/// `x sigmoid(x)`.
pub(crate) fn silu(w: &mut KernelWriter, x: Register) -> Register {
    let s = sigmoid(w, x);
    w.mul(x, s)
}

/// `tanh x`: an odd polynomial below 0.65 (2e-7 of the second term on), by the exponential above.
pub(crate) fn tanh(w: &mut KernelWriter, x: Register) -> Register {
    let z = w.mul(x, x);
    let p = polynomial(w, z, &[-0.005_923_963, 0.020_873_662, -0.053_823_81, 0.133_325_84, -0.333_333_27]);
    let (pz, size) = (w.mul(p, z), w.unary(UnaryFunction::Abs, x));
    let bend = w.mul(pz, x);
    let near = w.add(bend, x);
    let (minus_two, one, border) = (w.f32(-2.0), w.f32(1.0), w.f32(0.65));
    let t = w.mul(size, minus_two);
    let t = exp(w, t);
    let (above, below) = (w.sub(one, t), w.add(one, t));
    let far = w.div(above, below);
    let far = with_sign_of(w, far, x);
    let small = w.less(size, border);
    w.select(small, near, far)
}

/// A number that is not negative with the sign of another.
fn with_sign_of(w: &mut KernelWriter, size: Register, x: Register) -> Register {
    let (bits, mask) = (w.bitcast(ScalarType::U32, x), w.u32(1 << 31));
    let (sign, size) = (w.and(bits, mask), w.bitcast(ScalarType::U32, size));
    let bits = w.or(size, sign);
    w.bitcast(ScalarType::F32, bits)
}

/// `0.5 (1 + erf(x / sqrt 2))`, the normal distribution; relative error below 1e-6, in the tail below -4 growing as
/// `x^2` times an f32 rounding. With `y = |x / sqrt 2|`: below 1 an odd polynomial (1e-9), else `e^(-y^2) t P(t)` with
/// `t = 1 / (1 + y / 2)` (1.5e-8). Of NaN any number.
fn normal_cdf(w: &mut KernelWriter, x: Register) -> Register {
    let (zero, half, one) = (w.f32(0.0), w.f32(0.5), w.f32(1.0));
    let (root_half, most) = (w.f32(std::f32::consts::FRAC_1_SQRT_2), w.f32(14.0));
    let y = w.mul(x, root_half);
    let nan = is_nan(w, y);
    let y = w.select(nan, zero, y);
    let size = w.unary(UnaryFunction::Abs, y);
    let size = w.min(size, most);
    let z = w.mul(y, y);
    let p = polynomial(w, z, &NEAR_NORMAL);
    let p = w.mul(p, y);
    let near = w.mul(p, half);
    let near = w.add(near, half);
    let below = w.mul(half, size);
    let below = w.add(below, one);
    let t = w.div(one, below);
    let q = polynomial(w, t, &NORMAL_TAIL);
    let square = w.mul(size, size);
    let minus = w.unary(UnaryFunction::Neg, square);
    let (e, tq) = (exp(w, minus), w.mul(t, q));
    let tail = w.mul(half, e);
    let tail = w.mul(tail, tq);
    let (rest, negative) = (w.sub(one, tail), w.less(y, zero));
    let far = w.select(negative, tail, rest);
    let small = w.less(size, one);
    w.select(small, near, far)
}

const NEAR_NORMAL: [f32; 7] = [
    7.853_847e-5,
    -8.010_189e-4,
    5.188_327e-3,
    -0.026_853_812,
    0.112_835_85,
    -0.376_126_26,
    std::f32::consts::FRAC_2_SQRT_PI,
];

const NORMAL_TAIL: [f32; 8] =
    [0.096_422_4, -0.234_974_81, 0.093_251_94, 0.053_802_067, 0.181_567_82, 0.246_339_98, 0.282_114_1, 0.282_094_75];

/// `0.5 x (1 + erf(x / sqrt 2))`.
pub(crate) fn gelu_erf(w: &mut KernelWriter, x: Register) -> Register {
    let cdf = normal_cdf(w, x);
    w.mul(x, cdf)
}

/// `0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))` (Hendrycks and Gimpel, 2016).
pub(crate) fn gelu_tanh(w: &mut KernelWriter, x: Register) -> Register {
    // 0.5 (1 + tanh u) = sigmoid(2u) keeps the small values of negative x.
    let (cubic, factor) = (w.f32(0.044_715), w.f32(1.595_769));
    let square = w.mul(x, x);
    let cube = w.mul(square, x);
    let bend = w.mul(cube, cubic);
    let u = w.add(bend, x);
    let u = w.mul(u, factor);
    let s = sigmoid(w, u);
    w.mul(x, s)
}
