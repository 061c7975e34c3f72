//! The steps of a block: each op or chain of the loop's body and of what follows it, on tiles that have their places.

use super::THREADS;
use super::memory::{ALWAYS, BlockMemory};
use super::operand::{TileOperand, count, sizes};
use super::step::{BlockStep, TileWork};
use crate::elements::{Elements, computed_as, elements_per_word};
use std::collections::HashMap;
use yirage_hal::HalError;
use yirage_ir::expr::{Scalar, is_float};
use yirage_ir::op::{Op, Reduce};
use yirage_ir::region::{Accumulate, Core, FusedChain, Tiled, in_place};
use yirage_ir::{DType, Format, Graph, Node, NodeKind, Strided, Type, ValueId, ValueSource};
use yirage_kir::{KernelMemory, ScalarType};

/// Results of a reduction that are made at once, where there is room for their partial results.
const AT_ONCE: [u32; 3] = [16, 8, 4];

/// Where the values of a graph lie.
pub(super) type BlockValues = HashMap<ValueId, TileOperand>;

/// Makes the steps.
pub(super) struct StepsBuilder<'a> {
    pub(super) body: &'a Graph,
    pub(super) tiled: &'a Tiled,
    /// The node's inputs, and where their elements lie.
    pub(super) ins: Vec<(Elements, Strided)>,
    /// A block's tiles of the node's outputs.
    pub(super) outs: Vec<TileOperand>,
}

/// The steps, and the memory that they take.
pub(super) struct BlockSteps<'b> {
    pub(super) before: Vec<BlockStep>,
    pub(super) body: Vec<BlockStep>,
    pub(super) after: Vec<BlockStep>,
    pub(super) memory: BlockMemory,
    /// Asks for the workspace.
    workspace: &'b mut dyn FnMut() -> KernelMemory,
}

/// An accumulator.
struct HeldAccumulator {
    /// As it is held: floats as f32.
    held: TileOperand,
    /// As it is read.
    read: TileOperand,
    /// The partial results of a reduction that goes on.
    parts: Option<TileOperand>,
}

impl BlockSteps<'_> {
    fn take(&mut self, ty: &Type, last: usize) -> Result<TileOperand, HalError> {
        self.memory.take(ty, last, &mut *self.workspace)
    }
}

