//! Evaluates a program over a domain, as much of it as a demand asks for.

use super::axis::{IndexSet, count, offsets, strides};
use super::demand::{Demand, backward, cut_at, flat, groups, whole};
use super::domain::{Domain, EvalStop, Matrices, SampledTensor, TensorElements};
use super::map::{constant, map};
use super::program::{Closed, EvalOp, EvalProgram, EvalStep, is_whole};
use std::borrow::Cow;
use yirage_ir::DType;
use yirage_ir::expr::Scalar;
use yirage_ir::op::{OpDef, Reduce, ReduceKind, ViewForm};
use yirage_ir::rng::mix;
use yirage_ir::tensor;

/// The outputs of a program, as much of each as `demand` asks for.
pub(super) fn evaluate<D: Domain>(
    program: &EvalProgram,
    demand: &Demand,
    domain: &mut D,
) -> Result<Vec<SampledTensor<D::Num>>, EvalStop> {
    let last = last_readers(program);
    let mut values: Vec<Option<SampledTensor<D::Num>>> = vec![None; program.values.len()];
    for input in &program.inputs {
        let Some(axes) = &demand.axes[input.value] else { continue };
        let shape = &program.values[input.value];
        let places = flat(axes);
        let data = if is_whole(shape.dtype) {
            TensorElements::Whole(places.into_iter().map(|at| domain.whole_input(input, at)).collect())
        } else {
            let element = |at| domain.input(input, shape.dtype, &shape.sizes, at);
            TensorElements::Numbers(places.into_iter().map(element).collect())
        };
        values[input.value] = Some(SampledTensor { axes: axes.clone(), data });
    }
    for (n, step) in program.steps.iter().enumerate() {
        if step.outs.iter().all(|&o| demand.axes[o].is_none()) {
            continue;
        }
        let Some(out) = step.outs.iter().find_map(|&o| demand.axes[o].as_deref()) else { continue };
        let wanted = backward(program, step, out);
        let ins: Vec<Cow<'_, SampledTensor<D::Num>>> =
            step.ins.iter().zip(&wanted).filter_map(|(&i, axes)| Some(restricted(values[i].as_ref()?, axes))).collect();
        let outs = run(program, step, out, ins, domain)?;
        for (&o, data) in step.outs.iter().zip(outs) {
            // The outputs of a closed op are made whole, whatever is asked for.
            let axes = match (&step.kind, &demand.axes[o]) {
                (EvalOp::Closed(_), Some(axes)) => {
                    let all = SampledTensor { axes: whole(&program.values[o].sizes), data };
                    values[o] = Some(restricted(&all, axes).into_owned());
                    continue;
                }
                (_, axes) => axes.clone(),
            };
            values[o] = axes.map(|axes| SampledTensor { axes, data });
        }
        for &i in step.ins.iter().filter(|&&i| last[i] == n) {
            values[i] = None;
        }
    }
    Ok(program.outputs.iter().filter_map(|o| values[o.value].clone()).collect())
}

/// For each value, the last step that reads it; none reads what has a number past all steps.
fn last_readers(program: &EvalProgram) -> Vec<usize> {
    let mut last = vec![usize::MAX; program.values.len()];
    for (n, step) in program.steps.iter().enumerate() {
        step.ins.iter().for_each(|&i| last[i] = n);
    }
    program.outputs.iter().for_each(|o| last[o.value] = usize::MAX);
    last
}

/// The elements at `places`.
fn picked<N: Copy>(data: &TensorElements<N>, places: &[usize]) -> TensorElements<N> {
    match data {
        TensorElements::Numbers(x) => TensorElements::Numbers(places.iter().map(|&at| x[at]).collect()),
        TensorElements::Whole(x) => TensorElements::Whole(places.iter().map(|&at| x[at]).collect()),
    }
}

/// The part of a tensor that these indices are.
fn restricted<'a, N: Copy>(x: &'a SampledTensor<N>, axes: &[IndexSet]) -> Cow<'a, SampledTensor<N>> {
    if x.axes == axes {
        return Cow::Borrowed(x);
    }
    let steps = strides(&x.axes);
    let along = |(i, axis): (usize, &IndexSet)| axis.iter().map(|at| x.axes[i].position(at) * steps[i]).collect();
    let lists: Vec<Vec<usize>> = axes.iter().enumerate().map(along).collect();
    Cow::Owned(SampledTensor { axes: axes.to_vec(), data: picked(&x.data, &offsets(&lists)) })
}

