//! Expressions over strided operands: the same bits at every level, however elements lie and whoever makes which of them;
//! and the reference's values.

use crate::general_support::*;
use yirage_cpu_kernels::general::{Elem, ElementProgram, StridedInput, StridedOutput, Strides, map};
use yirage_cpu_kernels::isa::Isa;
use yirage_ir::dtype::DType;
use yirage_ir::expr::{Expr, Func, Scalar};
use yirage_ir::strided::Strided;

/// Functions that are rounded once, exactly as the reference is.
const EXACT: [Func; 19] = [
    Func::Add,
    Func::Sub,
    Func::Mul,
    Func::Div,
    Func::Neg,
    Func::Abs,
    Func::Sqrt,
    Func::Recip,
    Func::Square,
    Func::Add,
    Func::Mul,
    Func::Sub,
    Func::Less,
    Func::LessEqual,
    Func::Equal,
    Func::NotEqual,
    Func::Select,
    Func::Select,
    Func::Abs,
];

/// One input: its type, its elements in the loop's order, how it lies, and its memory.
struct MapTestInput {
    dtype: DType,
    values: Vec<Scalar>,
    view: Strided,
    memory: Guarded,
}

fn test_input(rng: &mut Rng, dtype: DType, sizes: &[usize], at_end: bool) -> MapTestInput {
    let view = random_view(rng, sizes, true);
    let memory: Vec<Scalar> = (0..held(&view)).map(|_| random_scalar(rng, dtype)).collect();
    let values = places(&view, sizes).into_iter().map(|p| memory[p]).collect();
    MapTestInput { dtype, values, view, memory: Guarded::of(&bytes(dtype, &memory), at_end) }
}

/// The result in row-major order; `out` says how it lies. The range is cut at `cuts`.
fn mapped(
    isa: Isa,
    program: &ElementProgram,
    shape: &[usize],
    ins: &[MapTestInput],
    to: (DType, &Strided),
    cuts: &[usize],
) -> Vec<u8> {
    let (dtype, view) = to;
    let width = elem(dtype).bytes();
    let mut memory = Guarded::of(&vec![0xa5; held(view) * width], cuts.len().is_multiple_of(2));
    let inputs: Vec<_> = ins.iter().map(|g| g.memory.input(g.dtype, &g.view)).collect();
    let output = memory.output(dtype, view);
    let loop_sizes = sizes(shape);
    let mut from = 0;
    for &to in cuts.iter().chain([&loop_sizes.count()]) {
        // SAFETY: the operands have been checked; each element is made once.
        unsafe { map(isa, program, &loop_sizes, &inputs, output, from..to) };
        from = to;
    }
    let made = places(view, shape);
    let mut touched = vec![false; held(view)];
    made.iter().for_each(|&p| touched[p] = true);
    for (p, _) in touched.iter().enumerate().filter(|(_, t)| !**t) {
        assert!(memory.bytes()[p * width..][..width].iter().all(|b| *b == 0xa5), "a gap of the output was written");
    }
    made.iter().flat_map(|&p| memory.bytes()[p * width..][..width].to_vec()).collect()
}

/// One random expression over random operands, at every level, in pieces, to any strides.
fn check(rng: &mut Rng, funcs: &[Func], calls: usize) -> (Expr, Vec<MapTestInput>, DType, Vec<u8>) {
    let count = 1 + rng.below(3) as usize;
    let rank = rng.below(6) as usize;
    let shape = random_sizes(rng, rank, 3000);
    let dtypes: Vec<DType> = (0..count).map(|_| *rng.choose(&TYPES)).collect();
    let expr = random_expr(rng, &dtypes, calls, funcs);
    let result = *expr.infer(&dtypes).unwrap().last().unwrap();
    let program = ElementProgram::new(&expr, &dtypes).unwrap();
    let at_end = rng.one_in(2);
    let ins: Vec<MapTestInput> = dtypes.iter().map(|&d| test_input(rng, d, &shape, at_end)).collect();
    let n: usize = shape.iter().product();
    let want = mapped(Isa::Scalar, &program, &shape, &ins, (result, &dense(&shape)), &[]);
    for isa in levels() {
        let mut cuts: Vec<usize> = (0..rng.below(4)).map(|_| rng.below(n as u64 + 1) as usize).collect();
        cuts.sort_unstable();
        for view in [dense(&shape), random_view(rng, &shape, false)] {
            let got = mapped(isa, &program, &shape, &ins, (result, &view), &cuts);
            if let Err(e) = same(result, &got, &want) {
                let views: Vec<_> = ins.iter().map(|g| (g.dtype, &g.view)).collect();
                panic!("{isa} {expr} over {shape:?}, cuts {cuts:?}, from {views:?} to {view:?}: {e}");
            }
        }
    }
    (expr, ins, result, want)
}

