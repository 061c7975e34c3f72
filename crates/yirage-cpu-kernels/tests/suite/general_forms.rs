//! The expressions of models against f64, at every level, for any rows, in place or not.

use std::ops::Range;
use yirage_cpu_kernels::general::{Elem, ElementProgram, LoopSizes, StridedInput, StridedOutput, Strides, map};
use yirage_cpu_kernels::isa::Isa;
use yirage_ir::dtype::DType;
use yirage_ir::expr::Func;
use yirage_ir::op::Map;
use yirage_testkit::rng::Rng;

/// `n` numbers from -`size` to `size`.
fn floats(rng: &mut Rng, n: usize, size: f32) -> Vec<f32> {
    (0..n).map(|_| rng.signed_f32() * size).collect()
}

const WIDTHS: [usize; 12] = [1, 2, 15, 16, 17, 31, 64, 65, 127, 576, 2048, 2051];

/// Elements between the ends of a row and the next one.
const PADDING: usize = 3;

/// Three rows of an input with what lies between them, or one row for all.
struct Rows {
    values: Vec<f32>,
    stride: usize,
}

impl Rows {
    fn new(x: &[f32], width: usize) -> Rows {
        if x.len() == width {
            return Rows { values: x.to_vec(), stride: 0 };
        }
        let stride = width + PADDING;
        let mut values = vec![7.5f32; 3 * stride];
        (0..3).for_each(|r| values[r * stride..][..width].copy_from_slice(&x[r * width..][..width]));
        Rows { values, stride }
    }
}

fn strides(rows: usize) -> Strides {
    Strides::new(&[rows as i64, 1]).expect("two dimensions")
}

/// Some rows of the expression to `out`; the first input is at `first`.
fn run(
    isa: Isa,
    program: &ElementProgram,
    width: usize,
    rows: Range<usize>,
    first: *const f32,
    ins: &[Rows],
    out: *mut f32,
) {
    let sizes = LoopSizes::new(&[3, width]).expect("small sizes");
    let base = |i: usize| if i == 0 { first } else { ins[i].values.as_ptr() };
    let inputs: Vec<StridedInput> =
        (0..ins.len()).map(|i| StridedInput::at(base(i).cast(), Elem::F32, strides(ins[i].stride))).collect();
    let output = StridedOutput::at(out.cast(), Elem::F32, strides(width + PADDING));
    // SAFETY: all have three rows, or one that is met three times; the output is the first input or of its own.
    unsafe { map(isa, program, &sizes, &inputs, output, rows.start * width..rows.end * width) };
}

/// The expression over three rows at every level: whole, row by row, and in place; the results must be equal to the bit
/// and what lies between rows untouched. Returns the rows without that.
fn everywhere(form: &Map, width: usize, ins: &[&[f32]]) -> Vec<f32> {
    let program = ElementProgram::new(&form.expr, &vec![DType::F32; ins.len()]).expect("an expression of floats");
    let ins: Vec<Rows> = ins.iter().map(|x| Rows::new(x, width)).collect();
    let (own, stride) = (ins[0].values.as_ptr(), width + PADDING);
    let mut first: Option<Vec<f32>> = None;
    for isa in Isa::ALL.iter().copied().filter(|i| i.available()) {
        let mut outs = [vec![7.5f32; 3 * stride], vec![7.5f32; 3 * stride], ins[0].values.clone()];
        run(isa, &program, width, 0..3, own, &ins, outs[0].as_mut_ptr());
        (0..3).for_each(|r| run(isa, &program, width, r..r + 1, own, &ins, outs[1].as_mut_ptr()));
        let place = outs[2].as_mut_ptr();
        run(isa, &program, width, 0..3, place, &ins, place);
        for out in outs {
            let first = first.get_or_insert_with(|| out.clone());
            for (i, (a, b)) in first.iter().zip(&out).enumerate() {
                assert!(a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan(), "{isa} width {width} at {i}: {a} {b}");
            }
            (0..3).for_each(|r| assert!(out[r * stride + width..][..PADDING].iter().all(|&v| v == 7.5)));
        }
    }
    let first = first.expect("there is always the scalar level");
    (0..3).flat_map(|r| first[r * stride..][..width].to_vec()).collect()
}

fn close(got: &[f32], want: &[f64], abs: f64, rel: f64, what: &str) {
    assert_eq!(got.len(), want.len());
    for (i, (&g, &w)) in got.iter().zip(want).enumerate() {
        let e = (f64::from(g) - w).abs();
        assert!(e <= abs + rel * w.abs(), "{what} at {i}: {g} for {w}");
    }
}

