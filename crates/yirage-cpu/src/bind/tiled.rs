//! A tiled region as steps on tiles: each with operands that lie where the block and the iteration say, or with the worker.
//!
//! What can be read where it lies is; a tile that a chain's views cannot reach through strides is copied first. What a
//! step computes is a matter of kernels.

use super::binder::Binder;
use super::group::{ALIGN, WorkerSlice};
use super::location::{Moves, OperandLocation, PlanOperand};
use super::viewed::Whole;
use std::collections::HashMap;
use yirage_hal::HalError;
use yirage_ir::attr::List;
use yirage_ir::expr::{Expr, Func, Scalar, is_float};
use yirage_ir::op::{Fill, Map, Op, Reduce};
use yirage_ir::region::{Accumulate, CONTINUED, Core, FusedChain, TileIn, TileOut, Tiled, in_place};
use yirage_ir::{DType, Dims, Graph, GraphBuilder, Node, NodeKind, Region, Strided, Type, ValueId, ValueSource};
use yirage_plan::MemoryStack;

/// The steps of a block.
pub(crate) struct TiledSteps {
    /// How blocks are numbered.
    pub(crate) tiled: Tiled,
    /// In each iteration, in order.
    pub(crate) body: Vec<TileStep>,
    /// After the loop, in order.
    pub(crate) block: Vec<TileStep>,
}

/// A step on tiles.
pub(crate) struct TileStep {
    pub(crate) when: IterationFilter,
    pub(crate) whole: Whole,
    pub(crate) carry: Carry,
}

/// In which iterations a step is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum IterationFilter {
    /// In all.
    Each,
    /// In the first.
    First,
    /// In all but the first.
    Later,
}

/// What a step goes on from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Carry {
    /// Nothing.
    Nothing,
    /// Its contraction goes on from its output, but in the first iteration.
    Sums,
    /// Its reduction goes on from partial results, its second output, but in the first iteration; after the last one they
    /// are joined into its first, being of so many elements each.
    Parts(usize),
}

/// A value of a tile's graph, and the type it is read as.
type TileOperands = HashMap<ValueId, PlanOperand>;

/// Memory of a worker, handed out.
struct WorkerAllocator<'a, 'b> {
    binder: &'a mut Binder<'b>,
    memory: MemoryStack,
}

fn too_large() -> HalError {
    HalError::Load("a block takes more bytes than there are".into())
}

/// Lives as long as the block does.
const ALWAYS: usize = usize::MAX;

impl Binder<'_> {
    /// The steps of node `n`, a tiled region.
    ///
    /// # Errors
    /// Another node, operands that no tile is read of, and a guarded device that has no memory left.
    pub(crate) fn tiled(&mut self, n: usize) -> Result<TiledSteps, HalError> {
        let node = self.node(n).clone();
        let NodeKind::Region(region) = &node.kind else { return Err(HalError::Load("no region".into())) };
        let Some(tiled) = &region.tiled else { return Err(HalError::Load("a region without tiles".into())) };
        let ins = node.ins.iter().map(|&i| self.value(i)).collect::<Result<Vec<_>, _>>()?;
        let outs = node.outs.iter().map(|&o| self.value(o)).collect::<Result<Vec<_>, _>>()?;
        let mut room = WorkerAllocator { binder: self, memory: MemoryStack::default() };
        let steps = TiledStepsBuilder { region, tiled, ins, outs }.bind(&mut room)?;
        let end = usize::try_from(room.memory.end()).map_err(|_| too_large())?;
        self.need_worker_bytes(end);
        Ok(steps)
    }
}

