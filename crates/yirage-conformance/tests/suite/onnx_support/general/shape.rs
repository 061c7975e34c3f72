//! The same elements, elsewhere.

use super::{OnnxNode, axes, axis};
use yirage_ir::expr::Func;
use yirage_ir::op::{Concat, Cut, Gather, ViewForm};
use yirage_ir::{DType, Dim, Expr, ValueId};

pub(super) fn import(node: &mut OnnxNode<'_>) -> Option<Result<Vec<ValueId>, String>> {
    let made = match node.case.op.as_str() {
        "Split" => return Some(split(node)),
        "Identity" => identity(node),
        "Reshape" => reshape(node),
        "Transpose" => transpose(node),
        "Slice" => slice(node),
        "Expand" => expand(node),
        "Squeeze" => squeeze(node),
        "Unsqueeze" => unsqueeze(node),
        "Concat" => concat(node),
        "Gather" => gather(node),
        _ => return None,
    };
    Some(made.map(|y| vec![y]))
}

fn identity(node: &mut OnnxNode<'_>) -> Result<ValueId, String> {
    let x = node.input(0)?;
    node.reshape(x, &node.shape(x))
}

/// A size of 0 is the input's (unless `allowzero`), one of -1 what is left.
fn reshape(node: &mut OnnxNode<'_>) -> Result<ValueId, String> {
    let x = node.input(0)?;
    let have = node.shape(x);
    let list = node.case.whole("shape", 1).ok_or("no shape is given")?;
    let keeps_zero = node.case.attr("allowzero", 0) == 1;
    let known = |(at, &n): (usize, &i64)| match n {
        -1 => Ok(None),
        0 if !keeps_zero => have.get(at).copied().map(Some).ok_or(format!("the input has no dimension {at}")),
        n => u32::try_from(n).map(Some).map_err(|_| format!("a size of {n}")),
    };
    let sizes = list.iter().enumerate().map(known).collect::<Result<Vec<_>, _>>()?;
    let count: u64 = have.iter().map(|&n| u64::from(n)).product();
    let rest: u64 = sizes.iter().flatten().map(|&n| u64::from(n)).product();
    let left = count.checked_div(rest).unwrap_or(0) as u32;
    let shape: Vec<u32> = sizes.iter().map(|n| n.unwrap_or(left)).collect();
    node.reshape(x, &shape)
}

fn transpose(node: &mut OnnxNode<'_>) -> Result<ValueId, String> {
    let x = node.input(0)?;
    let rank = node.shape(x).len();
    let order = match node.case.ints("perm") {
        Some(list) => list.iter().map(|&a| axis(a, rank)).collect::<Result<Vec<_>, _>>()?,
        None => (0..rank).rev().collect(),
    };
    node.view(ViewForm::Permute(order.iter().map(|&a| a as u32).collect()), x)
}

/// Starts, ends, axes and steps were attributes before version 10.
fn slice(node: &mut OnnxNode<'_>) -> Result<ValueId, String> {
    let x = node.input(0)?;
    let shape = node.shape(x);
    let starts = node.case.whole("starts", 1).ok_or("no starts are given")?;
    let ends = node.case.whole("ends", 2).ok_or("no ends are given")?;
    let along = node.case.whole("axes", 3).unwrap_or_else(|| (0..starts.len() as i64).collect());
    let steps = node.case.whole("steps", 4).unwrap_or_else(|| vec![1; starts.len()]);
    if [ends.len(), along.len(), steps.len()] != [starts.len(); 3] {
        return Err("starts, ends, axes and steps are not as many".into());
    }
    axes(&along, shape.len())?;
    let mut cuts: Vec<Cut> = shape.iter().map(|&n| Cut::whole(n)).collect();
    for (i, &a) in along.iter().enumerate() {
        let a = axis(a, shape.len())?;
        cuts[a] = cut(i64::from(shape[a]), starts[i], ends[i], steps[i])?;
    }
    node.view(ViewForm::Slice(cuts), x)
}

/// As Python slices `n` elements.
fn cut(n: i64, start: i64, end: i64, step: i64) -> Result<Cut, String> {
    let (low, high) = if step > 0 { (0, n) } else { (-1, n - 1) };
    let from_front = |at: i64| (if at < 0 { at.saturating_add(n) } else { at }).clamp(low, high);
    let (start, end) = (from_front(start), from_front(end));
    let apart = if step > 0 { end - start } else { start - end };
    if step == 0 {
        return Err("a step of 0".into());
    }
    if apart <= 0 {
        return Ok(Cut { start: 0, step: 1, size: Dim::Const(0) });
    }
    let size = (apart as u64).div_ceil(step.unsigned_abs()) as u32;
    // One element has no next one.
    let step = if size == 1 { 1 } else { step as i32 };
    Ok(Cut { start: start as u32, step, size: Dim::Const(size) })
}