/// erfc by its continued fraction and erf by its series.
fn erfc(x: f64) -> f64 {
    if x < 0.0 {
        return 2.0 - erfc(-x);
    }
    if x < 2.5 {
        let (mut term, mut sum) = (x, x);
        for n in 1..120 {
            term *= -x * x / n as f64;
            sum += term / (2 * n + 1) as f64;
        }
        return 1.0 - sum * 2.0 / std::f64::consts::PI.sqrt();
    }
    let tail = (1..=80).rev().fold(0.0, |t, k| f64::from(k) / 2.0 / (x + t));
    (-x * x).exp() / ((x + tail) * std::f64::consts::PI.sqrt())
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn silu(x: f64) -> f64 {
    x * sigmoid(x)
}

fn gelu_tanh(x: f64) -> f64 {
    x * sigmoid(2.0 * (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x))
}

fn gelu_erf(x: f64) -> f64 {
    0.5 * x * erfc(-x / std::f64::consts::SQRT_2)
}

/// A function of one element, and what it is in f64.
type One = (Map, fn(f64) -> f64);
/// A function of two elements, and what it is in f32.
type Two = (Func, fn(f32, f32) -> f32);
/// A gated unit, and what it is in f64.
type Gate = (Map, fn(f64, f64) -> f64);

const SCALE: f32 = 0.3;

#[test]
fn functions_of_one_element() {
    let functions: [(One, f64); 13] = [
        ((Map::scale(SCALE), |x| f64::from(SCALE) * x), 1e-7),
        ((Map::of(Func::Silu), silu), 4e-7),
        ((Map::of(Func::GeluTanh), gelu_tanh), 1e-5),
        ((Map::of(Func::GeluErf), gelu_erf), 1e-5),
        ((Map::of(Func::Tanh), f64::tanh), 3e-7),
        ((Map::of(Func::Sigmoid), sigmoid), 4e-7),
        ((Map::of(Func::Relu), |x| x.max(0.0)), 0.0),
        ((Map::of(Func::Exp), f64::exp), 2e-7),
        ((Map::softcap(30.0), |x| 30.0 * (x / 30.0).tanh()), 4e-7),
        ((Map::of(Func::Square), |x| x * x), 1e-7),
        (
            (Map { expr: Map::of(Func::Square).expr.substitute(|_| Map::of(Func::Relu).expr) }, |x| x.max(0.0).powi(2)),
            1e-7,
        ),
        ((Map::of(Func::Sqrt), f64::sqrt), 1e-7),
        ((Map::inverse_root(100.0), |x| 1.0 / (x + 100.0).sqrt()), 4e-7),
    ];
    let mut rng = Rng::new(3);
    for ((form, exact), rel) in functions {
        for size in [1e-3, 1.0, 8.0, 80.0] {
            let mut x = floats(&mut rng, 3 * 667, size);
            if form == Map::of(Func::Sqrt) {
                x.iter_mut().for_each(|x| *x = x.abs());
            }
            let got = everywhere(&form, 667, &[&x]);
            let want: Vec<f64> = x.iter().map(|&x| exact(f64::from(x))).collect();
            close(&got, &want, 2e-37, rel, &format!("{} size {size}", form.expr));
        }
    }
}

#[test]
fn extreme_elements() {
    let x = [0.0, -0.0, 1e30, -1e30, f32::NAN, 1e-40, -1e-40, 88.0, -88.0, 100.0, -100.0, 200.0, -200.0, 3.0, -3.0];
    let all: Vec<f32> = x.iter().copied().cycle().take(3 * x.len()).collect();
    let functions: [One; 8] = [
        (Map::of(Func::Silu), silu),
        (Map::of(Func::GeluTanh), gelu_tanh),
        (Map::of(Func::GeluErf), gelu_erf),
        (Map::of(Func::Tanh), f64::tanh),
        (Map::of(Func::Sigmoid), sigmoid),
        (Map::of(Func::Relu), |x| x.max(0.0)),
        (Map::of(Func::Exp), f64::exp),
        (Map::softcap(5.0), |x| 5.0 * (x / 5.0).tanh()),
    ];
    for (form, exact) in functions {
        let got = everywhere(&form, x.len(), &[&all]);
        for (&x, &y) in x.iter().zip(&got) {
            let (want, name) = (exact(f64::from(x)), &form.expr);
            if x.is_nan() {
                assert!(y.is_nan(), "{name} of NaN is {y}");
            } else if want > f64::from(f32::MAX) {
                assert_eq!(y, f32::INFINITY, "{name} of {x}");
            } else {
                assert!((f64::from(y) - want).abs() <= 1e-30 + 3e-6 * want.abs(), "{name} of {x}: {y} for {want}");
            }
        }
    }
}

#[test]
fn sums_and_products() {
    let mut rng = Rng::new(4);
    for width in WIDTHS {
        let (a, b) = (floats(&mut rng, 3 * width, 9.0), floats(&mut rng, 3 * width, 9.0));
        let functions: [Two; 4] = [
            (Func::Add, |x, y| x + y),
            (Func::Mul, |x, y| x * y),
            (Func::Sub, |x, y| x - y),
            (Func::Div, |x, y| x / y),
        ];
        for (func, exact) in functions {
            for b in [&b[..], &b[..width]] {
                let want: Vec<f64> = a.iter().zip(b.iter().cycle()).map(|(&x, &y)| exact(x, y).into()).collect();
                close(&everywhere(&Map::of(func), width, &[&a, b]), &want, 0.0, 0.0, func.name());
            }
        }
    }
}

#[test]
fn gates() {
    let mut rng = Rng::new(5);
    let clipped = |g: f64, u: f64| (u.clamp(-7.0, 7.0) + 1.0) * g.min(7.0) / (1.0 + (-1.702 * g.min(7.0)).exp());
    let functions: [Gate; 5] = [
        (Map::gated(Func::Silu), |g, u| silu(g) * u),
        (Map::gated(Func::GeluTanh), |g, u| gelu_tanh(g) * u),
        (Map::gated(Func::GeluErf), |g, u| gelu_erf(g) * u),
        (Map::gated(Func::Sigmoid), |g, u| sigmoid(g) * u),
        (Map::clipped_gate(), clipped),
    ];
    for width in WIDTHS {
        let (gate, up) = (floats(&mut rng, 3 * width, 9.0), floats(&mut rng, 3 * width, 9.0));
        for (form, exact) in &functions {
            let want: Vec<f64> = gate.iter().zip(&up).map(|(&g, &u)| exact(g.into(), u.into())).collect();
            close(&everywhere(form, width, &[&gate, &up]), &want, 1e-6, 3e-6, &form.expr.to_string());
        }
    }
}