fn run<D: Domain>(
    program: &EvalProgram,
    step: &EvalStep,
    out: &[IndexSet],
    ins: Vec<Cow<'_, SampledTensor<D::Num>>>,
    domain: &mut D,
) -> Result<Vec<TensorElements<D::Num>>, EvalStop> {
    let data = match &step.kind {
        EvalOp::Map(expr) => {
            let spread: Vec<Cow<'_, TensorElements<D::Num>>> = ins.iter().map(|x| spread(x, out)).collect();
            let spread: Vec<&TensorElements<D::Num>> = spread.iter().map(|x| &**x).collect();
            map(domain, expr, &program.dtypes(step), &spread, count(out))?
        }
        EvalOp::Reduce(op) => reduce(domain, op, &ins[0], program.values[step.ins[0]].dtype)?,
        EvalOp::View(form) => viewed(form, &ins[0], out),
        EvalOp::Contract => contract(domain, &ins[0], &ins[1], out, program.values[step.outs[0]].dtype),
        EvalOp::Concat(axis) => joined(*axis, &ins, out),
        EvalOp::Gather(axis) => gathered(domain, *axis, &ins[0], &ins[1]),
        EvalOp::Fill(value) => constant(domain, *value, count(out)),
        EvalOp::Iota(axis) => {
            let along =
                |(i, axis_i): (usize, &IndexSet)| axis_i.iter().map(|at| if i == *axis { at } else { 0 }).collect();
            let lists: Vec<Vec<usize>> = out.iter().enumerate().map(along).collect();
            TensorElements::Whole(offsets(&lists).into_iter().map(|at| at as i64).collect())
        }
        EvalOp::Closed(op) => return Ok(closed(program, step, op, &ins, domain)),
    };
    Ok(vec![data])
}

/// As the elements meet those of a larger shape.
fn spread<'a, N: Copy>(x: &'a SampledTensor<N>, out: &[IndexSet]) -> Cow<'a, TensorElements<N>> {
    if x.axes.len() == out.len() && x.axes.iter().zip(out).all(|(a, b)| a.len() == b.len()) {
        return Cow::Borrowed(&x.data);
    }
    Cow::Owned(picked(&x.data, &offsets(&met(&x.axes, out))))
}

/// For each dimension of `out`, where the elements of a value lie that meets it.
fn met(axes: &[IndexSet], out: &[IndexSet]) -> Vec<Vec<usize>> {
    let (first, steps) = (out.len() - axes.len(), strides(axes));
    let along = |(i, axis): (usize, &IndexSet)| match i.checked_sub(first) {
        Some(own) if axes[own].size() == axis.size() => (0..axis.len()).map(|at| at * steps[own]).collect(),
        _ => vec![0; axis.len()],
    };
    out.iter().enumerate().map(along).collect()
}

fn reduce<D: Domain>(
    domain: &mut D,
    op: &Reduce,
    x: &SampledTensor<D::Num>,
    dtype: DType,
) -> Result<TensorElements<D::Num>, EvalStop> {
    let steps = strides(&x.axes);
    let lists = |reduced: bool| {
        let chosen = (0..x.axes.len()).filter(|&i| op.axes.0.contains(&(i as u32)) == reduced);
        let list = |i: usize| (0..x.axes[i].len()).map(|at| at * steps[i]).collect();
        offsets(&chosen.map(list).collect::<Vec<_>>())
    };
    let (kept, reduced) = (lists(false), lists(true));
    match &x.data {
        TensorElements::Numbers(x) => {
            let mut group = Vec::with_capacity(reduced.len());
            let mut one = |first: usize| {
                group.clear();
                group.extend(reduced.iter().map(|at| x[first + at]));
                domain.reduce(op.kind, &group, dtype)
            };
            Ok(TensorElements::Numbers(kept.into_iter().map(&mut one).collect::<Result<_, EvalStop>>()?))
        }
        TensorElements::Whole(x) => {
            let one = |first: usize| whole_reduced(op.kind, reduced.iter().map(|at| x[first + at]).collect(), dtype);
            Ok(TensorElements::Whole(kept.into_iter().map(one).collect()))
        }
    }
}

