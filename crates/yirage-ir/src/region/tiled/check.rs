//! What must hold for every tiled region whose graphs are sound.

use super::flat::flat;
use super::{Accumulate, CONTINUED, TileIn, TileOut, Tiled};
use crate::dim::{Dim, Dims};
use crate::dtype::DType;
use crate::expr::is_float;
use crate::graph::{Graph, Node, NodeKind, ValueId, ValueSource};
use crate::op::{Op, plain};
use crate::region::RegionKind;
use crate::types::Type;

/// The types of the node's outputs, for inputs of these types.
///
/// # Errors
/// What does not hold.
pub(in crate::region) fn infer(body: &Graph, tiled: &Tiled, ins: &[Type]) -> Result<Vec<Type>, String> {
    sizes(tiled, ins)?;
    for (name, graph) in [("body", body), ("block", &tiled.block)] {
        let inner = |n: &Node| matches!(&n.kind, NodeKind::Region(r) if r.kind != RegionKind::Chain);
        if let Some(node) = graph.nodes.iter().find(|n| inner(n)) {
            return Err(format!("a region `{}` in its {name}: chains alone are", node.name()));
        }
        check_ops(name, &flat(graph))?;
    }
    let body = &*flat(body);
    let tiles = tiled.ins.iter().zip(ins).enumerate();
    let tiles = tiles.map(|(at, (cut, ty))| tile(tiled, at, cut, ty)).collect::<Result<Vec<_>, _>>()?;
    let accumulated = accumulators(body, tiled)?;
    running(body, tiled, &tiles, &accumulated)?;
    block_inputs(tiled, &tiles, accumulated)?;
    outputs(tiled)
}

/// The numbers of blocks, iterations and inputs.
fn sizes(tiled: &Tiled, ins: &[Type]) -> Result<(), String> {
    let Tiled { grid, loops, .. } = tiled;
    if grid.contains(&0) || *loops == 0 || tiled.blocks().and_then(|n| n.checked_mul(u64::from(*loops))).is_none() {
        return Err(format!("a grid of {grid:?} blocks of {loops} iterations: from 1 on, and a number, are wanted"));
    }
    if tiled.ins.len() != ins.len() {
        return Err(format!("{} inputs are cut, the node has {}", tiled.ins.len(), ins.len()));
    }
    if *loops > 1 && tiled.ins.iter().all(|cut| cut.by_loop.is_none()) {
        return Err(format!("{loops} iterations of which each reads the same: the loop cuts no input"));
    }
    if *loops > 1 && tiled.accumulators.is_empty() {
        return Err(format!("{loops} iterations of which nothing is accumulated"));
    }
    Ok(())
}

/// General ops alone, on plain values of fixed shape.
fn check_ops(name: &str, graph: &Graph) -> Result<(), String> {
    for value in &graph.values {
        let wrong = |why: &str| Err(format!("`{}` of its {name} is {}: {why}", value.name, value.ty));
        if !matches!(value.source, ValueSource::StepInput | ValueSource::Node { .. }) {
            return wrong("tiles are step inputs, no weight or KV cache");
        }
        if !value.ty.is_fixed() || value.ty.strides.is_some() || plain(&value.ty).is_err() {
            return wrong("plain elements, a fixed shape and no strides are wanted");
        }
    }
    for node in &graph.nodes {
        let general = matches!(
            &node.kind,
            NodeKind::Op(
                Op::Map(_) | Op::Reduce(_) | Op::View(_) | Op::Contract(_) | Op::Concat(_) | Op::Fill(_) | Op::Iota(_)
            )
        );
        if !general {
            let wanted = "map, reduce, view, contract, concat, fill and iota are the ops of a tile";
            return Err(format!("`{}` in its {name}: {wanted}", node.name()));
        }
    }
    Ok(())
}

