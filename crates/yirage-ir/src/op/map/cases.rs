//! What kernels of maps get wrong: every function over all values, every cast, every way of meeting, odd sizes.

use super::Map;
use crate::dtype::DType;
use crate::expr::{Expr, Func, Scalar};
use crate::op::case::{CaseValues, PLAIN};
use crate::op::{OpCase, Tolerance};
use crate::quant::Format;
use crate::tensor::{Data, Tensor};

pub(super) fn all() -> Vec<OpCase> {
    let mut cases = Vec::new();
    cases.extend(Func::ALL.iter().flat_map(|&func| functions(func)));
    cases.extend(casts());
    cases.extend(meetings());
    cases.extend(sizes());
    cases.extend(models());
    cases.extend(random());
    cases
}

const F16: DType = DType::Stored(Format::F16);
const BF16: DType = DType::Stored(Format::BF16);

/// The edges of every range: of numbers, of what functions overflow at, of what rounds up, and both zeros.
const FLOATS: [f32; 26] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -2.5,
    3.25,
    1e-3,
    -7.0,
    20.0,
    -88.0,
    88.8,
    104.0,
    -103.5,
    1e-40,
    -1e-45,
    1.175_494_4e-38,
    65504.0,
    65520.0,
    -1e5,
    1e20,
    f32::MAX,
    f32::MIN,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
];
const INTS: [i32; 11] = [0, 1, -1, 2, -3, 7, 1 << 16, 0x7fff_ffff, i32::MIN, 16_777_217, -65_537];

/// Edge values of a type.
fn edges(dtype: DType) -> Vec<Scalar> {
    match dtype {
        DType::I32 | DType::U32 => INTS.iter().map(|&x| Scalar::from(x).cast(dtype)).collect(),
        DType::Bool => vec![false.into(), true.into()],
        _ => FLOATS.iter().map(|&x| Scalar::from(x).cast(dtype)).collect(),
    }
}

fn tensor(dtype: DType, shape: impl Into<Vec<usize>>, values: &[Scalar]) -> Tensor {
    Tensor::from_scalars(dtype, shape, values)
}

/// Every function that types of arguments allow, on all combinations of edge values and on ordinary ones.
fn functions(func: Func) -> Vec<OpCase> {
    let mut rng = CaseValues::new(300 + func as u64);
    let mut cases = Vec::new();
    for dtype in PLAIN {
        let types: Vec<DType> = match func {
            Func::Select => vec![DType::Bool, dtype, dtype],
            _ => vec![dtype; func.arity()],
        };
        let map = Map::of(func);
        if map.expr.infer(&types).is_err() {
            continue;
        }
        cases.push(OpCase::new(
            format!("{} {dtype} edges", func.name()),
            map.clone(),
            combined(&types),
            Tolerance::Terms,
        ));
        let ins = types.iter().map(|&t| rng.rounded(t, &[3, 67])).collect();
        cases.push(OpCase::new(format!("{} {dtype}", func.name()), map, ins, Tolerance::Terms));
    }
    cases
}

/// All combinations of edge values; of three floats, of some.
fn combined(types: &[DType]) -> Vec<Tensor> {
    let lists: Vec<Vec<Scalar>> = types
        .iter()
        .map(|&t| if types.len() < 3 { edges(t) } else { edges(t).into_iter().rev().step_by(3).collect() })
        .collect();
    let n = lists.iter().map(Vec::len).product();
    let mut stride = 1;
    let mut tensors = Vec::new();
    for (list, &dtype) in lists.iter().zip(types) {
        let column: Vec<Scalar> = (0..n).map(|i| list[i / stride % list.len()]).collect();
        tensors.push(tensor(dtype, [n], &column));
        stride *= list.len();
    }
    tensors
}

/// Every type as every other.
fn casts() -> Vec<OpCase> {
    let mut cases = Vec::new();
    for (from, to) in PLAIN.into_iter().flat_map(|from| PLAIN.map(|to| (from, to))) {
        let mut x = edges(from);
        // What lies between two numbers of 16 bits, and between two whole ones.
        x.extend(
            [0.1, -0.1, 2049.0, 2051.0, 1.0039, 257.0, 259.0, 5.9e-8, 1e-7, 2.9e9, -2.9e9, 2e9]
                .map(|x: f32| Scalar::from(x).cast(from)),
        );
        let map = Map { expr: Expr::input(0).cast(to) };
        cases.push(OpCase::new(format!("{from} as {to}"), map, vec![tensor(from, [x.len()], &x)], Tolerance::Exact));
    }
    cases
}

