//! How far an op's outputs may be from its reference's on any inputs.

use crate::bounds;
use std::collections::HashMap;
use std::sync::LazyLock;
use yirage_ir::expr::is_float;
use yirage_ir::op::{OpCase, ReduceKind, Tolerance};
use yirage_ir::{Op, Tensor};

/// The widest tolerance among the cases of each named op, by its name and kind.
static NAMED: LazyLock<HashMap<String, Tolerance>> = LazyLock::new(|| {
    let mut widest: HashMap<String, Tolerance> = HashMap::new();
    for case in Op::all_cases() {
        let known = widest.entry(kind(&case.op)).or_insert(case.tolerance);
        *known = wider(*known, case.tolerance);
    }
    widest
});

/// Beyond it f32 sums and squares of named ops may overflow where f64 does not.
const ORDINARY: f64 = 1e9;

fn kind(op: &Op) -> String {
    let kind = op.attrs().into_iter().find(|(name, _)| *name == "kind").map_or_else(String::new, |(_, kind)| kind);
    format!("{} {kind}", op.name())
}

fn wider(a: Tolerance, b: Tolerance) -> Tolerance {
    match (a, b) {
        (Tolerance::Close { abs, rel }, Tolerance::Close { abs: other_abs, rel: other_rel }) => {
            Tolerance::Close { abs: abs.max(other_abs), rel: rel.max(other_rel) }
        }
        (Tolerance::SumOfProducts { c }, Tolerance::SumOfProducts { c: other }) => {
            Tolerance::SumOfProducts { c: c.max(other) }
        }
        (Tolerance::Exact, other) => other,
        (known, _) => known,
    }
}

/// One bound an element of an output; infinite where f32 may overflow on a way that f64 does not take.
pub(crate) fn bounds(op: &Op, ins: &[&Tensor], output: usize, wanted: &[f64]) -> Vec<f64> {
    let tolerance = of(op, ins);
    let ins_of_case = if tolerance == Tolerance::Exact { Vec::new() } else { ins.iter().copied().cloned().collect() };
    let case = OpCase { name: String::new(), op: op.clone(), ins: ins_of_case, tolerance };
    let mut bounds = bounds::of(&case, output, wanted);
    let general = matches!(op, Op::Map(_) | Op::Reduce(_) | Op::Contract(_));
    match tolerance {
        Tolerance::SumOfProducts { .. } if general => {
            let most = case.magnitudes().swap_remove(output);
            let overflows = |s: &f32| *s > f32::MAX / 4.0 || s.is_infinite();
            let unknown = most.floats().iter().map(|s| overflows(s) || far_from_one(op, ins));
            bounds.iter_mut().zip(unknown).filter(|(_, unknown)| *unknown).for_each(|(b, _)| *b = f64::INFINITY);
        }
        Tolerance::Exact | Tolerance::Terms => {}
        _ if ins.iter().all(|t| ordinary(t)) => {}
        _ => bounds.fill(f64::INFINITY),
    }
    bounds
}

fn of(op: &Op, ins: &[&Tensor]) -> Tolerance {
    match op {
        Op::Map(_) => Tolerance::Terms,
        Op::Reduce(op) if matches!(op.kind, ReduceKind::Max | ReduceKind::Min) || !is_float(ins[0].dtype) => {
            Tolerance::Exact
        }
        // One rounding an element at most, and those of joining what 64 lanes made.
        Op::Reduce(op) => {
            let n: usize = op.axes.0.iter().map(|&a| ins[0].shape[a as usize]).product();
            Tolerance::SumOfProducts { c: 8.0 + n as f32 }
        }
        Op::Contract(_) => Tolerance::SumOfProducts { c: 2.0 + ins[0].width() as f32 / 2.0 },
        op => NAMED.get(&kind(op)).copied().unwrap_or(Tolerance::Exact),
    }
}

fn ordinary(t: &Tensor) -> bool {
    !is_float(t.dtype) || t.scalars().iter().all(|s| s.as_f64().abs() < ORDINARY)
}

/// Whether factors may leave the range of f32 on the way to a product within it.
fn far_from_one(op: &Op, ins: &[&Tensor]) -> bool {
    let Op::Reduce(op) = op else { return false };
    let size = |x: f64| if x == 0.0 || !x.is_finite() { 0.0 } else { x.abs().log2().abs() };
    op.kind == ReduceKind::Prod && ins[0].scalars().iter().map(|s| size(s.as_f64())).sum::<f64>() > 100.0
}