impl WorkerAllocator<'_, '_> {
    /// Memory for a dense value of this type up to a step.
    fn take(&mut self, name: &str, ty: &Type, last: usize) -> Result<PlanOperand, HalError> {
        let bytes = (ty.bytes(&Dims::default()) as u64).checked_next_multiple_of(ALIGN).ok_or_else(too_large)?;
        let range = self.memory.take(bytes, ALIGN, last).ok_or_else(too_large)?;
        let end = usize::try_from(range.end).map_err(|_| too_large())?;
        let bytes = range.start as usize..end;
        let spot = WorkerSlice::fixed(bytes, self.binder.shared.pool.count(), self.binder.shared.supply)?;
        let location = OperandLocation::Group(spot);
        Ok(PlanOperand { name: name.into(), ty: ty.clone(), location, inner: false })
    }
}

impl WorkerAllocator<'_, '_> {
    /// The same memory for another value of its type, up to a step.
    fn pass_on(&mut self, name: &str, from: &PlanOperand, last: usize) -> Option<PlanOperand> {
        let OperandLocation::Group(spot) = &from.location else { return None };
        let held = spot.bytes();
        self.memory.keep(&(held.start as u64..held.end as u64), last).then_some(())?;
        Some(PlanOperand { name: name.into(), ..from.clone() })
    }
}

struct TiledStepsBuilder<'a> {
    region: &'a Region,
    tiled: &'a Tiled,
    ins: Vec<PlanOperand>,
    outs: Vec<PlanOperand>,
}

/// An accumulator.
struct TileAccumulator {
    /// As it is held: floats as f32.
    stored: PlanOperand,
    /// As it is read.
    read: PlanOperand,
    /// The partial results of a reduction that is continued.
    parts: Option<PlanOperand>,
}