impl StepsBuilder<'_> {
    /// The steps, where the tiles of `shared` inputs are copied to what the threads share.
    pub(super) fn steps<'b>(
        &self,
        memory: BlockMemory,
        shared: &[usize],
        workspace: &'b mut dyn FnMut() -> KernelMemory,
    ) -> Result<BlockSteps<'b>, HalError> {
        let (before, body, after) = (Vec::new(), Vec::new(), Vec::new());
        let mut to = BlockSteps { before, body, after, memory, workspace };
        let tiles = self.copied(shared, &mut to)?;
        let accumulators = self.accumulators(&mut to)?;
        self.looped(&tiles, &accumulators, &mut to)?;
        self.following(&tiles, &accumulators, &mut to)?;
        Ok(to)
    }

    /// The tiles of the node's inputs, some of them copied.
    fn copied(&self, shared: &[usize], to: &mut BlockSteps<'_>) -> Result<Vec<TileOperand>, HalError> {
        let mut tiles = Vec::with_capacity(self.ins.len());
        for (at, (elements, whole)) in self.ins.iter().enumerate() {
            let (cut, ty) = (&self.tiled.ins[at], self.body.ty(self.body.inputs[at]));
            let lies = TileOperand::of_value(*elements, whole, ty, cut, self.tiled.loops)?;
            tiles.push(if shared.contains(&at) { self.copy(at, lies, to)? } else { lies });
        }
        Ok(tiles)
    }

    /// A copy of an input's tile in the block's own memory: made once where no iteration changes it.
    fn copy(&self, at: usize, tile: TileOperand, to: &mut BlockSteps<'_>) -> Result<TileOperand, HalError> {
        let copy = to.take(&tile.ty.dense(), ALWAYS)?;
        let step = BlockStep::new(TileWork::Copy, vec![tile], copy.clone())?;
        let is_new = self.tiled.loops > 1 && self.tiled.ins[at].by_loop.is_some();
        if is_new {
            to.body.push(step)
        } else {
            to.before.push(step)
        }
        Ok(copy)
    }

    fn accumulators(&self, to: &mut BlockSteps<'_>) -> Result<Vec<HeldAccumulator>, HalError> {
        let mut made = Vec::new();
        for (at, &id) in self.body.outputs.iter().take(self.tiled.accumulators.len()).enumerate() {
            let ty = self.body.ty(id);
            let wide = if is_float(ty.dtype) { Format::F32.into() } else { ty.dtype };
            let held = to.take(&Type { dtype: wide, ..ty.clone() }, ALWAYS)?;
            let read = held.read_as(ty);
            let reduces = self.tiled.accumulators[at] == Accumulate::Continue && reduction(self.body, id).is_some();
            let parts = if reduces { Some(to.take(&parts_of(wide, count(ty))?, ALWAYS)?) } else { None };
            made.push(HeldAccumulator { held, read, parts });
        }
        Ok(made)
    }

    /// The steps of an iteration.
    fn looped(
        &self,
        tiles: &[TileOperand],
        accumulators: &[HeldAccumulator],
        to: &mut BlockSteps<'_>,
    ) -> Result<(), HalError> {
        let mut values: BlockValues = self.body.inputs.iter().copied().zip(tiles.iter().cloned()).collect();
        self.make_readable(self.body, &(0..tiles.len()).map(Some).collect::<Vec<_>>(), &mut values, to)?;
        for (&r, &id) in self.tiled.running.iter().zip(&self.body.inputs[tiles.len()..]) {
            let accumulator = &accumulators[r as usize];
            let none = nothing(self.tiled.accumulators[r as usize], accumulator.held.ty.dtype);
            to.before.push(BlockStep::new(TileWork::Fill(none), Vec::new(), accumulator.held.clone())?);
            values.insert(id, accumulator.read.clone());
        }
        let held = to.memory.held();
        let made = self.nodes(self.body, &mut values, accumulators, to)?;
        to.body.extend(made);
        // What the body gives as it stood: the first accumulator that changes must not change the next.
        for id in &self.body.inputs[tiles.len()..] {
            if let Some(running) = values.get(id).filter(|_| self.body.outputs.contains(id)).cloned() {
                let copy = to.take(&running.ty, ALWAYS)?;
                to.body.push(BlockStep::new(TileWork::Copy, vec![running], copy.clone())?);
                values.insert(*id, copy);
            }
        }
        for (at, accumulator) in accumulators.iter().enumerate() {
            to.body.extend(self.accumulated(at, accumulator, &values)?);
        }
        to.memory.give_back(held);
        for (at, accumulator) in accumulators.iter().enumerate() {
            if let (Some(parts), Some((op, of))) = (&accumulator.parts, reduction(self.body, self.body.outputs[at])) {
                let along: u32 = op.axes.0.iter().map(|&axis| sizes(&of.shape)[axis as usize]).product();
                let length = along.checked_mul(self.tiled.loops);
                let length = length.ok_or_else(|| HalError::Load("a mean of too many elements".into()))?;
                let work = TileWork::Joined(op.kind, length);
                to.after.push(BlockStep::new(work, vec![parts.clone()], accumulator.held.clone())?);
            }
        }
        Ok(())
    }

    /// The steps after the loop.
    fn following(
        &self,
        tiles: &[TileOperand],
        accumulators: &[HeldAccumulator],
        to: &mut BlockSteps<'_>,
    ) -> Result<(), HalError> {
        let block = &self.tiled.block;
        let of = accumulators.iter().map(|_| None).chain(self.tiled.reads.iter().map(|&input| Some(input as usize)));
        let of: Vec<Option<usize>> = of.collect();
        let mut values = BlockValues::new();
        for (at, &id) in block.inputs.iter().enumerate() {
            let tile = of.get(at).copied().flatten().map(|input| &tiles[input]);
            values.insert(id, tile.unwrap_or_else(|| &accumulators[at].read).clone());
        }
        let first_copies = to.before.len();
        self.make_readable(block, &of, &mut values, to)?;
        // Copies for what follows the loop are made behind it.
        let copies = to.before.split_off(first_copies);
        to.after.extend(copies);
        let direct = self.direct_outputs(block);
        for &(number, id) in &direct {
            values.insert(id, self.outs[number].clone());
        }
        let made = self.nodes(block, &mut values, &[], to)?;
        to.after.extend(made);
        for (number, id) in block.outputs.iter().enumerate() {
            if direct.contains(&(number, *id)) {
                continue;
            }
            let made = values.get(id).ok_or_else(|| unmade(number))?.clone();
            to.after.push(BlockStep::new(TileWork::Copy, vec![made], self.outs[number].clone())?);
        }
        Ok(())
    }

    /// The outputs that a node of the block's graph makes and no other reads: they are made where they belong.
    fn direct_outputs(&self, block: &Graph) -> Vec<(usize, ValueId)> {
        let direct = |(_, id): &(usize, ValueId)| {
            let is_read = block.nodes.iter().any(|node| node.ins.contains(id));
            let again = block.outputs.iter().filter(|o| *o == id).count() > 1;
            matches!(block.value(*id).source, ValueSource::Node { .. }) && !is_read && !again
        };
        block.outputs.iter().copied().enumerate().filter(direct).collect()
    }

    /// Copies the tiles that a chain's views cannot see where they lie.
    fn make_readable(
        &self,
        graph: &Graph,
        of: &[Option<usize>],
        values: &mut BlockValues,
        to: &mut BlockSteps<'_>,
    ) -> Result<(), HalError> {
        for node in &graph.nodes {
            if is_moved(node) || chains(graph, node, values).is_ok() {
                continue;
            }
            for &id in &node.ins {
                let input = graph.inputs.iter().position(|i| *i == id).and_then(|at| of.get(at).copied().flatten());
                let strided = values.get(&id).filter(|tile| tile.ty.strides.is_some()).cloned();
                if let (Some(input), Some(tile)) = (input, strided) {
                    let copy = self.copy(input, tile, to)?;
                    values.insert(id, copy);
                }
            }
        }
        Ok(())
    }

    /// Steps of the nodes of a graph.
    fn nodes(
        &self,
        graph: &Graph,
        values: &mut BlockValues,
        accumulators: &[HeldAccumulator],
        to: &mut BlockSteps<'_>,
    ) -> Result<Vec<BlockStep>, HalError> {
        let mut steps = Vec::with_capacity(graph.nodes.len());
        for (n, node) in graph.nodes.iter().enumerate() {
            to.memory.begin(n);
            let [id] = node.outs[..] else {
                return Err(HalError::Load(format!("`{}` of several outputs in a tile", node.name())));
            };
            let output = graph.outputs.iter().position(|o| *o == id);
            let goes_on = |at: &usize| self.tiled.accumulators.get(*at) == Some(&Accumulate::Continue);
            let accumulator = output.filter(goes_on).and_then(|at| accumulators.get(at));
            if let Some(accumulator) = accumulator {
                steps.push(continued(graph, node, values, accumulator)?);
                continue;
            }
            let last = match output {
                Some(_) => graph.nodes.len(),
                None => graph.nodes.iter().rposition(|node| node.ins.contains(&id)).unwrap_or(n),
            };
            let out = match values.get(&id) {
                Some(out) => out.clone(),
                None => {
                    let free = in_place(graph, n).and_then(|from| values.get(&from));
                    match free.and_then(|from| to.memory.pass_on(from, last)) {
                        Some(out) => out,
                        None => to.take(graph.ty(id), last)?,
                    }
                }
            };
            steps.push(self.step(graph, n, values, out.clone(), to)?);
            values.insert(id, out);
        }
        Ok(steps)
    }

    /// A node as a step.
    fn step(
        &self,
        graph: &Graph,
        n: usize,
        values: &BlockValues,
        out: TileOperand,
        to: &mut BlockSteps<'_>,
    ) -> Result<BlockStep, HalError> {
        let node = &graph.nodes[n];
        let mut ins = operands(node, values)?;
        let work = match &node.kind {
            NodeKind::Op(Op::Concat(concat)) => TileWork::Concat(concat.axis as usize),
            NodeKind::Op(Op::Fill(fill)) => TileWork::Fill(fill.value),
            NodeKind::Op(Op::Iota(iota)) => TileWork::Iota(iota.axis as usize),
            _ => {
                let chain = Box::new(chain(graph, node, values)?);
                match &chain.core {
                    Core::Reduce(_, of) => {
                        let at_once = elements_at_once(count(&out.ty), out.elements.dtype);
                        let (parts, at_once) = partial_results(of.dtype, at_once, n, to)?;
                        ins.push(parts);
                        TileWork::Reduction { chain, at_once }
                    }
                    _ => TileWork::Chain(chain),
                }
            }
        };
        BlockStep::new(work, ins, out)
    }

    /// What takes the value of an iteration into an accumulator; nothing where its op does.
    fn accumulated(
        &self,
        at: usize,
        accumulator: &HeldAccumulator,
        values: &BlockValues,
    ) -> Result<Option<BlockStep>, HalError> {
        let how = self.tiled.accumulators[at];
        let made = |output: usize| {
            let value = self.body.outputs.get(output).and_then(|id| values.get(id));
            value.cloned().ok_or_else(|| unmade(output))
        };
        let ins = match how {
            Accumulate::Continue => return Ok(None),
            Accumulate::Rescaled { by } => vec![made(at)?, made(by as usize)?],
            Accumulate::Sum | Accumulate::Max => vec![made(at)?],
        };
        BlockStep::new(TileWork::Accumulate(how), ins, accumulator.held.clone()).map(Some)
    }
}

