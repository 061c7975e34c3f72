//! Which elements of every value are needed for some elements of the outputs, and what computing them takes.
//!
//! For each dimension of a value a set of indices is kept; all combinations of them are computed. So a sample of rows
//! and columns of a product reads those rows and columns of its factors alone.

use super::axis::{IndexSet, count};
use super::program::{EvalOp, EvalProgram, EvalStep};
use yirage_ir::expr::{Func, Term};
use yirage_ir::op::{Cut, ViewForm};
use yirage_ir::rng::Rng;

/// For each value of a program, the indices that are needed along each dimension; `None` for values that nothing needs.
pub(super) struct Demand {
    pub(super) axes: Vec<Option<Vec<IndexSet>>>,
    /// Operations that computing them takes.
    pub(super) work: u64,
}

impl Demand {
    /// What `outputs` need, each given by its indices along each dimension; as soon as one value alone needs more than
    /// `budget` operations, only how many these are.
    pub(super) fn of(program: &EvalProgram, outputs: &[Vec<IndexSet>], budget: u64) -> Demand {
        let mut demand = Demand { axes: vec![None; program.values.len()], work: 0 };
        for (output, axes) in program.outputs.iter().zip(outputs) {
            demand.add(output.value, axes.clone());
        }
        for step in program.steps.iter().rev() {
            let needed: Vec<&Vec<IndexSet>> = step.outs.iter().filter_map(|&o| demand.axes[o].as_ref()).collect();
            let Some(&first) = needed.first() else { continue };
            // Sizes of 0 do not make the lists of the others short.
            let listed = first.iter().fold(1u64, |n, axis| n.saturating_mul(axis.len().max(1) as u64));
            if listed > budget {
                demand.work = demand.work.saturating_add(listed);
                break;
            }
            let ins = backward(program, step, first);
            demand.work = demand.work.saturating_add(work(program, step, first, &ins));
            for (&value, axes) in step.ins.iter().zip(ins) {
                demand.add(value, axes);
            }
        }
        let given = program.inputs.iter().filter_map(|input| demand.axes[input.value].as_deref());
        let elements: u64 = given.map(|axes| count(axes) as u64).sum();
        demand.work = demand.work.saturating_add(4 * elements);
        demand
    }

    fn add(&mut self, value: usize, axes: Vec<IndexSet>) {
        let known = &mut self.axes[value];
        *known = Some(match known.take() {
            None => axes,
            Some(known) => known.iter().zip(&axes).map(|(a, b)| a.union(b)).collect(),
        });
    }
}

/// All elements of a value.
pub(super) fn whole(sizes: &[usize]) -> Vec<IndexSet> {
    sizes.iter().map(|&n| IndexSet::all(n)).collect()
}

