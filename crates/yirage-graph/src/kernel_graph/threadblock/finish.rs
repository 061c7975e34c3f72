//! From a thread block's graph to a node of a kernel graph.

use super::super::builder::{KernelGraph, sizes};
use super::super::error::GraphError;
use super::{BlockGraph, InputTile, LoopAccumulation};
use yirage_ir::attr::List;
use yirage_ir::expr::Scalar;
use yirage_ir::op::{Fill, ReduceKind};
use yirage_ir::region::{Accumulate, CONTINUED, TileIn, Tiled};
use yirage_ir::{DType, Graph, Node, NodeKind, Op, Region, Type, ValueId, ValueSource};

impl KernelGraph {
    /// A node that runs the graph of a thread block on these values: those of which its tiles were declared, in that order.
    /// Gives what it gives, in the order of [`BlockGraph::new_output`].
    ///
    /// # Errors
    /// Other values, a thread block's graph without outputs, and what a tiled region must not be: outputs that two blocks
    /// write, factors that do not broadcast.
    pub fn customized(&mut self, inputs: &[ValueId], bgraph: &BlockGraph) -> Result<Vec<ValueId>, GraphError> {
        let given = inputs.iter().map(|&i| self.ty("customized", i).cloned()).collect::<Result<Vec<_>, _>>()?;
        let declared: Vec<&Type> = bgraph.inputs.iter().map(|input| &input.ty).collect();
        if !given.iter().eq(declared.iter().copied()) {
            let list = |types: Vec<String>| types.join(", ");
            return Err(GraphError::Operands {
                what: "customized",
                given: list(given.iter().map(Type::to_string).collect()),
                wanted: format!(
                    "{} wanted, as new_input has it",
                    list(declared.iter().map(ToString::to_string).collect())
                ),
            });
        }
        if !bgraph.repeats() {
            return self.region(bgraph.region()?, inputs);
        }
        let counted = bgraph.counted()?;
        let mut counter = self.clone();
        let (value, shape) = (Scalar::from(0f32), List(vec![bgraph.forloop_range]));
        let iterations = counter.op(Fill { value, shape }, &[])?;
        let made = counter.region(counted.region()?, &[inputs, &[iterations]].concat())?;
        *self = counter;
        Ok(made)
    }
}

impl BlockGraph {
    /// Whether the loop cuts no input, so that each iteration reads the same.
    fn repeats(&self) -> bool {
        self.forloop_range > 1 && self.inputs.iter().all(|input| input.cut.by_loop.is_none())
    }

    /// The graph with one more input, of an element for each iteration, which nothing reads: the loop of a tiled region cuts an
    /// input.
    fn counted(&self) -> Result<BlockGraph, GraphError> {
        let mut counted = self.clone();
        let ty = Type::new(DType::F32, [self.forloop_range]);
        let tile = counted.body.new_input(&[1], None, DType::F32)?;
        let cut = TileIn { by_loop: Some(0), ..TileIn::default() };
        counted.inputs.push(InputTile { ty, cut, tile, after: None });
        Ok(counted)
    }

    /// The tiled region that the graph is.
    ///
    /// # Errors
    /// A graph without outputs.
    fn region(&self) -> Result<Region, GraphError> {
        if self.outputs.is_empty() {
            return Err(GraphError::NoOutput { graph: "block".into() });
        }
        let factors = self.accumulators.iter().filter_map(|a| match a.how {
            LoopAccumulation::Rescaled(factor) => Some(factor),
            _ => None,
        });
        let mut body = self.body.giving(self.accumulators.iter().map(|a| a.value).chain(factors));
        let mut block = self.block.giving(self.outputs.iter().map(|(id, _)| *id));
        let mut next = self.accumulators.len() as u32;
        let accumulators = self.accumulators.iter().map(|a| match a.how {
            LoopAccumulation::Continue => Accumulate::Continue,
            LoopAccumulation::Sum if self.goes_on(&body, a.value) => Accumulate::Continue,
            LoopAccumulation::Sum => Accumulate::Sum,
            LoopAccumulation::Max => Accumulate::Max,
            LoopAccumulation::Rescaled(_) => {
                next += 1;
                Accumulate::Rescaled { by: next - 1 }
            }
        });
        let accumulators = accumulators.collect();
        let running = self.accumulators.iter().enumerate().filter_map(|(at, a)| Some((at as u32, a.running?)));
        let (running, before): (Vec<u32>, Vec<ValueId>) = running.unzip();
        body = declared_first(body, self.inputs.iter().map(|input| input.tile).chain(before).collect());
        let reads = self.inputs.iter().enumerate().filter_map(|(at, input)| Some((at as u32, input.after?)));
        let (reads, tiles): (Vec<u32>, Vec<ValueId>) = reads.unzip();
        block = declared_first(block, self.accumulators.iter().map(|a| a.after).chain(tiles).collect());
        let ins = self.inputs.iter().map(|input| input.cut).collect();
        let outs = self.outputs.iter().map(|(_, out)| *out).collect();
        let tiled = Tiled { outs, accumulators, running, reads, block, ..self.tiled(ins) };
        Ok(Region::tiled(body, tiled))
    }

    /// Whether the op that makes a value may go on from iteration to iteration: nothing else reads the value.
    fn goes_on(&self, body: &Graph, id: ValueId) -> bool {
        let ValueSource::Node { node, .. } = body.value(id).source else { return false };
        let read = body.nodes.iter().any(|n| n.ins.contains(&id));
        let given = body.outputs.iter().filter(|o| **o == id).count();
        let node = &body.nodes[node as usize];
        let op = match &node.kind {
            NodeKind::Op(Op::Contract(_)) => true,
            NodeKind::Op(Op::Reduce(reduce)) if reduce.kind == ReduceKind::Sum => {
                let dims = node.ins.first().map_or(Vec::new(), |&x| sizes(body.ty(x)));
                let along = reduce.axes.0.iter().filter_map(|&a| dims.get(a as usize));
                let count: u64 = along.map(|&n| u64::from(n)).product();
                self.forloop_range == 1 || count.is_multiple_of(CONTINUED as u64)
            }
            _ => false,
        };
        op && !read && given == 1
    }
}

/// The graph with its inputs in this order, before all that is made of them.
fn declared_first(graph: Graph, inputs: Vec<ValueId>) -> Graph {
    let made = graph.nodes.iter().flat_map(|node| node.outs.iter().copied());
    let order: Vec<ValueId> = inputs.iter().copied().chain(made).collect();
    let mut place = vec![ValueId(0); graph.values.len()];
    order.iter().enumerate().for_each(|(at, id)| place[id.index()] = ValueId(at as u32));
    let moved = |ids: &[ValueId]| ids.iter().map(|id| place[id.index()]).collect::<Vec<_>>();
    let node = |node: &Node| Node { kind: node.kind.clone(), ins: moved(&node.ins), outs: moved(&node.outs) };
    Graph {
        values: order.iter().map(|&id| graph.value(id).clone()).collect(),
        nodes: graph.nodes.iter().map(node).collect(),
        inputs: moved(&inputs),
        outputs: moved(&graph.outputs),
        name: graph.name,
    }
}