/// The type of a tile.
pub(super) fn tile(tiled: &Tiled, at: usize, cut: &TileIn, ty: &Type) -> Result<Type, String> {
    if !ty.is_fixed() || ty.activation_format.is_some() || plain(ty).is_err() {
        return Err(format!("input {at} is {ty}: plain elements and a fixed shape are wanted"));
    }
    let mut shape = ty.shape.clone();
    let divide = |shape: &mut Vec<Dim>, dim: u32, by: u32, what: &str| {
        let none = || format!("input {at} is {ty}: it has no dimension {dim} for {what} to cut");
        let size = shape.get_mut(dim as usize).ok_or_else(none)?;
        let Dim::Const(n) = *size else { return Err(none()) };
        if !n.is_multiple_of(by) {
            return Err(format!("input {at} is {ty}: {what} cuts {n} elements of dimension {dim} into {by} parts"));
        }
        *size = Dim::Const(n / by);
        Ok(())
    };
    distinct(&cut.grid, &format!("input {at}"))?;
    for (axis, (dim, &n)) in cut.grid.iter().zip(&tiled.grid).enumerate() {
        if let Some(dim) = *dim {
            divide(&mut shape, dim, n, &format!("grid axis {axis}"))?;
        }
    }
    if let Some(dim) = cut.by_loop {
        divide(&mut shape, dim, tiled.loops, "the loop")?;
    }
    Ok(Type::new(ty.dtype, shape))
}

/// No dimension twice.
fn distinct(grid: &[Option<u32>; 3], what: &str) -> Result<(), String> {
    for (axis, dim) in grid.iter().enumerate() {
        if let Some(dim) = dim
            && grid[..axis].contains(&Some(*dim))
        {
            return Err(format!("{what}: two axes of the grid cut dimension {dim}"));
        }
    }
    Ok(())
}

/// The types of the accumulators.
fn accumulators(body: &Graph, tiled: &Tiled) -> Result<Vec<Type>, String> {
    let (count, outputs) = (tiled.accumulators.len(), &body.outputs);
    let Some((values, factors)) = outputs.split_at_checked(count) else {
        return Err(format!("{count} accumulators of {} outputs of the body", outputs.len()));
    };
    let mut used = vec![false; factors.len()];
    for (at, (how, &id)) in tiled.accumulators.iter().zip(values).enumerate() {
        let ty = body.ty(id);
        if ty.dtype == DType::Bool {
            return Err(format!("accumulator {at} is {ty}: numbers are accumulated"));
        }
        match *how {
            Accumulate::Sum | Accumulate::Max => {}
            Accumulate::Rescaled { by } => {
                let factor = (by as usize).checked_sub(count).filter(|f| *f < factors.len());
                let none =
                    || format!("accumulator {at} is rescaled by output {by}: outputs from {count} on are factors");
                let factor = factor.ok_or_else(none)?;
                used[factor] = true;
                rescales(at, ty, body.ty(factors[factor]))?;
            }
            Accumulate::Continue => continues(body, tiled, at, id)?,
        }
    }
    match used.iter().position(|used| !used) {
        Some(unused) => Err(format!("output {} of the body is accumulated nowhere", count + unused)),
        None => Ok(values.iter().map(|&id| body.ty(id).clone()).collect()),
    }
}

/// Whether a factor meets what it rescales.
fn rescales(at: usize, ty: &Type, factor: &Type) -> Result<(), String> {
    let meets = |(n, f): (&Dim, &Dim)| f == n || *f == Dim::Const(1);
    let fits = factor.shape.len() <= ty.shape.len() && ty.shape.iter().rev().zip(factor.shape.iter().rev()).all(meets);
    if fits && is_float(ty.dtype) && is_float(factor.dtype) {
        return Ok(());
    }
    Err(format!("accumulator {at} is {ty} and rescaled by {factor}: floats that broadcast to it are wanted"))
}