impl TiledStepsBuilder<'_> {
    fn bind(&self, room: &mut WorkerAllocator<'_, '_>) -> Result<TiledSteps, HalError> {
        let (body, block) = (&self.region.graph, &self.tiled.block);
        let accumulators = self.accumulators(room)?;
        let (mut first, mut looped) = (Vec::new(), Vec::new());
        let mut values = self.tiles(body, &(0..self.ins.len()).map(Some).collect::<Vec<_>>(), room, &mut looped)?;
        for (&r, &id) in self.tiled.running.iter().zip(&body.inputs[self.ins.len()..]) {
            let a = &accumulators[r as usize];
            first.push(none(self.tiled.accumulators[r as usize], &a.stored)?);
            looped.extend(rounded(a)?);
            values.insert(id, a.read.clone());
        }
        let permanent = room.memory.held();
        looped.splice(0..0, first);
        self.nodes(body, &mut values, room, &accumulators, true, &mut looped)?;
        self.copy_accumulators(body, &mut values, room, &mut looped)?;
        for (at, accumulator) in accumulators.iter().enumerate() {
            self.accumulate(at, accumulator, &values, &mut looped)?;
        }
        room.memory.give_back(permanent);
        let mut after = Vec::new();
        for a in &accumulators {
            after.extend(rounded(a)?);
        }
        let given: Vec<Option<usize>> =
            accumulators.iter().map(|_| None).chain(self.tiled.reads.iter().map(|&r| Some(r as usize))).collect();
        let mut values = self.tiles(block, &given, room, &mut after)?;
        for (a, &id) in accumulators.iter().zip(&block.inputs) {
            values.insert(id, a.read.clone());
        }
        self.outputs(block, &mut values);
        self.nodes(block, &mut values, room, &[], false, &mut after)?;
        self.copies(block, &values, &mut after)?;
        let tiled = self.tiled.clone();
        Ok(TiledSteps { tiled, body: looped, block: after })
    }

    fn accumulators(&self, room: &mut WorkerAllocator<'_, '_>) -> Result<Vec<TileAccumulator>, HalError> {
        let graph = &self.region.graph;
        let mut made = Vec::new();
        for (at, (&id, how)) in graph.outputs.iter().zip(&self.tiled.accumulators).enumerate() {
            let (ty, name) = (graph.ty(id).clone(), format!("accumulator {at}"));
            let wide = Type { dtype: if is_float(ty.dtype) { DType::F32 } else { ty.dtype }, ..ty.clone() };
            let held = room.take(&name, &wide, ALWAYS)?;
            let read = if wide == ty { held.clone() } else { room.take(&name, &ty, ALWAYS)? };
            let reduces =
                *how == Accumulate::Continue && core(graph, id).is_some_and(|core| matches!(core, Core::Reduce(..)));
            let parts = if reduces {
                let elems = ty.elems(&Dims::default()).saturating_mul(CONTINUED);
                let elems =
                    u32::try_from(elems).map_err(|_| HalError::Load(format!("{name} has too many partial results")))?;
                Some(room.take(&name, &Type::new(wide.dtype, [elems]), ALWAYS)?)
            } else {
                None
            };
            made.push(TileAccumulator { stored: held, read, parts });
        }
        Ok(made)
    }

    /// The inputs of a graph that are tiles, by the inputs of the node that they are of: where they lie, or copied.
    fn tiles(
        &self,
        graph: &Graph,
        of: &[Option<usize>],
        room: &mut WorkerAllocator<'_, '_>,
        steps: &mut Vec<TileStep>,
    ) -> Result<TileOperands, HalError> {
        let mut values = TileOperands::new();
        for (&id, of) in graph.inputs.iter().zip(of) {
            if let Some(of) = *of {
                values.insert(id, self.tile(of, graph.ty(id))?);
            }
        }
        // Where a chain cannot be read through a tile's strides, its tiles are copied.
        for node in &graph.nodes {
            if is_moved(node) || chains(graph, node, &values).is_ok() {
                continue;
            }
            for &id in &node.ins {
                let Some(tile) = values.get(&id).filter(|tile| tile.ty.strides.is_some()) else { continue };
                let copy = room.take(&tile.name, graph.ty(id), ALWAYS)?;
                let copied =
                    self.tiled.ins.get(graph.inputs.iter().position(|i| *i == id).and_then(|at| of[at]).unwrap_or(0));
                let when = if copied.is_some_and(|cut| cut.by_loop.is_none()) {
                    IterationFilter::First
                } else {
                    IterationFilter::Each
                };
                steps.push(TileStep { when, ..each(Expr::input(0), &[tile], &copy)? });
                values.insert(id, copy);
            }
        }
        Ok(values)
    }

    /// A tile of an input where it lies.
    fn tile(&self, at: usize, tile: &Type) -> Result<PlanOperand, HalError> {
        let (whole, cut) = (&self.ins[at], &self.tiled.ins[at]);
        tile_of(whole, tile, cut, self.tiled.loops)
    }

    /// The block's outputs where they lie in the node's, of those that are made there and nowhere read.
    fn outputs(&self, block: &Graph, values: &mut TileOperands) {
        for (at, &id) in block.outputs.iter().enumerate() {
            let read = block.nodes.iter().any(|n| n.ins.contains(&id));
            let again = block.outputs.iter().filter(|o| **o == id).count() > 1;
            let made = matches!(block.value(id).source, ValueSource::Node { .. });
            if let (true, false, false, Ok(tile)) = (made, read, again, self.out(at, block.ty(id))) {
                values.insert(id, tile);
            }
        }
    }

    fn out(&self, at: usize, tile: &Type) -> Result<PlanOperand, HalError> {
        let TileOut { grid } = self.tiled.outs[at];
        tile_of(&self.outs[at], tile, &TileIn { grid, by_loop: None }, 1)
    }

    /// Steps of the nodes of a graph.
    fn nodes(
        &self,
        graph: &Graph,
        values: &mut TileOperands,
        room: &mut WorkerAllocator<'_, '_>,
        accumulators: &[TileAccumulator],
        body: bool,
        steps: &mut Vec<TileStep>,
    ) -> Result<(), HalError> {
        for (n, node) in graph.nodes.iter().enumerate() {
            room.memory.begin(n);
            let [id] = node.outs[..] else {
                return Err(HalError::Load(format!("`{}` of several outputs", node.name())));
            };
            let mut continued = None;
            if body {
                let at = graph.outputs.iter().position(|o| *o == id);
                continued = at.filter(|&at| self.tiled.accumulators.get(at) == Some(&Accumulate::Continue));
            }
            if let Some(at) = continued {
                steps.push(self.continued(graph, node, values, &accumulators[at])?);
                continue;
            }
            let last = if graph.outputs.contains(&id) {
                graph.nodes.len()
            } else {
                graph.nodes.iter().rposition(|node| node.ins.contains(&id)).unwrap_or(n)
            };
            // What lies in the node's output already is written there, if it is written in order.
            let chains = chains(graph, node, values);
            let in_order = |out: &&PlanOperand| match chains.as_deref() {
                _ if is_moved(node) => true,
                Ok([chain]) => chain.out.is_dense() && laid(chain.clone(), out).is_ok(),
                _ => false,
            };
            let out = match values.get(&id).filter(in_order) {
                Some(out) => out.clone(),
                None => {
                    let name = &graph.value(id).name;
                    let free = in_place(graph, n).and_then(|from| values.get(&from));
                    match free.and_then(|from| room.pass_on(name, from, last)) {
                        Some(out) => out,
                        None => room.take(name, graph.ty(id), last)?,
                    }
                }
            };
            steps.push(step(node, values, chains, vec![out.clone()])?);
            values.insert(id, out);
        }
        Ok(())
    }

    /// A step whose op goes on from iteration to iteration.
    fn continued(
        &self,
        graph: &Graph,
        node: &Node,
        values: &TileOperands,
        a: &TileAccumulator,
    ) -> Result<TileStep, HalError> {
        let chains = chains(graph, node, values);
        let count = match chains.as_ref().map(|c| c.first().map(|c| &c.core)) {
            Ok(Some(Core::Reduce(reduce, x))) => Some(reduced(reduce, &x.shape)),
            _ => None,
        };
        let outs = std::iter::once(a.stored.clone()).chain(a.parts.clone()).collect();
        let carry = count.map_or(Carry::Sums, |count| Carry::Parts(count.saturating_mul(self.tiled.loops as usize)));
        Ok(TileStep { carry, ..step(node, values, chains, outs)? })
    }

    /// Copies of accumulators that the body gives as they stood: the first that changes must not change the next.
    fn copy_accumulators(
        &self,
        body: &Graph,
        values: &mut TileOperands,
        room: &mut WorkerAllocator<'_, '_>,
        steps: &mut Vec<TileStep>,
    ) -> Result<(), HalError> {
        for id in &body.inputs[self.ins.len()..] {
            if let Some(running) = values.get(id).filter(|_| body.outputs.contains(id)) {
                let copy = room.take(&running.name, &running.ty, ALWAYS)?;
                steps.push(each(Expr::input(0), &[running], &copy)?);
                values.insert(*id, copy);
            }
        }
        Ok(())
    }

    /// Takes what the body has made into an accumulator.
    fn accumulate(
        &self,
        at: usize,
        a: &TileAccumulator,
        values: &TileOperands,
        steps: &mut Vec<TileStep>,
    ) -> Result<(), HalError> {
        let graph = &self.region.graph;
        let find = |output: usize| {
            let id = graph.outputs.get(output);
            let found = id.and_then(|id| values.get(id));
            found.ok_or_else(|| HalError::Load(format!("nothing makes output {output} of a tile")))
        };
        let wide = |i: u32, of: &PlanOperand| {
            if is_float(of.ty.dtype) { Expr::input(i).cast(DType::F32) } else { Expr::input(i) }
        };
        let how = self.tiled.accumulators[at];
        if how == Accumulate::Continue {
            return Ok(());
        }
        let value = find(at)?;
        steps.push(TileStep { when: IterationFilter::First, ..each(wide(0, value), &[value], &a.stored)? });
        let (before, next) = (Expr::input(0), wide(1, value));
        let later = match how {
            Accumulate::Rescaled { by } => {
                let factor = find(by as usize)?;
                let scaled = Expr::call(Func::Mul, &[before, wide(2, factor)]);
                each(Expr::call(Func::Add, &[scaled, next]), &[&a.stored, value, factor], &a.stored)?
            }
            Accumulate::Max => each(Expr::call(Func::Max, &[before, next]), &[&a.stored, value], &a.stored)?,
            _ => each(Expr::call(Func::Add, &[before, next]), &[&a.stored, value], &a.stored)?,
        };
        steps.push(TileStep { when: IterationFilter::Later, ..later });
        Ok(())
    }

    /// Copies of the block's outputs that were not made where they belong.
    fn copies(&self, block: &Graph, values: &TileOperands, steps: &mut Vec<TileStep>) -> Result<(), HalError> {
        for (at, id) in block.outputs.iter().enumerate() {
            let made = values.get(id).ok_or_else(|| HalError::Load(format!("nothing makes output {at} of a block")))?;
            if !matches!(&made.location, OperandLocation::Tile(of, _) if matches!(**of, OperandLocation::Arena(_)))
                || !matches!(block.value(*id).source, ValueSource::Node { .. })
            {
                steps.push(each(Expr::input(0), &[made], &self.out(at, block.ty(*id))?)?);
            }
        }
        Ok(())
    }
}

