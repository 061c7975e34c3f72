//! Each function over the range of its arguments, against f64, by the interpreter.

use crate::{expression, math};
use yirage_ir::expr::Func;
use yirage_kir::interpret::{InterpretedKernel, InterpreterSettings};
use yirage_kir::{BufferAccess, BufferOwnership, KernelWriter, Register, ScalarType};

const THREADS: u32 = 64;

/// What a function of f32 gives for each of these arguments.
fn computed(arguments: &[Vec<f32>], f: impl Fn(&mut KernelWriter, &[Register]) -> Register) -> Vec<u32> {
    let count = arguments[0].len() as u32;
    let mut w = KernelWriter::new("f", THREADS);
    let mut buffer = |access| w.buffer("x", ScalarType::U32, access, BufferOwnership::Own);
    let inputs: Vec<_> = arguments.iter().map(|_| buffer(BufferAccess::Read)).collect();
    let output = buffer(BufferAccess::Write);
    let (group, thread, threads, end) = (w.group(0), w.thread(), w.u32(THREADS), w.u32(count));
    let first = w.mul(group, threads);
    let at = w.add(first, thread);
    let inside = w.less(at, end);
    w.when(inside, |w| {
        let float = |&memory| {
            let word = w.load(memory, at);
            w.bitcast(ScalarType::F32, word)
        };
        let x: Vec<Register> = inputs.iter().map(float).collect();
        let value = f(w, &x);
        let word = w.bitcast(ScalarType::U32, value);
        w.store(output, at, word);
    });
    let mut words: Vec<Vec<u32>> = arguments.iter().map(|x| x.iter().map(|x| x.to_bits()).collect()).collect();
    words.push(vec![0; count as usize]);
    let mut bound: Vec<&mut [u32]> = words.iter_mut().map(Vec::as_mut_slice).collect();
    let kernel = InterpretedKernel::new(w.finish()).unwrap();
    kernel.run([count.div_ceil(THREADS), 1, 1], &mut bound, &InterpreterSettings::default()).unwrap();
    words.pop().unwrap()
}

/// Floats of every sign, exponent and seven bits of mantissa, with something in the other bits.
fn all_floats() -> Vec<f32> {
    let spread = |upper: u32| f32::from_bits(upper << 16 | upper.wrapping_mul(40_503) & 0xffff);
    let ends = (0..1 << 16).map(|upper| f32::from_bits(upper << 16));
    ends.chain((0..1 << 16).map(spread)).collect()
}

/// Whether a result is what f64 says, within what the function is allowed and a rounding.
fn is_close(func: Func, got: f32, want: f64) -> bool {
    if want.is_nan() || (want as f32) == got {
        return want.is_nan() == got.is_nan();
    }
    let (absolute, relative) = func.tolerance();
    let most = absolute + (relative + f64::from(f32::EPSILON)) * want.abs();
    // A number that may be beyond the largest one may be infinite.
    let overflows = want.abs() + most > f64::from(f32::MAX);
    if got.is_infinite() { overflows && (got > 0.0) == (want > 0.0) } else { (f64::from(got) - want).abs() <= most }
}

/// Compares a function, as expressions have it, with f64 for each of these arguments.
fn holds(func: Func, arguments: &[Vec<f32>]) {
    let got = computed(arguments, |w, x| expression::call(w, func, x));
    let mut wrong = Vec::new();
    for (at, got) in got.into_iter().map(f32::from_bits).enumerate() {
        let x: Vec<f32> = arguments.iter().map(|x| x[at]).collect();
        let want = func.of_floats(&x.iter().map(|&x| f64::from(x)).collect::<Vec<_>>());
        if !is_close(func, got, want) {
            wrong.push(format!("{} of {x:?}: {got:e}, {want:e} wanted", func.name()));
        }
    }
    assert!(wrong.is_empty(), "{} values:\n{}", wrong.len(), wrong[..wrong.len().min(20)].join("\n"));
}

#[test]
fn exponentials_and_what_is_made_of_them_hold_everywhere() {
    let all = [all_floats()];
    for func in [Func::Exp, Func::Sigmoid, Func::Silu, Func::Tanh, Func::GeluErf, Func::GeluTanh] {
        holds(func, &all);
    }
}

#[test]
fn the_logarithm_holds_everywhere() {
    holds(Func::Log, &[all_floats()]);
}

#[test]
fn functions_hold_where_models_use_them() {
    let near = vec![(-40_000..40_000).map(|n| n as f32 / 2000.0).collect::<Vec<f32>>()];
    for func in [Func::Exp, Func::Sigmoid, Func::Silu, Func::Tanh, Func::GeluErf, Func::GeluTanh, Func::Log] {
        holds(func, &near);
    }
}

#[test]
fn powers_hold_with_all_special_cases() {
    let special =
        [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, -3.0, 1.5, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
    let ends = [f32::MAX, f32::MIN, f32::MIN_POSITIVE, 1e-40, -1e-40, 16_777_216.0, 16_777_217.0, 1e10, -1e10];
    let near_one = (0..40).map(|n| 1.0 + (n as f32 - 20.0) * 3.1e-4);
    let spread = (0..120).map(|n| f32::from_bits(0x0080_0000 + n * 0x0117_1717));
    let bases: Vec<f32> = special.into_iter().chain(ends).chain(near_one).chain(spread).collect();
    let exponents =
        (-60..60).map(|n| n as f32 * 0.37).chain((-80..80).map(|n| n as f32)).chain((0..60).map(|n| n as f32 * 40.9));
    let exponents: Vec<f32> = special.into_iter().chain(ends).chain(exponents).collect();
    let pairs: Vec<(f32, f32)> = bases.iter().flat_map(|&x| exponents.iter().map(move |&y| (x, y))).collect();
    holds(Func::Pow, &[pairs.iter().map(|p| p.0).collect(), pairs.iter().map(|p| p.1).collect()]);
}

#[test]
fn floats_of_16_bits_are_rounded_to_nearest() {
    let halfway = (0..1u32 << 16).flat_map(|half| {
        let x = half::f16::from_bits(half as u16).to_f32().to_bits();
        [x, x + 0x0fff, x + 0x1000, x + 0x1001].map(f32::from_bits)
    });
    let values: Vec<f32> = all_floats().into_iter().chain(halfway).collect();
    let f16 = computed(std::slice::from_ref(&values), |w, x| math::f16_bits(w, x[0]));
    let bf16 = computed(std::slice::from_ref(&values), |w, x| math::bf16_bits(w, x[0]));
    for (at, &x) in values.iter().enumerate() {
        let (half, brain) = (half::f16::from_bits(f16[at] as u16), half::bf16::from_bits(bf16[at] as u16));
        if x.is_nan() {
            assert!(half.is_nan() && brain.is_nan(), "{x} {half} {brain}");
        } else {
            assert_eq!(
                [half.to_bits(), brain.to_bits()],
                [half::f16::from_f32(x).to_bits(), half::bf16::from_f32(x).to_bits()],
                "{x:e}"
            );
        }
        assert!(f16[at] <= 0xffff && bf16[at] <= 0xffff, "{x:e}: more than 16 bits");
    }
}
