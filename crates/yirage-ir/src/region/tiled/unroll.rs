//! A tiled region without tiles: slices of the inputs, the ops of each iteration of each block, and the joined results.
//!
//! What it computes is what the region means, addition by addition.

use super::flat::flat;
use super::{Accumulate, TileIn, Tiled};
use crate::dim::{Dim, Dims};
use crate::dtype::DType;
use crate::expr::{Expr, ExprError, Func, Scalar, is_float};
use crate::graph::{BuildError, Graph, GraphBuilder, NodeKind, ValueId, ValueSource};
use crate::op::{Concat, Cut, Fill, Map, Op, View, ViewForm};
use crate::region::Region;
use crate::types::Type;
use thiserror::Error;

/// Most nodes of a graph without tiles.
pub const MAX_UNROLLED: u64 = 1 << 16;
/// Most values that are joined at once.
const JOINED: usize = 64;

/// Why a region has no graph without tiles.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum NotUnrolled {
    /// It is of another kind.
    #[error("a region `{0}` has no tiles")]
    NotTiled(&'static str),
    /// It would be too large.
    #[error("{blocks} blocks of {loops} iterations of {ops} ops are more than {MAX_UNROLLED} nodes")]
    TooLarge {
        /// Blocks of the grid.
        blocks: u64,
        /// Iterations of a block.
        loops: u32,
        /// Ops of an iteration and of what follows the loop.
        ops: u64,
    },
    /// The region is not sound.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The region is not sound.
    #[error("the region is not sound: {0}")]
    Region(String),
}

impl From<ExprError> for NotUnrolled {
    fn from(why: ExprError) -> NotUnrolled {
        NotUnrolled::Region(why.to_string())
    }
}

/// The graph of general ops that a tiled region means, whose inputs, step inputs of these types, are those of the node in order.
///
/// # Errors
/// A region of another kind, one that is not sound, and one of which the graph would have too many nodes.
pub fn unrolled(region: &Region, ins: &[Type]) -> Result<Graph, NotUnrolled> {
    let Some(tiled) = &region.tiled else { return Err(NotUnrolled::NotTiled(region.kind.name())) };
    region.infer(ins).map_err(|why| NotUnrolled::Region(why.to_string()))?;
    let (body, block) = (&*flat(&region.graph), &*flat(&tiled.block));
    let accumulated = 4 * tiled.accumulators.len() as u64;
    let ops = (body.nodes.len() + block.nodes.len() + ins.len()) as u64 + accumulated;
    let blocks = tiled.blocks().unwrap_or(u64::MAX);
    let nodes = blocks.checked_mul(u64::from(tiled.loops)).and_then(|n| n.checked_mul(ops));
    if nodes.is_none_or(|n| n > MAX_UNROLLED) {
        return Err(NotUnrolled::TooLarge { blocks, loops: tiled.loops, ops });
    }
    let mut builder = GraphBuilder::new("unrolled");
    let given = ins.iter().enumerate().map(|(i, ty)| builder.step_input(&format!("x{i}"), ty.clone()));
    let given = given.collect::<Result<Vec<_>, _>>()?;
    let mut making = TileUnroller { builder, node_count: 0, tiled, body, block, inputs: given };
    let mut tiles: Vec<Vec<ValueId>> = Vec::new();
    for at in 0..blocks as usize {
        tiles.push(making.one_block(tiled.block_at(at))?);
    }
    for (output, out) in tiled.outs.iter().enumerate() {
        let all = tiles.iter().map(|made| made[output]).collect();
        let mut whole = making.laid(all, &out.grid)?;
        if making.inputs.contains(&whole) {
            // A graph gives what it makes.
            whole = making.map(Expr::input(0), &[whole])?;
        }
        making.builder.output(whole);
    }
    Ok(making.builder.finish())
}

struct TileUnroller<'a> {
    builder: GraphBuilder,
    node_count: usize,
    tiled: &'a Tiled,
    body: &'a Graph,
    block: &'a Graph,
    inputs: Vec<ValueId>,
}

/// What a block has of an accumulator: its value as it is held, or what its op was given so far.
enum UnrolledAccumulator {
    None,
    Value(ValueId),
    Operands(Vec<Vec<ValueId>>),
}