/// The indices of each input that a step needs for these of its outputs.
pub(super) fn backward(program: &EvalProgram, step: &EvalStep, out: &[IndexSet]) -> Vec<Vec<IndexSet>> {
    let sizes = |i: usize| program.values[step.ins[i]].sizes.as_slice();
    match &step.kind {
        EvalOp::Map(_) => (0..step.ins.len()).map(|i| spread(sizes(i), out)).collect(),
        EvalOp::Reduce(reduce) => {
            let mut left = out.iter();
            let axis = |(at, &size): (usize, &usize)| {
                let reduced = reduce.axes.0.contains(&(at as u32));
                let kept = if reduced && !reduce.keep { None } else { left.next() };
                kept.filter(|_| !reduced).cloned().unwrap_or_else(|| IndexSet::all(size))
            };
            vec![sizes(0).iter().enumerate().map(axis).collect()]
        }
        EvalOp::View(form) => vec![view_demand(form, sizes(0), out)],
        EvalOp::Contract => {
            let ([batch @ .., m, n], k) = (out, sizes(0)[sizes(0).len() - 1]) else { return Vec::new() };
            let matrix = |i: usize, inner: [IndexSet; 2]| {
                let mut axes = spread(&sizes(i)[..sizes(i).len() - 2], batch);
                axes.extend(inner);
                axes
            };
            vec![matrix(0, [m.clone(), IndexSet::all(k)]), matrix(1, [IndexSet::all(k), n.clone()])]
        }
        EvalOp::Concat(axis) => {
            let mut first = 0;
            let part = |i: usize| {
                let (n, mut axes) = (sizes(i)[*axis], out.to_vec());
                let inside = out[*axis].iter().filter(|&at| (first..first + n).contains(&at));
                axes[*axis] = IndexSet::of(n, inside.map(|at| (at - first) as u32).collect());
                first += n;
                axes
            };
            (0..step.ins.len()).map(part).collect()
        }
        EvalOp::Gather(axis) => {
            let (rank, chosen) = (sizes(0).len(), sizes(1).len());
            let after = out[axis + chosen..].iter().cloned();
            let x: Vec<IndexSet> =
                out[..*axis].iter().cloned().chain([IndexSet::all(sizes(0)[*axis])]).chain(after).collect();
            debug_assert_eq!(x.len(), rank);
            vec![x, out[*axis..axis + chosen].to_vec()]
        }
        EvalOp::Fill(_) | EvalOp::Iota(_) => Vec::new(),
        EvalOp::Closed(_) => (0..step.ins.len()).map(|i| whole(sizes(i))).collect(),
    }
}

/// Of a value that meets others in a larger shape.
fn spread(sizes: &[usize], out: &[IndexSet]) -> Vec<IndexSet> {
    let first = out.len() - sizes.len();
    let axis =
        |(&size, axis): (&usize, &IndexSet)| if size == axis.size() { axis.clone() } else { IndexSet::all(size) };
    sizes.iter().zip(&out[first..]).map(axis).collect()
}

fn view_demand(form: &ViewForm, sizes: &[usize], out: &[IndexSet]) -> Vec<IndexSet> {
    match form {
        ViewForm::Permute(axes) => {
            let mut seen = whole(sizes);
            axes.iter().zip(out).for_each(|(&from, axis)| seen[from as usize] = axis.clone());
            seen
        }
        ViewForm::Slice(cuts) => {
            let cut = |(&size, (cut, axis)): (&usize, (&Cut, &IndexSet))| {
                IndexSet::of(size, axis.iter().map(|i| cut_at(cut, i) as u32).collect())
            };
            sizes.iter().zip(cuts.iter().zip(out)).map(cut).collect()
        }
        ViewForm::Expand(_) => spread(sizes, out),
        ViewForm::Reshape(_) => {
            let to: Vec<usize> = out.iter().map(IndexSet::size).collect();
            let mut seen = Vec::with_capacity(sizes.len());
            for (from, into) in groups(sizes, &to) {
                let chosen = flat(&out[into]);
                let mut inner: usize = sizes[from.clone()].iter().product();
                for &size in &sizes[from] {
                    inner /= size.max(1);
                    seen.push(IndexSet::of(size, chosen.iter().map(|at| (at / inner.max(1) % size) as u32).collect()));
                }
            }
            seen
        }
    }
}

/// The index that number `i` of a cut is.
pub(super) fn cut_at(cut: &Cut, i: usize) -> usize {
    (i64::from(cut.start) + i as i64 * i64::from(cut.step)) as usize
}

/// The numbers of the chosen elements among all of these dimensions, row-major, in order.
pub(super) fn flat(axes: &[IndexSet]) -> Vec<usize> {
    let mut all = vec![0];
    for axis in axes {
        all = all.iter().flat_map(|before| axis.iter().map(move |i| before * axis.size() + i)).collect();
    }
    all
}

type DimRange = std::ops::Range<usize>;

