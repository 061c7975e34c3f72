//! What kernels of reductions get wrong: every position of the axes, lengths around what they take at once, numbers that
//! are none.

use super::{Reduce, ReduceKind};
use crate::attr::List;
use crate::dtype::DType;
use crate::op::case::{CaseValues, PLAIN};
use crate::op::{OpCase, Tolerance};
use crate::tensor::{Data, Tensor};

pub(super) fn all() -> Vec<OpCase> {
    ReduceKind::ALL.iter().flat_map(|&kind| of(kind)).collect()
}

/// Shapes and the axes that go.
const POSITIONS: [(&[usize], &[u32]); 17] = [
    (&[3, 40], &[1]),
    (&[3, 40], &[0]),
    (&[3, 40], &[0, 1]),
    (&[7], &[0]),
    (&[2, 5, 3], &[1]),
    (&[2, 5, 3], &[0, 2]),
    (&[4, 1, 3], &[1]),
    (&[2, 3, 4, 5], &[1, 2]),
    (&[2, 3, 4, 5], &[0, 3]),
    (&[2, 1, 2, 3, 1, 2, 2, 5], &[0, 2, 4, 7]),
    (&[2, 1, 2, 3, 1, 2, 2, 5], &[3]),
    (&[1, 1], &[1]),
    (&[0, 4], &[0]),
    (&[0, 4], &[1]),
    (&[5, 0], &[1]),
    (&[33, 65], &[1]),
    (&[129, 17], &[0]),
];

fn of(kind: ReduceKind) -> Vec<OpCase> {
    let mut rng = CaseValues::new(310 + kind as u64);
    let mut cases = Vec::new();
    for (shape, axes) in POSITIONS {
        for keep in [true, false] {
            cases.push(case(kind, axes, keep, near_one(kind, rng.floats(shape)), ""));
        }
    }
    for n in [1usize, 2, 15, 16, 17, 63, 64, 65, 127, 128, 129, 1000] {
        cases.push(case(kind, &[1], true, near_one(kind, rng.floats([2, n])), ""));
    }
    for dtype in PLAIN.into_iter().filter(|&t| t != DType::F32 && (Reduce::new(kind, &[0], true)).takes(t)) {
        for (shape, axes) in [(&[3usize, 67] as &[usize], &[1u32]), (&[67, 3], &[0]), (&[2, 0], &[1])] {
            cases.push(case(kind, axes, false, near_one(kind, rng.rounded(dtype, shape)), ""));
        }
    }
    let long = [(vec![100_000], 0), (vec![2, 20_011], 1), (vec![20_011, 2], 0)];
    let long = long.into_iter().filter(|_| kind != ReduceKind::Prod);
    cases.extend(long.map(|(shape, axis)| case(kind, &[axis], false, rng.floats(shape), "")));
    let odd = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, f32::MIN_POSITIVE];
    for (i, x) in odd.into_iter().enumerate() {
        let mut row = vec![0.5; 70];
        row[13 * i] = x;
        cases.push(case(kind, &[1], false, Tensor::f32([1, 70], row), &format!(" with {x}")));
    }
    cases
}

/// Factors whose product stays in range; other values as they are.
fn near_one(kind: ReduceKind, mut x: Tensor) -> Tensor {
    if let (ReduceKind::Prod, Data::F32(v)) = (kind, &mut x.data) {
        v.iter_mut().for_each(|v| *v = 1.0 + *v / 64.0);
        crate::tensor::round_to(x.dtype, v);
    }
    x
}

fn case(kind: ReduceKind, axes: &[u32], keep: bool, x: Tensor, what: &str) -> OpCase {
    let tolerance = match kind {
        ReduceKind::Max | ReduceKind::Min => Tolerance::Exact,
        _ => Tolerance::SumOfProducts { c: 40.0 },
    };
    let tolerance = if matches!(x.dtype, DType::I32 | DType::U32) { Tolerance::Exact } else { tolerance };
    let name = format!("{kind} of {} {:?} along {axes:?} keep {keep}{what}", x.dtype, x.shape);
    OpCase::new(name, Reduce { kind, axes: List(axes.to_vec()), keep }, vec![x], tolerance)
}
