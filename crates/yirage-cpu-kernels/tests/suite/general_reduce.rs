//! Reductions: the bits of a scalar walk of their definition, at every level, however elements lie, with what is fused
//! before and after them.

use crate::general_support::*;
use yirage_cpu_kernels::general::{ElementProgram, Reduction, map, reduce};
use yirage_cpu_kernels::isa::Isa;
use yirage_ir::dtype::DType;
use yirage_ir::expr::{Expr, Func, Scalar};
use yirage_ir::op::{PARTS, ReduceKind, join_parts};
use yirage_ir::strided::Strided;

const KINDS: [ReduceKind; 6] =
    [ReduceKind::Sum, ReduceKind::Mean, ReduceKind::Max, ReduceKind::Min, ReduceKind::Prod, ReduceKind::MeanSquare];

/// The definition, element by element, in f32.
fn walk(kind: ReduceKind, x: &[f32]) -> f32 {
    let larger = |a: f32, b: f32| if a.is_nan() || a > b { a } else { b };
    let smaller = |a: f32, b: f32| if a.is_nan() || a < b { a } else { b };
    type Step = fn(f32, f32) -> f32;
    let (none, take, join): (f32, Step, Step) = match kind {
        ReduceKind::Sum | ReduceKind::Mean => (0.0, |a, x| a + x, |a, b| a + b),
        ReduceKind::MeanSquare => (0.0, |a, x| x.mul_add(x, a), |a, b| a + b),
        ReduceKind::Prod => (1.0, |a, x| a * x, |a, b| a * b),
        ReduceKind::Max => (f32::NEG_INFINITY, larger, larger),
        ReduceKind::Min => (f32::INFINITY, smaller, smaller),
    };
    let mut parts = [none; PARTS];
    x.iter().enumerate().for_each(|(e, &x)| parts[e % PARTS] = take(parts[e % PARTS], x));
    let all = join_parts(parts, join);
    let mean = matches!(kind, ReduceKind::Mean | ReduceKind::MeanSquare);
    if mean { (f64::from(all) / x.len() as f64) as f32 } else { all }
}

fn walk_whole(kind: ReduceKind, signed: bool, x: &[u32]) -> u32 {
    let by = |a: u32, b: u32, f: fn(i64, i64) -> i64| {
        if signed { f(i64::from(a as i32), i64::from(b as i32)) as u32 } else { f(a.into(), b.into()) as u32 }
    };
    let none = match (kind, signed) {
        (ReduceKind::Prod, _) => 1,
        (ReduceKind::Max, true) => i32::MIN as u32,
        (ReduceKind::Min, true) => i32::MAX as u32,
        (ReduceKind::Min, false) => u32::MAX,
        _ => 0,
    };
    x.iter().fold(none, |a, &x| match kind {
        ReduceKind::Max => by(a, x, i64::max),
        ReduceKind::Min => by(a, x, i64::min),
        ReduceKind::Prod => a.wrapping_mul(x),
        _ => a.wrapping_add(x),
    })
}

/// The elements of each output, in order.
fn groups(shape: &[usize], axes: &[usize]) -> Vec<Vec<usize>> {
    let kept: usize = (0..shape.len()).filter(|a| !axes.contains(a)).map(|a| shape[a]).product();
    let mut groups = vec![Vec::new(); kept];
    for flat in 0..shape.iter().product() {
        let (mut i, mut group, mut stride) = (flat, 0, 1);
        for axis in (0..shape.len()).rev() {
            if !axes.contains(&axis) {
                group += i % shape[axis] * stride;
                stride *= shape[axis];
            }
            i /= shape[axis];
        }
        groups[group].push(flat);
    }
    groups
}

struct ReduceTestInput {
    dtype: DType,
    view: Strided,
    memory: Guarded,
}

fn test_input(rng: &mut Rng, dtype: DType, shape: &[usize]) -> ReduceTestInput {
    let view = random_view(rng, shape, true);
    // Numbers of one size, so that sums differ with their order; now and then any.
    let calm = !rng.one_in(4);
    let values: Vec<Scalar> = (0..held(&view))
        .map(|_| if calm { Scalar::from(rng.signed_f32() * 100.0).cast(dtype) } else { random_scalar(rng, dtype) })
        .collect();
    ReduceTestInput { dtype, view, memory: Guarded::of(&bytes(dtype, &values), rng.one_in(2)) }
}

/// The program's values in row-major order, by `map`, which has tests of its own.
fn values(program: &ElementProgram, to: DType, shape: &[usize], ins: &[ReduceTestInput]) -> Vec<u8> {
    let all = sizes(shape);
    let mut out = Guarded::new(all.count() * elem(to).bytes(), true);
    let output = out.output(to, &dense(shape));
    let inputs: Vec<_> = ins.iter().map(|g| g.memory.input(g.dtype, &g.view)).collect();
    // SAFETY: the operands have been checked.
    unsafe { map(Isa::Scalar, program, &all, &inputs, output, 0..all.count()) };
    out.bytes().to_vec()
}