/// Shapes that meet: sizes of 1 inside and outside, missing dimensions, scalars, ranks 0 to 8.
fn meetings() -> Vec<OpCase> {
    let shapes: [&[&[usize]]; 17] = [
        &[&[], &[1]],
        &[&[5], &[]],
        &[&[3, 40], &[40]],
        &[&[3, 40], &[3, 1]],
        &[&[3, 1], &[1, 40]],
        &[&[1], &[3, 33]],
        &[&[4, 1, 7], &[3, 1]],
        &[&[2, 3, 17], &[2, 1, 17]],
        &[&[2, 3, 17], &[1, 3, 1]],
        &[&[2, 1, 3, 1], &[1, 5, 1, 9]],
        &[&[2, 3, 4, 5], &[3, 1, 5]],
        &[&[2, 1, 2, 3, 5], &[4, 1, 1, 5]],
        &[&[2, 1, 2, 1, 2, 3], &[1, 3, 1, 2, 1, 3]],
        &[&[2, 2, 1, 2, 2, 1, 3], &[2, 1, 2, 2, 3]],
        &[&[2, 1, 2, 1, 2, 1, 2, 3], &[1, 2, 1, 2, 1, 2, 1, 3]],
        &[&[1, 1, 1, 1, 1, 1, 1, 1], &[2, 1, 1, 1, 1, 1, 1, 2]],
        &[&[0, 4], &[1, 4]],
    ];
    let mut rng = CaseValues::new(31);
    let mut cases = Vec::new();
    for pair in shapes {
        for (i, j) in [(0, 1), (1, 0)] {
            let ins = vec![rng.rounded(DType::F32, pair[i]), rng.rounded(DType::F32, pair[j])];
            let name = format!("{:?} meets {:?}", pair[i], pair[j]);
            cases.push(OpCase::new(name, Map::of(Func::Sub), ins, Tolerance::Terms));
        }
    }
    let types = [BF16, DType::Bool, F16];
    let expr = Expr::call(Func::Select, &[Expr::input(1), Expr::input(0), Expr::input(2)]).cast(BF16);
    let ins = types.iter().zip([&[4usize, 1, 9] as &[usize], &[5, 1], &[9]]).map(|(&t, s)| rng.rounded(t, s));
    cases.push(OpCase::new("three of three types meet", Map { expr }, ins.collect(), Tolerance::Terms));
    cases
}

/// Sizes around what kernels take at once.
fn sizes() -> Vec<OpCase> {
    let mut rng = CaseValues::new(32);
    let mut cases = Vec::new();
    for n in [0usize, 1, 7, 15, 16, 17, 31, 63, 65, 255, 257, 4099] {
        for dtype in [DType::F32, F16, BF16] {
            let ins = vec![rng.rounded(dtype, &[n]), rng.rounded(dtype, &[n])];
            let expr = Expr::binary(Func::Mul).cast(dtype);
            cases.push(OpCase::new(format!("{n} of {dtype}"), Map { expr }, ins, Tolerance::Terms));
        }
    }
    cases.push(OpCase::new("a scalar", Map::of(Func::Recip), vec![rng.rounded(DType::F32, &[])], Tolerance::Terms));
    let ins = vec![rng.rounded(DType::F32, &[3, 0, 5])];
    cases.push(OpCase::new("nothing inside", Map::of(Func::Exp), ins, Tolerance::Terms));
    let copy = Map { expr: Expr::input(0) };
    cases.extend(
        PLAIN.map(|t| {
            OpCase::new(format!("copy of {t}"), copy.clone(), vec![rng.rounded(t, &[5, 13])], Tolerance::Exact)
        }),
    );
    cases
}