/// What makes a value of a tile's graph, where that is a chain.
fn core(graph: &Graph, id: ValueId) -> Option<Core> {
    let ValueSource::Node { node, .. } = graph.value(id).source else { return None };
    let chains = FusedChain::of_node(graph, &graph.nodes[node as usize]).ok()?;
    chains.into_iter().next().map(|chain| chain.core)
}

/// Elements that a reduction makes one of.
fn reduced(reduce: &Reduce, shape: &[yirage_ir::Dim]) -> usize {
    let along = reduce.axes.0.iter().filter_map(|&a| shape.get(a as usize));
    along.map(|d| d.get(&Dims::default())).product()
}

/// Whether a node moves elements, or makes them of nothing: what is no chain.
fn is_moved(node: &Node) -> bool {
    matches!(&node.kind, NodeKind::Op(Op::Concat(_) | Op::Fill(_) | Op::Iota(_)))
}

/// The normal form of a node whose inputs lie as these do.
fn chains(graph: &Graph, node: &Node, values: &TileOperands) -> Result<Vec<FusedChain>, String> {
    FusedChain::of_node_where(graph, node, |id| values.get(&id).map(|operand| &operand.ty))
}

/// A node as a step.
fn step(
    node: &Node,
    values: &TileOperands,
    chains: Result<Vec<FusedChain>, String>,
    outs: Vec<PlanOperand>,
) -> Result<TileStep, HalError> {
    let missing = || HalError::Load(format!("`{}` of a tile reads what is not made", node.name()));
    let ins = node.ins.iter().map(|id| values.get(id).cloned().ok_or_else(missing)).collect::<Result<_, _>>()?;
    let chains = chains.and_then(|chains| chains.into_iter().map(|chain| laid(chain, &outs[0])).collect());
    let op = if let NodeKind::Op(op) = &node.kind { Some(op.clone()) } else { None };
    let whole = Whole { name: node.name().into(), op, chains, ins, outs, bucket: Dims::default() };
    Ok(TileStep { when: IterationFilter::Each, whole, carry: Carry::Nothing })
}