#[test]
fn every_level_part_and_stride_gives_the_same_bits() {
    let mut rng = Rng::new(61);
    for round in 0..1500 {
        check(&mut rng, Func::ALL, 1 + round % 12);
    }
}

#[test]
fn what_is_rounded_once_is_the_reference() {
    let mut rng = Rng::new(62);
    for round in 0..1500 {
        let (expr, ins, result, got) = check(&mut rng, &EXACT, 1 + round % 12);
        let n = ins[0].values.len();
        let want: Vec<Scalar> =
            (0..n).map(|i| expr.eval(&ins.iter().map(|g| g.values[i]).collect::<Vec<_>>())).collect();
        if let Err(e) = same(result, &got, &bytes(result, &want)) {
            panic!("{expr} of {:?}: {e}", ins.iter().map(|g| g.dtype).collect::<Vec<_>>());
        }
    }
}

/// Each function of floats against f64; the largest relative error that is allowed, and below which size errors are
/// counted as if values had it.
fn limit(func: Func) -> (f64, f64) {
    match func {
        Func::Pow => (1e-6, 1e-37),
        // In the tail an exponential of a rounded number: the error grows with it.
        Func::GeluErf | Func::GeluTanh => (5e-6, 1e-5),
        Func::Tanh => (1e-6, 1e-37),
        // Where e^-x is no number any more, the function is 0: below 3e-39, and 3e-37.
        Func::Sigmoid => (1e-6, 1e-32),
        Func::Silu => (1e-6, 1e-30),
        Func::Exp | Func::Log | Func::Rsqrt => (4e-7, 1e-37),
        _ => (0.0, 1.0),
    }
}

#[test]
fn functions_of_floats_are_near_the_reference() {
    let mut rng = Rng::new(63);
    let odd = [0.0, -0.0, 1.0, -1.0, 2.0, -3.0, 0.5, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e-40, 3e38, -1e-30];
    for &func in Func::ALL.iter().filter(|f| f.arity() < 3 || **f == Func::Clamp) {
        let mut args: Vec<Vec<f32>> = vec![Vec::new(); func.arity()];
        let mut push = |values: &[f32]| args.iter_mut().zip(values).for_each(|(a, v)| a.push(*v));
        for i in 0..odd.len().pow(3) {
            push(&[odd[i % odd.len()], odd[i / odd.len() % odd.len()], odd[i / odd.len().pow(2)]]);
        }
        for size in [0.1f32, 1.0, 5.0, 30.0, 90.0, 1e4] {
            for _ in 0..4000 {
                push(&std::array::from_fn::<f32, 3, _>(|_| rng.signed_f32() * size));
                // powers whose result is a number
                push(&[rng.signed_f32().abs() * size, rng.signed_f32() * 8.0, 1.0]);
                push(&[1.0 + rng.signed_f32() * 1e-3, rng.signed_f32() * 2e4, 1.0]);
            }
        }
        let n = args[0].len();
        let dtypes = vec![DType::F32; func.arity()];
        let exprs: Vec<Expr> = (0..func.arity() as u32).map(Expr::input).collect();
        let expr = Expr::call(func, &exprs);
        let result = *expr.infer(&dtypes).unwrap().last().unwrap();
        let ins: Vec<MapTestInput> = args
            .iter()
            .map(|a| {
                let values: Vec<Scalar> = a.iter().map(|&x| x.into()).collect();
                let memory = Guarded::of(&bytes(DType::F32, &values), true);
                MapTestInput { dtype: DType::F32, values, view: dense(&[n]), memory }
            })
            .collect();
        let got = mapped(
            Isa::detect(),
            &ElementProgram::new(&expr, &dtypes).unwrap(),
            &[n],
            &ins,
            (result, &dense(&[n])),
            &[],
        );
        let (relative, least) = limit(func);
        for (i, got) in scalars(result, &got).into_iter().enumerate() {
            let x: Vec<f64> = args.iter().map(|a| f64::from(a[i])).collect();
            let (want, got) = (func.of_floats(&x), got.as_f64());
            let rounded = f64::from(want as f32);
            let fits = rounded == got || rounded.is_nan() && got.is_nan() || {
                // What is rounded to infinity, or to the smallest numbers, may be one of its neighbours.
                let near = (got - want).abs() <= relative * want.abs().max(least);
                near || want.abs() > 3.4e38 && got.abs() > 3.4e38 && want.signum() == got.signum()
            };
            assert!(fits, "{} of {x:?}: {got}, {want} wanted", func.name());
        }
    }
}