/// Expressions of models, by name and otherwise, over rows and over rows that meet one.
fn models() -> Vec<OpCase> {
    let mut rng = CaseValues::new(33);
    let texts = [
        ("variance", "t0 = sub(x0, x1); mul(t0, t0)"),
        ("squared relu", "square(relu(x0))"),
        (
            "sixteen",
            "add(add(add(add(x0, x1), add(x2, x3)), add(add(x4, x5), add(x6, x7))), add(add(add(x8, x9), add(x10, x11)), add(add(x12, x13), add(x14, x15))))",
        ),
    ];
    let written = texts.map(|(name, text)| {
        let expr = text.parse().unwrap_or_else(|e| unreachable!("{name}: {e}"));
        (name, Map { expr })
    });
    let named = [
        ("scaled", Map::scale(30.0)),
        ("softcap", Map::softcap(30.0)),
        ("inverse root", Map::inverse_root(0.125)),
        ("gated silu", Map::gated(Func::Silu)),
        ("gated gelu by tanh", Map::gated(Func::GeluTanh)),
        ("gated gelu by erf", Map::gated(Func::GeluErf)),
        ("gpt-oss", Map::clipped_gate()),
    ];
    let sizes = [(1, 64), (4, 77), (0, 8)];
    let each = written.into_iter().chain(named).flat_map(|form| sizes.map(|size| (form.clone(), size)));
    let case = |((name, map), (rows, width)): ((&str, Map), (usize, usize))| {
        let mut input = || {
            let mut x = rng.floats([rows, width]);
            if let Data::F32(x) = &mut x.data {
                x.iter_mut().for_each(|x| *x *= 10.0);
            }
            x
        };
        let ins = (0..map.expr.inputs()).map(|_| input()).collect();
        OpCase::new(format!("{name} {rows}x{width}"), map, ins, Tolerance::Terms)
    };
    each.map(case).collect()
}

/// Expressions that nobody wrote.
fn random() -> Vec<OpCase> {
    let mut rng = CaseValues::new(34);
    let case = |n| {
        let types: Vec<DType> = (0..1 + rng.below(4)).map(|_| PLAIN[rng.below(6) as usize]).collect();
        let expr = grown(&mut rng, &types);
        let ins = types.iter().map(|&t| rng.rounded(t, &[3, 37])).collect();
        OpCase::new(format!("random {n}"), Map { expr }, ins, Tolerance::Terms)
    };
    (0..24).map(case).collect()
}

/// A well-typed expression that reads inputs of all these types: terms are joined until one is left.
fn grown(rng: &mut CaseValues, types: &[DType]) -> Expr {
    let kind = |t: DType| if crate::expr::is_float(t) { DType::F32 } else { t };
    let mut open: Vec<(Expr, DType)> = (0u32..).map(Expr::input).zip(types.iter().map(|&t| kind(t))).collect();
    let mut steps = 4 + rng.below(8);
    loop {
        let (x, t) = open.swap_remove(rng.below(open.len() as u64) as usize);
        let made = match (open.pop(), rng.below(3)) {
            (Some((y, other)), _) => {
                let y = if other == t { y } else { y.cast(t) };
                joined(rng, x, y, t)
            }
            (None, 0) => {
                let to = PLAIN[rng.below(6) as usize];
                (x.cast(to), kind(to))
            }
            (None, _) => {
                let constant = Expr::constant(Scalar::from(rng.below(7) as i32 - 3).cast(t));
                joined(rng, x, constant, t)
            }
        };
        open.push(made);
        steps = steps.saturating_sub(1);
        if open.len() == 1 && steps == 0 {
            return open.swap_remove(0).0;
        }
    }
}

/// Some function of both.
fn joined(rng: &mut CaseValues, x: Expr, y: Expr, t: DType) -> (Expr, DType) {
    let compared = Expr::call(Func::Equal, &[x.clone(), y.clone()]);
    if t == DType::Bool {
        return (compared, t);
    }
    if rng.below(4) == 0 {
        return (Expr::call(Func::Select, &[Expr::call(Func::Less, &[x.clone(), y.clone()]), y, x]), t);
    }
    let floats = [Func::Exp, Func::Tanh, Func::Silu, Func::GeluErf, Func::Sqrt, Func::Log];
    let x = if t == DType::F32 && rng.below(2) == 0 { Expr::call(floats[rng.below(6) as usize], &[x]) } else { x };
    let both = [Func::Add, Func::Sub, Func::Mul, Func::Min, Func::Max];
    (Expr::call(both[rng.below(5) as usize], &[x, y]), t)
}