/// Whether a value's op can go on from tile to tile.
fn continues(body: &Graph, tiled: &Tiled, at: usize, id: ValueId) -> Result<(), String> {
    let name = &body.value(id).name;
    let wrong = |why: String| Err(format!("accumulator {at}, `{name}`, cannot be continued: {why}"));
    let ValueSource::Node { node, .. } = body.value(id).source else { return wrong("it is a tile".into()) };
    let read = body.nodes.iter().any(|n| n.ins.contains(&id)) || body.outputs.iter().filter(|o| **o == id).count() > 1;
    if read {
        return wrong("the body reads it as well, or gives it twice".into());
    }
    let node = &body.nodes[node as usize];
    match &node.kind {
        NodeKind::Op(Op::Contract(_)) => Ok(()),
        NodeKind::Op(Op::Reduce(reduce)) => {
            let Some(&x) = node.ins.first() else { return wrong("its reduction reads nothing".into()) };
            let along = reduce.axes.0.iter().filter_map(|&a| body.ty(x).shape.get(a as usize));
            let count: usize = along.map(|d| d.get(&Dims::default())).product();
            if tiled.loops > 1 && !count.is_multiple_of(CONTINUED) {
                return wrong(format!("{count} elements a tile, a multiple of {CONTINUED} is wanted"));
            }
            Ok(())
        }
        _ => wrong(format!("`{}` makes it, a contraction or a reduction is wanted", node.name())),
    }
}

/// The body's inputs are the tiles and the accumulators that it reads.
fn running(body: &Graph, tiled: &Tiled, tiles: &[Type], accumulated: &[Type]) -> Result<(), String> {
    let mut wanted = tiles.to_vec();
    for &r in &tiled.running {
        match tiled.accumulators.get(r as usize) {
            None => return Err(format!("its body reads accumulator {r} of {}", accumulated.len())),
            Some(Accumulate::Continue) => {
                return Err(format!("its body reads accumulator {r}, which is whole when the loop has ended"));
            }
            Some(_) => wanted.push(accumulated[r as usize].clone()),
        }
    }
    check_inputs("body", body, &wanted)
}

/// The block's inputs are the accumulators and the tiles that it reads.
fn block_inputs(tiled: &Tiled, tiles: &[Type], mut wanted: Vec<Type>) -> Result<(), String> {
    for &r in &tiled.reads {
        match (tiled.ins.get(r as usize), tiles.get(r as usize)) {
            (Some(cut), Some(ty)) if cut.by_loop.is_none() || tiled.loops == 1 => wanted.push(ty.clone()),
            (Some(_), Some(_)) => return Err(format!("its block reads input {r}, which each iteration cuts anew")),
            _ => return Err(format!("its block reads input {r} of {}", tiles.len())),
        }
    }
    check_inputs("block", &tiled.block, &wanted)
}

fn check_inputs(name: &str, graph: &Graph, wanted: &[Type]) -> Result<(), String> {
    let given = || graph.inputs.iter().map(|&i| graph.ty(i));
    if given().eq(wanted) {
        return Ok(());
    }
    let list = |types: Vec<String>| types.join(", ");
    let (given, wanted) =
        (list(given().map(Type::to_string).collect()), list(wanted.iter().map(Type::to_string).collect()));
    Err(format!("the inputs of its {name} are {given}; {wanted} are wanted"))
}

/// The node's outputs, of which each element is written by one block.
fn outputs(tiled: &Tiled) -> Result<Vec<Type>, String> {
    let made = &tiled.block.outputs;
    if made.len() != tiled.outs.len() || made.is_empty() {
        return Err(format!("{} outputs are laid out, its block makes {}", tiled.outs.len(), made.len()));
    }
    let all = made.iter().zip(&tiled.outs).enumerate();
    all.map(|(at, (&id, out))| output(tiled, at, tiled.block.ty(id), out)).collect()
}

fn output(tiled: &Tiled, at: usize, tile: &Type, out: &TileOut) -> Result<Type, String> {
    distinct(&out.grid, &format!("output {at}"))?;
    let mut shape = tile.shape.clone();
    for (axis, (dim, &n)) in out.grid.iter().zip(&tiled.grid).enumerate() {
        let Some(dim) = *dim else {
            if n == 1 {
                continue;
            }
            return Err(format!("output {at}: the {n} blocks of grid axis {axis} write the same elements"));
        };
        let none = || format!("output {at}: tiles of {tile} laid {n} times along dimension {dim} are no size");
        let size = shape.get_mut(dim as usize).ok_or_else(none)?;
        *size = match *size {
            Dim::Const(s) => Dim::Const(s.checked_mul(n).ok_or_else(none)?),
            Dim::Sym(_) => return Err(none()),
        };
    }
    let ty = Type::new(tile.dtype, shape);
    ty.check().map_err(|why| format!("output {at}: {why}"))?;
    Ok(ty)
}