impl TileUnroller<'_> {
    fn op(&mut self, op: impl Into<Op>, ins: &[ValueId]) -> Result<ValueId, NotUnrolled> {
        self.node_count += 1;
        Ok(self.builder.op(&format!("t{}", self.node_count), op, ins)?)
    }

    fn map(&mut self, expr: Expr, ins: &[ValueId]) -> Result<ValueId, NotUnrolled> {
        self.op(Map { expr }, ins)
    }

    /// The tile of an input.
    fn tile(&mut self, at: usize, block: [usize; 3], iteration: usize) -> Result<ValueId, NotUnrolled> {
        let (cut, x): (&TileIn, _) = (&self.tiled.ins[at], self.inputs[at]);
        let ty = self.body.ty(self.body.inputs[at]);
        if *ty == self.builder.ty(x).dense() {
            return Ok(x);
        }
        let sizes: Vec<usize> = ty.shape.iter().map(|d| d.get(&Dims::default())).collect();
        let origin = cut.origin(&sizes, self.tiled.loops, block, iteration);
        let cut = |(&start, &size): (&usize, &Dim)| Cut { start: start as u32, step: 1, size };
        let cuts = origin.iter().zip(&ty.shape).map(cut).collect();
        self.op(View { form: ViewForm::Slice(cuts) }, &[x])
    }

    /// A value joined of parts along a dimension.
    fn joined(&mut self, mut parts: Vec<ValueId>, axis: u32) -> Result<ValueId, NotUnrolled> {
        while parts.len() > 1 {
            let mut next = Vec::new();
            for some in parts.chunks(JOINED) {
                next.push(if let [one] = some { *one } else { self.op(Concat { axis }, some)? });
            }
            parts = next;
        }
        parts.first().copied().ok_or_else(|| NotUnrolled::Region("nothing to join".into()))
    }

    /// An output of the tiles of all blocks, those along the first axis of the grid next to each other.
    fn laid(&mut self, mut tiles: Vec<ValueId>, grid: &[Option<u32>; 3]) -> Result<ValueId, NotUnrolled> {
        for (dim, &n) in grid.iter().zip(&self.tiled.grid).filter(|(_, n)| **n > 1) {
            let axis = dim.ok_or_else(|| NotUnrolled::Region("blocks write the same elements".into()))?;
            let rows: Vec<Vec<ValueId>> = tiles.chunks(n as usize).map(<[ValueId]>::to_vec).collect();
            tiles = rows.into_iter().map(|row| self.joined(row, axis)).collect::<Result<_, _>>()?;
        }
        self.joined(tiles, 0)
    }

    fn one_block(&mut self, block: [usize; 3]) -> Result<Vec<ValueId>, NotUnrolled> {
        let tiled = self.tiled;
        let mut held: Vec<UnrolledAccumulator> = tiled.accumulators.iter().map(|_| UnrolledAccumulator::None).collect();
        for iteration in 0..tiled.loops as usize {
            let mut ins = Vec::new();
            for at in 0..self.inputs.len() {
                ins.push(self.tile(at, block, iteration)?);
            }
            for &r in &tiled.running {
                let read = self.read(r as usize, &held[r as usize])?;
                ins.push(read);
            }
            let values = self.copy(self.body, &ins, true)?;
            self.accumulate(&values, &mut held)?;
        }
        let mut ins = Vec::new();
        for (at, held) in held.iter().enumerate() {
            let read = self.read(at, held)?;
            ins.push(read);
        }
        for &at in &tiled.reads {
            ins.push(self.tile(at as usize, block, 0)?);
        }
        let values = self.copy(self.block, &ins, false)?;
        self.block.outputs.iter().map(|o| value_of(&values, *o)).collect()
    }

    /// The values of a graph on these inputs; those that are continued are left out of a body.
    fn copy(&mut self, graph: &Graph, ins: &[ValueId], body: bool) -> Result<Vec<Option<ValueId>>, NotUnrolled> {
        let mut values = vec![None; graph.values.len()];
        graph.inputs.iter().zip(ins).for_each(|(i, &id)| values[i.index()] = Some(id));
        for (n, node) in graph.nodes.iter().enumerate() {
            let NodeKind::Op(op) = &node.kind else { return Err(NotUnrolled::Region("a region inside".into())) };
            if body && (0..self.tiled.accumulators.len()).any(|a| self.continued(a).is_some_and(|(m, _)| m == n)) {
                continue;
            }
            let ins = node.ins.iter().map(|&i| value_of(&values, i)).collect::<Result<Vec<_>, _>>()?;
            let [out] = node.outs[..] else { return Err(NotUnrolled::Region("an op of several outputs".into())) };
            values[out.index()] = Some(self.op(op.clone(), &ins)?);
        }
        Ok(values)
    }

    /// The node of a continued accumulator, by number.
    fn continued(&self, at: usize) -> Option<(usize, &Op)> {
        let id = self.body.outputs[at];
        let (Accumulate::Continue, ValueSource::Node { node, .. }) =
            (self.tiled.accumulators[at], self.body.value(id).source)
        else {
            return None;
        };
        match &self.body.nodes[node as usize].kind {
            NodeKind::Op(op) => Some((node as usize, op)),
            NodeKind::Region(_) => None,
        }
    }

    fn accumulate(&mut self, values: &[Option<ValueId>], held: &mut [UnrolledAccumulator]) -> Result<(), NotUnrolled> {
        for (at, held) in held.iter_mut().enumerate() {
            if let Some((node, _)) = self.continued(at) {
                let ins = &self.body.nodes[node].ins;
                if matches!(held, UnrolledAccumulator::None) {
                    *held = UnrolledAccumulator::Operands(vec![Vec::new(); ins.len()]);
                }
                let UnrolledAccumulator::Operands(all) = held else { continue };
                for (all, &i) in all.iter_mut().zip(ins) {
                    all.push(value_of(values, i)?);
                }
                continue;
            }
            let value = value_of(values, self.body.outputs[at])?;
            let value = self.wide(value)?;
            *held = UnrolledAccumulator::Value(match (&*held, self.tiled.accumulators[at]) {
                (UnrolledAccumulator::Value(before), Accumulate::Max) => {
                    self.map(Expr::binary(Func::Max), &[*before, value])?
                }
                (UnrolledAccumulator::Value(before), Accumulate::Rescaled { by }) => {
                    let factor = value_of(values, self.body.outputs[by as usize])?;
                    let factor = self.wide(factor)?;
                    self.map("add(mul(x0, x1), x2)".parse()?, &[*before, factor, value])?
                }
                (UnrolledAccumulator::Value(before), _) => self.map(Expr::binary(Func::Add), &[*before, value])?,
                _ => value,
            });
        }
        Ok(())
    }

    /// Floats as f32.
    fn wide(&mut self, x: ValueId) -> Result<ValueId, NotUnrolled> {
        let dtype = self.builder.ty(x).dtype;
        if is_float(dtype) && dtype != DType::F32 { self.map(Expr::input(0).cast(DType::F32), &[x]) } else { Ok(x) }
    }

    /// An accumulator as it is read.
    fn read(&mut self, at: usize, held: &UnrolledAccumulator) -> Result<ValueId, NotUnrolled> {
        let ty = self.body.ty(self.body.outputs[at]).clone();
        match held {
            UnrolledAccumulator::Value(x) if *self.builder.ty(*x) == ty => Ok(*x),
            UnrolledAccumulator::Value(x) => self.map(Expr::input(0).cast(ty.dtype), &[*x]),
            UnrolledAccumulator::None => self.none(at, &ty),
            UnrolledAccumulator::Operands(operands) => {
                let Some((_, op)) = self.continued(at) else {
                    return Err(NotUnrolled::Region("operands of no op".into()));
                };
                let op = op.clone();
                let mut ins = Vec::new();
                for (operand, parts) in operands.iter().enumerate() {
                    let rank = parts.first().map_or(0, |&p| self.builder.ty(p).shape.len());
                    let whole = self.joined(parts.clone(), super::joined_along(&op, operand, rank))?;
                    ins.push(whole);
                }
                self.op(op, &ins)
            }
        }
    }

    /// Before the first iteration.
    fn none(&mut self, at: usize, ty: &Type) -> Result<ValueId, NotUnrolled> {
        let value = match (self.tiled.accumulators[at], ty.dtype) {
            (Accumulate::Max, DType::I32) => Scalar::from(i32::MIN),
            (_, DType::I32) => Scalar::from(0i32),
            (_, DType::U32) => Scalar::from(0u32),
            (Accumulate::Max, _) => Scalar::from(f32::NEG_INFINITY),
            _ => Scalar::from(0f32),
        };
        let shape = ty.shape.iter().map(|d| d.get(&Dims::default()) as u32).collect();
        let filled = self.op(Fill { value, shape: crate::attr::List(shape) }, &[])?;
        if *self.builder.ty(filled) == *ty { Ok(filled) } else { self.map(Expr::input(0).cast(ty.dtype), &[filled]) }
    }
}

fn value_of(values: &[Option<ValueId>], id: ValueId) -> Result<ValueId, NotUnrolled> {
    values[id.index()].ok_or_else(|| NotUnrolled::Region("a value that nothing makes".into()))
}