/// A chain that writes to where its output lies.
fn laid(mut chain: FusedChain, out: &PlanOperand) -> Result<FusedChain, String> {
    if let Some(strides) = &out.ty.strides {
        let whole = Strided::of(&out.ty).ok_or("an output too large")?;
        // In order, so that the dimensions of what is made are divided as those of the output are.
        let lies = whole.reshaped(&chain.out.shape);
        chain.out = lies.ok_or_else(|| format!("an output of strides {strides:?} that is made in other dimensions"))?;
    }
    Ok(chain)
}

/// A step that computes an expression of operands, element by element.
fn each(expr: Expr, ins: &[&PlanOperand], out: &PlanOperand) -> Result<TileStep, HalError> {
    let unsound = |e: yirage_ir::BuildError| HalError::Load(format!("a step of a tiled region: {e}"));
    let mut b = GraphBuilder::new("step");
    let mut ids = Vec::new();
    for (at, operand) in ins.iter().enumerate() {
        ids.push(b.step_input(&format!("x{at}"), operand.ty.clone()).map_err(unsound)?);
    }
    let made = b.op("y", Map { expr }, &ids).map_err(unsound)?;
    b.output(made);
    let graph = b.finish();
    let values = graph.inputs.iter().copied().zip(ins.iter().map(|o| (*o).clone())).collect();
    step(&graph.nodes[0], &values, chains(&graph, &graph.nodes[0], &values), vec![out.clone()])
}