fn unmade(output: usize) -> HalError {
    HalError::Load(format!("nothing makes output {output} of a tile's graph"))
}

/// A step whose op goes on from iteration to iteration.
fn continued(
    graph: &Graph,
    node: &Node,
    values: &BlockValues,
    accumulator: &HeldAccumulator,
) -> Result<BlockStep, HalError> {
    let (chain, ins) = (Box::new(chain(graph, node, values)?), operands(node, values)?);
    let (work, out) = match (&chain.core, &accumulator.parts) {
        (Core::Reduce(..), Some(parts)) => (TileWork::Parts(chain), parts),
        (Core::Contract(_), None) => (TileWork::Sums(chain), &accumulator.held),
        _ => return Err(HalError::Load(format!("`{}` cannot go on from tile to tile", node.name()))),
    };
    BlockStep::new(work, ins, out.clone())
}

fn operands(node: &Node, values: &BlockValues) -> Result<Vec<TileOperand>, HalError> {
    let missing = || HalError::Load(format!("`{}` of a tile reads what is not made", node.name()));
    node.ins.iter().map(|id| values.get(id).cloned().ok_or_else(missing)).collect()
}

/// Results of a reduction that are made at once, at most: whole words.
fn elements_at_once(elements: u32, dtype: DType) -> u32 {
    AT_ONCE[0].min(elements.max(1).next_multiple_of(elements_per_word(dtype)))
}