/// The fewest dimensions of each side of a reshape that hold as many elements, from the outermost on. Every dimension
/// is in one group; sizes of 0 make one group of all.
pub(super) fn groups(from: &[usize], to: &[usize]) -> Vec<(DimRange, DimRange)> {
    if from.contains(&0) || to.contains(&0) {
        return vec![(0..from.len(), 0..to.len())];
    }
    let (mut groups, mut i, mut j) = (Vec::new(), 0, 0);
    while i < from.len() || j < to.len() {
        let (first, second) = (i, j);
        let (mut a, mut b) = (1, 1);
        if let Some(size) = from.get(i) {
            (a, i) = (*size, i + 1);
        }
        if let Some(size) = to.get(j) {
            (b, j) = (*size, j + 1);
        }
        while a != b {
            let grown =
                if a < b { from.get(i).map(|n| (&mut a, &mut i, *n)) } else { to.get(j).map(|n| (&mut b, &mut j, *n)) };
            // Unequal numbers of elements, which inference refuses.
            let Some((product, at, n)) = grown else { return vec![(0..from.len(), 0..to.len())] };
            *product *= n;
            *at += 1;
        }
        groups.push((first..i, second..j));
    }
    groups
}

/// Operations of a step.
fn work(program: &EvalProgram, step: &EvalStep, out: &[IndexSet], ins: &[Vec<IndexSet>]) -> u64 {
    let n = count(out) as u64;
    let read: u64 = ins.iter().map(|axes| count(axes) as u64).sum();
    match &step.kind {
        EvalOp::Map(expr) => n.saturating_mul(expr.terms().iter().map(cost).sum()),
        EvalOp::Contract => {
            let k = ins.first().and_then(|a| a.last()).map_or(0, IndexSet::len) as u64;
            n.saturating_mul(k)
        }
        EvalOp::Reduce(_) => read.saturating_mul(4),
        EvalOp::Closed(_) => {
            let outs = step.outs.iter().filter_map(|&o| program.values[o].elements());
            read.saturating_mul(4).saturating_add(outs.map(|n| n as u64).sum())
        }
        _ => n,
    }
}

fn cost(term: &Term) -> u64 {
    match term {
        Term::Input(_) | Term::Const(_) => 1,
        Term::Cast(..) => 2,
        Term::Call(func, _) => match func {
            Func::Add | Func::Sub | Func::Neg | Func::Select => 2,
            Func::Mul | Func::Square => 4,
            Func::Exp => 16,
            _ => 64,
        },
    }
}

/// One index of each of `wanted` equal parts of a dimension, drawn anew from every `rng`.
pub(super) fn sample(size: usize, wanted: usize, rng: &mut Rng) -> IndexSet {
    if wanted >= size {
        return IndexSet::all(size);
    }
    let start = |i: usize| i * size / wanted;
    IndexSet::of(size, (0..wanted).map(|i| (start(i) + rng.index(start(i + 1) - start(i))) as u32).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reshape_falls_into_groups() {
        assert_eq!(groups(&[8, 4096], &[8, 32, 128]), [(0..1, 0..1), (1..2, 1..3)]);
        assert_eq!(groups(&[1, 6], &[2, 3, 1]), [(0..2, 0..2), (2..2, 2..3)]);
        assert_eq!(groups(&[], &[1, 1]), [(0..0, 0..1), (0..0, 1..2)]);
        assert_eq!(groups(&[0, 3], &[5, 0]), [(0..2, 0..2)]);
    }

    #[test]
    fn what_a_reshape_reads_holds_what_it_gives() {
        let out = [IndexSet::all(2), IndexSet::of(6, vec![1, 4])];
        let form = ViewForm::Reshape(vec![2.into(), 6.into()]);
        let read = view_demand(&form, &[2, 2, 3], &out);
        assert_eq!(read, [IndexSet::all(2), IndexSet::all(2), IndexSet::of(3, vec![1])]);
    }

    #[test]
    fn samples_have_as_many_as_asked_for() {
        let mut rng = Rng::new(3);
        for (size, wanted) in [(10, 3), (7, 6), (4096, 64), (5, 5), (1, 1)] {
            assert_eq!(sample(size, wanted, &mut rng).len(), wanted);
        }
    }
}