/// Sizes of 1 of either meet the other's.
fn expand(node: &mut OnnxNode<'_>) -> Result<ValueId, String> {
    let x = node.input(0)?;
    let have = node.shape(x);
    let wanted = node.case.whole("shape", 1).ok_or("no shape is given")?;
    let rank = have.len().max(wanted.len());
    let size = |i: usize| {
        let have = (i + have.len()).checked_sub(rank).map_or(1, |i| i64::from(have[i]));
        let wanted = (i + wanted.len()).checked_sub(rank).map_or(1, |i| wanted[i]);
        u32::try_from(if wanted == 1 { have } else { wanted }).map(Dim::Const).map_err(|e| e.to_string())
    };
    let shape = (0..rank).map(size).collect::<Result<Vec<_>, _>>()?;
    node.view(ViewForm::Expand(shape), x)
}

fn squeeze(node: &mut OnnxNode<'_>) -> Result<ValueId, String> {
    let x = node.input(0)?;
    let have = node.shape(x);
    let gone = match node.case.whole("axes", 1) {
        Some(list) => axes(&list, have.len())?,
        None => (0..have.len()).filter(|&a| have[a] == 1).collect(),
    };
    let left: Vec<u32> = (0..have.len()).filter(|a| !gone.contains(a)).map(|a| have[a]).collect();
    node.reshape(x, &left)
}

fn unsqueeze(node: &mut OnnxNode<'_>) -> Result<ValueId, String> {
    let x = node.input(0)?;
    let have = node.shape(x);
    let list = node.case.whole("axes", 1).ok_or("no axes are given")?;
    let new = axes(&list, have.len() + list.len())?;
    let mut old = have.iter();
    let rank = have.len() + list.len();
    let shape: Vec<u32> = (0..rank).map(|a| if new.contains(&a) { 1 } else { *old.next().unwrap() }).collect();
    node.reshape(x, &shape)
}

/// Before version 4 the axis could be left out.
fn concat(node: &mut OnnxNode<'_>) -> Result<ValueId, String> {
    let ins = node.inputs()?;
    let rank = ins.first().map_or(0, |&x| node.shape(x).len());
    let axis = axis(node.case.attr("axis", 1), rank)? as u32;
    node.op(Concat { axis }, &ins)
}

/// Numbers below 0 count from the end; the graph adds.
fn gather(node: &mut OnnxNode<'_>) -> Result<ValueId, String> {
    let (x, at) = (node.input(0)?, node.input(1)?);
    let shape = node.shape(x);
    let axis = axis(node.case.attr("axis", 0), shape.len())?;
    let (i, n) = (Expr::input(0), Expr::constant(shape[axis] as i32));
    let below = Expr::call(Func::Less, &[i.clone(), Expr::constant(0i32)]);
    let from_front = Expr::call(Func::Select, &[below, Expr::call(Func::Add, &[i.clone(), n]), i]);
    let at = node.map(&from_front, DType::I32, &[at])?;
    node.op(Gather { axis: axis as u32 }, &[x, at])
}

/// Into given sizes, or into as many parts as there are outputs: of equal size, the last one smaller.
fn split(node: &mut OnnxNode<'_>) -> Result<Vec<ValueId>, String> {
    let x = node.input(0)?;
    let shape = node.shape(x);
    let axis = axis(node.case.attr("axis", 0), shape.len())?;
    let n = i64::from(shape[axis]);
    let sizes = node.case.whole("split", 1).unwrap_or_else(|| {
        let parts = node.case.outs.len() as i64;
        let size = (n as u64).div_ceil(parts as u64) as i64;
        (0..parts).map(|p| (n - p * size).clamp(0, size)).collect()
    });
    let mut from = 0;
    let mut outputs = Vec::new();
    for size in sizes {
        let mut cuts: Vec<Cut> = shape.iter().map(|&n| Cut::whole(n)).collect();
        cuts[axis] = cut(n, from, from + size, 1)?;
        outputs.push(node.view(ViewForm::Slice(cuts), x)?);
        from += size;
    }
    Ok(outputs)
}