/// Of whole numbers, as the op itself reduces them.
fn whole_reduced(kind: ReduceKind, x: Vec<i64>, dtype: DType) -> i64 {
    let scalar = |&x: &i64| if dtype == DType::I32 { Scalar::from(x as i32) } else { Scalar::from(x as u32) };
    let elements: Vec<Scalar> = x.iter().map(scalar).collect();
    let x = tensor::Tensor::from_scalars(dtype, [x.len()], &elements);
    let out = Reduce::new(kind, &[0], false).eval(&[&x]);
    out.first().and_then(|t| t.scalars().first().copied()).map_or(0, |x| x.as_f64() as i64)
}

fn viewed<N: Copy>(form: &ViewForm, x: &SampledTensor<N>, out: &[IndexSet]) -> TensorElements<N> {
    let steps = strides(&x.axes);
    let lists: Vec<Vec<usize>> = match form {
        ViewForm::Permute(axes) => {
            let along = |(&from, axis): (&u32, &IndexSet)| {
                axis.iter().map(|at| x.axes[from as usize].position(at) * steps[from as usize]).collect()
            };
            axes.iter().zip(out).map(along).collect()
        }
        ViewForm::Slice(cuts) => {
            let along = |(i, axis): (usize, &IndexSet)| {
                axis.iter().map(|at| x.axes[i].position(cut_at(&cuts[i], at)) * steps[i]).collect()
            };
            out.iter().enumerate().map(along).collect()
        }
        ViewForm::Expand(_) => met(&x.axes, out),
        ViewForm::Reshape(_) => {
            let sizes = |axes: &[IndexSet]| axes.iter().map(IndexSet::size).collect::<Vec<_>>();
            let group = |(from, to): (std::ops::Range<usize>, std::ops::Range<usize>)| {
                let place = |mut at: usize| {
                    let mut place = 0;
                    for i in from.clone().rev() {
                        let size = x.axes[i].size();
                        place += x.axes[i].position(at % size) * steps[i];
                        at /= size;
                    }
                    place
                };
                flat(&out[to]).into_iter().map(place).collect()
            };
            groups(&sizes(&x.axes), &sizes(out)).into_iter().map(group).collect()
        }
    };
    picked(&x.data, &offsets(&lists))
}

fn contract<D: Domain>(
    domain: &mut D,
    a: &SampledTensor<D::Num>,
    b: &SampledTensor<D::Num>,
    out: &[IndexSet],
    dtype: DType,
) -> TensorElements<D::Num> {
    let (TensorElements::Numbers(x), TensorElements::Numbers(y)) = (&a.data, &b.data) else {
        return TensorElements::Numbers(Vec::new());
    };
    let (batch_a, batch_b) = (a.axes.len() - 2, b.axes.len() - 2);
    let (m, k, n) = (a.axes[batch_a].len(), a.axes[batch_a + 1].len(), b.axes[batch_b + 1].len());
    let batch = &out[..out.len() - 2];
    let left = offsets(&met(&a.axes[..batch_a], batch));
    let right = offsets(&met(&b.axes[..batch_b], batch));
    let mut all = Vec::with_capacity(count(out));
    for (left, right) in left.into_iter().zip(right) {
        let (a, b) = (&x[left * m * k..][..m * k], &y[right * k * n..][..k * n]);
        all.extend(domain.contract(a, b, Matrices { m, k, n }, dtype));
    }
    TensorElements::Numbers(all)
}