/// Memory for the partial results of a reduction, and of how many elements: of fewer where there is little room.
fn partial_results(
    dtype: DType,
    at_once: u32,
    step: usize,
    to: &mut BlockSteps<'_>,
) -> Result<(TileOperand, u32), HalError> {
    for fewer in std::iter::once(at_once).chain(AT_ONCE.into_iter().filter(|&fewer| fewer < at_once)) {
        if let Some(parts) = to.memory.take_if_shared(&parts_of(dtype, fewer)?, step)? {
            return Ok((parts, fewer));
        }
    }
    Ok((to.take(&parts_of(dtype, at_once)?, step)?, at_once))
}

/// Partial results of so many elements.
fn parts_of(dtype: DType, elements: u32) -> Result<Type, HalError> {
    let wide = match computed_as(dtype) {
        ScalarType::I32 => DType::I32,
        ScalarType::U32 => DType::U32,
        ScalarType::F32 | ScalarType::Bool => Format::F32.into(),
    };
    let parts = elements.checked_mul(THREADS);
    let parts = parts.ok_or_else(|| HalError::Load(format!("{elements} elements have too many partial results")))?;
    Ok(Type::new(wide, [parts]))
}

/// The reduction that makes a value.
fn reduction(graph: &Graph, id: ValueId) -> Option<(Reduce, yirage_ir::region::ElementExpr)> {
    let ValueSource::Node { node, .. } = graph.value(id).source else { return None };
    let chains = FusedChain::of_node(graph, graph.nodes.get(node as usize)?).ok()?;
    match chains.into_iter().next()?.core {
        Core::Reduce(op, of) => Some((op, of)),
        _ => None,
    }
}

/// An accumulator before the first iteration.
fn nothing(how: Accumulate, dtype: DType) -> Scalar {
    match (how, dtype) {
        (Accumulate::Max, DType::I32) => Scalar::from(i32::MIN),
        (_, DType::I32) => Scalar::from(0i32),
        (_, DType::U32) => Scalar::from(0u32),
        (Accumulate::Max, _) => Scalar::from(f32::NEG_INFINITY),
        _ => Scalar::from(0f32),
    }
}

/// Whether a node moves elements, or makes them of nothing: what is no chain.
fn is_moved(node: &Node) -> bool {
    matches!(&node.kind, NodeKind::Op(Op::Concat(_) | Op::Fill(_) | Op::Iota(_)))
}

/// The normal form of a node of a tile, whose inputs lie where `values` say.
fn chain(graph: &Graph, node: &Node, values: &BlockValues) -> Result<FusedChain, HalError> {
    let none = || HalError::Load(format!("`{}` of a tile is no chain", node.name()));
    let chains = chains(graph, node, values).map_err(HalError::Load)?;
    chains.into_iter().next().ok_or_else(none)
}

/// The normal form of each output of a node.
pub(super) fn chains(graph: &Graph, node: &Node, values: &BlockValues) -> Result<Vec<FusedChain>, String> {
    FusedChain::of_node_where(graph, node, |id| values.get(&id).map(|operand| &operand.ty))
}