fn check(rng: &mut Rng, kind: ReduceKind, held_as: DType) {
    let rank = 1 + rng.below(5) as usize;
    let shape = random_sizes(rng, rank, 8000);
    let axes: Vec<usize> = (0..shape.len()).filter(|_| rng.one_in(2)).collect();
    let kept: Vec<usize> = (0..shape.len()).filter(|a| !axes.contains(a)).map(|a| shape[a]).collect();
    // Before: nothing, or an expression of one or two inputs.
    let floats = held_as == DType::F32;
    let sources: &[DType] = if floats { &[DType::F32, F16, BF16] } else { std::slice::from_ref(&held_as) };
    let dtypes: Vec<DType> = (0..1 + rng.below(2)).map(|_| *rng.choose(sources)).collect();
    let expr = match dtypes.len() {
        1 if rng.one_in(2) => Expr::input(0),
        1 => Expr::unary(Func::Abs),
        _ => Expr::binary(*rng.choose(&[Func::Sub, Func::Mul])),
    };
    let prologue = ElementProgram::new(&expr, &dtypes).unwrap();
    let ins: Vec<ReduceTestInput> = dtypes.iter().map(|&d| test_input(rng, d, &shape)).collect();
    let made = *expr.infer(&dtypes).unwrap().last().unwrap();
    let x = values(&prologue, made, &shape, &ins);
    // After: nothing, or times another input.
    let more = rng.one_in(2);
    let after = if more { Expr::binary(Func::Add) } else { Expr::input(0) };
    let further: Vec<ReduceTestInput> = if more { vec![test_input(rng, held_as, &kept)] } else { Vec::new() };
    let after_types = vec![held_as; 1 + further.len()];
    let epilogue = ElementProgram::new(&after, &after_types).unwrap();
    let to = if floats { *rng.choose(&[DType::F32, F16, BF16]) } else { held_as };

    let results: Vec<Scalar> = groups(&shape, &axes)
        .iter()
        .map(|group| match held_as {
            DType::F32 => {
                let x = scalars(made, &x);
                walk(kind, &group.iter().map(|&i| x[i].as_f64() as f32).collect::<Vec<_>>()).into()
            }
            _ => {
                let word = |i: &usize| u32::from_ne_bytes(x[4 * i..][..4].try_into().unwrap());
                let signed = held_as == DType::I32;
                let value = walk_whole(kind, signed, &group.iter().map(word).collect::<Vec<_>>());
                if signed { Scalar::from(value as i32) } else { Scalar::from(value) }
            }
        })
        .collect();
    let mut all = vec![ReduceTestInput {
        dtype: held_as,
        view: dense(&kept),
        memory: Guarded::of(&bytes(held_as, &results), true),
    }];
    all.extend(further);
    let want = values(&epilogue, to, &kept, &all);
    let further = &all[1..];

    let view = random_view(rng, &kept, false);
    let n: usize = kept.iter().product();
    for isa in levels() {
        let mut out = Guarded::new(held(&view) * elem(to).bytes(), rng.one_in(2));
        let inputs: Vec<_> = ins.iter().map(|g| g.memory.input(g.dtype, &g.view)).collect();
        let more: Vec<_> = further.iter().map(|g| g.memory.input(g.dtype, &g.view)).collect();
        let what = Reduction {
            kind,
            sizes: sizes(&shape),
            axes: &axes,
            prologue: &prologue,
            inputs: &inputs,
            epilogue: &epilogue,
            further: &more,
            output: out.output(to, &view),
        };
        let cut = rng.below(n as u64 + 1) as usize;
        for range in [0..cut, cut..n] {
            // SAFETY: the operands have been checked; each output is made once.
            unsafe { reduce(isa, &what, range) };
        }
        let width = elem(to).bytes();
        let got: Vec<u8> =
            places(&view, &kept).iter().flat_map(|&p| out.bytes()[p * width..][..width].to_vec()).collect();
        if let Err(e) = same(to, &got, &want) {
            let views: Vec<_> = ins.iter().map(|g| (g.dtype, &g.view)).collect();
            panic!("{isa} {kind} of {expr} over {shape:?} along {axes:?} from {views:?} to {to} {view:?}: {e}");
        }
    }
}

#[test]
fn reductions_of_floats_are_their_definition_to_the_bit() {
    // Under emulation nothing else here takes as long: each half has a core.
    std::thread::scope(|scope| {
        for seed in [71, 73] {
            scope.spawn(move || {
                let mut rng = Rng::new(seed);
                for round in 0..1000 {
                    check(&mut rng, KINDS[round % 6], DType::F32);
                }
            });
        }
    });
}

#[test]
fn reductions_of_whole_numbers_are_their_definition_to_the_bit() {
    let mut rng = Rng::new(72);
    let whole = [ReduceKind::Sum, ReduceKind::Max, ReduceKind::Min, ReduceKind::Prod];
    for round in 0..1000 {
        check(&mut rng, whole[round % 4], [DType::I32, DType::U32][round / 4 % 2]);
    }
}

#[test]
fn of_nothing_there_is_the_neutral_element() {
    let program = ElementProgram::identity(DType::F32).unwrap();
    let wants = [0.0, f32::NAN, f32::NEG_INFINITY, f32::INFINITY, 1.0, f32::NAN];
    for (kind, want) in KINDS.into_iter().zip(wants) {
        for isa in levels() {
            let (nothing, mut out) = (Guarded::new(0, true), Guarded::new(12, true));
            let what = Reduction {
                kind,
                sizes: sizes(&[3, 0]),
                axes: &[1],
                prologue: &program,
                inputs: &[nothing.input(DType::F32, &dense(&[3, 0]))],
                epilogue: &program,
                further: &[],
                output: out.output(DType::F32, &dense(&[3])),
            };
            // SAFETY: the operands have been checked.
            unsafe { reduce(isa, &what, 0..3) };
            same(DType::F32, out.bytes(), &bytes(DType::F32, &[want.into(); 3])).unwrap();
        }
    }
}