#[test]
fn what_passes_the_caches_by_arrives() {
    // Large enough for it, and no multiple of anything; the first element starts no line of memory.
    let n = (8 << 20) + 19;
    let x: Vec<f32> = (0..n).map(|i| (i % 8191) as f32 / 16.0).collect();
    let program = ElementProgram::new(&"sub(abs(x0), 100.5)".parse().unwrap(), &[DType::F32]).unwrap();
    let all = sizes(&[n]);
    let dense = Strides::dense(&all);
    let mut out = vec![0f32; n + 1];
    for isa in levels() {
        out.fill(7.5);
        let output = StridedOutput::at(out[1..].as_mut_ptr().cast(), Elem::F32, dense);
        for range in [0..1001, 1001..n / 2, n / 2..n] {
            // SAFETY: both have n elements.
            unsafe {
                map(isa, &program, &all, &[StridedInput::at(x.as_ptr().cast(), Elem::F32, dense)], output, range)
            };
        }
        assert_eq!(out[0], 7.5);
        let wrong = (0..n).find(|&i| out[i + 1] != x[i].abs() - 100.5);
        assert_eq!(wrong, None, "{isa}");
    }
}

#[test]
fn a_result_may_replace_an_input() {
    let mut rng = Rng::new(64);
    for round in 0..200 {
        let shape = random_sizes(&mut rng, 1 + round % 3, 3000);
        let view = random_view(&mut rng, &shape, false);
        let expr = random_expr(&mut rng, &[DType::F32, DType::F32], 4, &[Func::Add, Func::Mul, Func::Exp, Func::Max]);
        let program = ElementProgram::new(&expr, &[DType::F32; 2]).unwrap();
        let mut ins =
            vec![test_input(&mut rng, DType::F32, &shape, true), test_input(&mut rng, DType::F32, &shape, true)];
        let memory: Vec<Scalar> = (0..held(&view)).map(|_| random_scalar(&mut rng, DType::F32)).collect();
        let own = bytes(DType::F32, &memory);
        ins[0] =
            MapTestInput { dtype: DType::F32, values: Vec::new(), view: view.clone(), memory: Guarded::of(&own, true) };
        if *expr.infer(&[DType::F32; 2]).unwrap().last().unwrap() != DType::F32 {
            continue;
        }
        let want = mapped(Isa::Scalar, &program, &shape, &ins, (DType::F32, &dense(&shape)), &[]);
        for isa in levels() {
            let mut both = Guarded::of(&own, true);
            let output = both.output(DType::F32, &view);
            let inputs = [both.input(DType::F32, &view), ins[1].memory.input(DType::F32, &ins[1].view)];
            let all = sizes(&shape);
            // SAFETY: the operands have been checked; the output is input 0.
            unsafe { map(isa, &program, &all, &inputs, output, 0..all.count()) };
            let got: Vec<u8> =
                places(&view, &shape).iter().flat_map(|&p| both.bytes()[4 * p..][..4].to_vec()).collect();
            same(DType::F32, &got, &want).unwrap_or_else(|e| panic!("{isa} {expr} over {shape:?} {view:?}: {e}"));
        }
    }
}