/// An accumulator as the body reads it, where that is not as it is held.
fn rounded(a: &TileAccumulator) -> Result<Option<TileStep>, HalError> {
    if a.stored.ty == a.read.ty {
        return Ok(None);
    }
    each(Expr::input(0).cast(a.read.ty.dtype), &[&a.stored], &a.read).map(Some)
}

/// An accumulator before the first iteration.
fn none(how: Accumulate, held: &PlanOperand) -> Result<TileStep, HalError> {
    let value = match (how, held.ty.dtype) {
        (Accumulate::Max, DType::I32) => Scalar::from(i32::MIN),
        (_, DType::I32) => Scalar::from(0i32),
        (_, DType::U32) => Scalar::from(0u32),
        (Accumulate::Max, _) => Scalar::from(f32::NEG_INFINITY),
        _ => Scalar::from(0f32),
    };
    let shape = held.ty.shape.iter().map(|d| d.get(&Dims::default()) as u32).collect();
    let node =
        Node { kind: NodeKind::Op(Fill { value, shape: List(shape) }.into()), ins: Vec::new(), outs: Vec::new() };
    let step = step(&node, &TileOperands::new(), Err("a constant".into()), vec![held.clone()])?;
    Ok(TileStep { when: IterationFilter::First, ..step })
}

/// A tile of a value where it lies.
fn tile_of(whole: &PlanOperand, tile: &Type, cut: &TileIn, loops: u32) -> Result<PlanOperand, HalError> {
    let far = || HalError::Load(format!("{whole}: its tiles lie too far apart"));
    let lies = Strided::of(&whole.ty).ok_or_else(far)?;
    let sizes: Vec<usize> = tile.shape.iter().map(|d| d.get(&Dims::default())).collect();
    let along = |block: [usize; 3], iteration: usize| {
        let origin = cut.origin(&sizes, loops, block, iteration);
        let each = origin.iter().zip(&lies.strides).map(|(&o, &s)| i64::try_from(o).ok()?.checked_mul(s));
        let sum = each.sum::<Option<i64>>();
        sum.and_then(|n| usize::try_from(n).ok()).ok_or_else(far)
    };
    let grid = [along([1, 0, 0], 0)?, along([0, 1, 0], 0)?, along([0, 0, 1], 0)?];
    let moves = Moves { grid, by_loop: along([0; 3], 1)? };
    let strides = lies.strides.iter().map(|&s| u32::try_from(s).map_err(|_| far())).collect::<Result<Vec<_>, _>>()?;
    let seen = Strided { shape: tile.shape.clone(), strides: lies.strides.clone(), offset: 0 };
    let ty = Type { strides: (!seen.is_dense()).then_some(strides), ..tile.clone() };
    let location = OperandLocation::Tile(Box::new(whole.location.clone()), moves);
    Ok(PlanOperand { name: whole.name.clone(), ty, location, inner: false })
}