fn joined<N: Copy>(axis: usize, ins: &[Cow<'_, SampledTensor<N>>], out: &[IndexSet]) -> TensorElements<N> {
    let outer = count(&out[..axis]);
    let runs: Vec<usize> = ins.iter().map(|x| count(&x.axes[axis..])).collect();
    let mut numbers = Vec::new();
    let mut whole = Vec::new();
    for o in 0..outer {
        for (x, &run) in ins.iter().zip(&runs) {
            match &x.data {
                TensorElements::Numbers(x) => numbers.extend_from_slice(&x[o * run..][..run]),
                TensorElements::Whole(x) => whole.extend_from_slice(&x[o * run..][..run]),
            }
        }
    }
    if ins.iter().any(|x| matches!(x.data, TensorElements::Whole(_))) {
        TensorElements::Whole(whole)
    } else {
        TensorElements::Numbers(numbers)
    }
}

fn gathered<D: Domain>(
    domain: &mut D,
    axis: usize,
    x: &SampledTensor<D::Num>,
    at: &SampledTensor<D::Num>,
) -> TensorElements<D::Num> {
    let (outer, n, inner) = (count(&x.axes[..axis]), x.axes[axis].len(), count(&x.axes[axis + 1..]));
    let TensorElements::Whole(at) = &at.data else { return TensorElements::Numbers(Vec::new()) };
    let slices = || (0..outer).flat_map(|o| at.iter().map(move |&i| (o, usize::try_from(i).ok().filter(|&i| i < n))));
    match &x.data {
        TensorElements::Numbers(x) => {
            let missing = domain.constant(f32::NAN);
            let mut out = Vec::with_capacity(outer * at.len() * inner);
            for (o, i) in slices() {
                match i {
                    Some(i) => out.extend_from_slice(&x[(o * n + i) * inner..][..inner]),
                    None => out.extend(std::iter::repeat_n(missing, inner)),
                }
            }
            TensorElements::Numbers(out)
        }
        TensorElements::Whole(x) => {
            let mut out = Vec::with_capacity(outer * at.len() * inner);
            for (o, i) in slices() {
                match i {
                    Some(i) => out.extend_from_slice(&x[(o * n + i) * inner..][..inner]),
                    None => out.extend(std::iter::repeat_n(0, inner)),
                }
            }
            TensorElements::Whole(out)
        }
    }
}

/// The outputs of a closed op: each element follows from the op, its own place, and the rows that it may depend on.
fn closed<D: Domain>(
    program: &EvalProgram,
    step: &EvalStep,
    op: &Closed,
    ins: &[Cow<'_, SampledTensor<D::Num>>],
    domain: &mut D,
) -> Vec<TensorElements<D::Num>> {
    let own = |i: usize| op.by_rows.as_ref().is_some_and(|rows| rows[i]);
    let mut shared = mix(op.key);
    for (i, x) in ins.iter().enumerate().filter(|(i, _)| !own(*i)) {
        shared = mix(shared ^ digest(domain, &x.data, 0..count(&x.axes)).wrapping_add(i as u64));
    }
    let row = |domain: &D, row: usize| {
        let of = |(i, x): (usize, &Cow<'_, SampledTensor<D::Num>>)| {
            let width = count(&x.axes[1..]);
            digest(domain, &x.data, row * width..(row + 1) * width).wrapping_add(i as u64)
        };
        ins.iter().enumerate().filter(|(i, _)| own(*i)).map(of).fold(shared, |hash, row| mix(hash ^ row))
    };
    let mut outs = Vec::with_capacity(step.outs.len());
    for (number, &o) in step.outs.iter().enumerate() {
        let shape = &program.values[o];
        let n = count(&whole(&shape.sizes));
        let rows = if op.by_rows.is_some() { shape.sizes.first().copied().unwrap_or(1) } else { 1 };
        let width = n.checked_div(rows).unwrap_or(0);
        let mut hashes = Vec::with_capacity(n);
        for r in 0..if n == 0 { 0 } else { rows } {
            let hash = if op.by_rows.is_some() { row(domain, r) } else { shared };
            let hash = mix(hash.wrapping_add(number as u64));
            hashes.extend((0..width).map(|at| mix(hash ^ at as u64)));
        }
        outs.push(if is_whole(shape.dtype) {
            // Small, so that what they choose is there.
            TensorElements::Whole(hashes.into_iter().map(|hash| (hash & 1) as i64).collect())
        } else {
            TensorElements::Numbers(hashes.into_iter().map(|hash| domain.closed(hash)).collect())
        });
    }
    outs
}

fn digest<D: Domain>(domain: &D, data: &TensorElements<D::Num>, range: std::ops::Range<usize>) -> u64 {
    let with = |hash: u64, x: u64| mix(hash.rotate_left(5) ^ x);
    match data {
        TensorElements::Numbers(x) => x[range].iter().fold(1, |hash, &x| with(hash, domain.digest(x))),
        TensorElements::Whole(x) => x[range].iter().fold(2, |hash, &x| with(hash, x as u64)),
    }
}
