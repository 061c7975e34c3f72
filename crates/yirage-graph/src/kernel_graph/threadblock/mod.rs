//! Graphs of a thread block: operations by the names and arguments of Mirage's `TBGraph` (Wu et al., OSDI 2025), which
//! become a tiled region ([`Tiled`]).
//!
//! What stands before an accumulator is made in each iteration of the loop, what follows one once a block. Both halves are
//! kernel graphs, so their operations have the same rules. Nothing is known here of who runs a block.

mod accumulate;
mod finish;
mod operations;

pub use accumulate::ForloopAccum;

use super::builder::{KernelGraph, sizes};
use super::error::GraphError;
use yirage_ir::region::{TileIn, TileOut, Tiled};
use yirage_ir::{DType, Graph, Type, ValueId};

/// A value of a thread block's graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockValue {
    half: BlockPhase,
    id: ValueId,
}

/// When a value is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum BlockPhase {
    /// In each iteration.
    Loop,
    /// After the loop.
    After,
}

/// What becomes of a value of the loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LoopAccumulation {
    /// Added up; by its op, where that can go on.
    Sum,
    /// Its reduction goes on.
    Continue,
    /// The largest.
    Max,
    /// Scaled by a value of the loop before the next is added.
    Rescaled(ValueId),
}

/// An accumulator.
#[derive(Clone, Copy, Debug)]
struct BlockAccumulator {
    value: ValueId,
    how: LoopAccumulation,
    /// As what follows the loop reads it, and as the loop does, where it does.
    after: ValueId,
    running: Option<ValueId>,
}

/// A tile of an input.
#[derive(Clone, Debug)]
struct InputTile {
    ty: Type,
    cut: TileIn,
    tile: ValueId,
    /// The same tile after the loop, where that reads it.
    after: Option<ValueId>,
}

/// The graph of a thread block under construction, for [`KernelGraph::customized`].
#[derive(Clone, Debug)]
pub struct BlockGraph {
    grid_dim: [u32; 3],
    block_dim: [u32; 3],
    forloop_range: u32,
    reduction_dimx: u32,
    body: KernelGraph,
    block: KernelGraph,
    inputs: Vec<InputTile>,
    outputs: Vec<(ValueId, TileOut)>,
    accumulators: Vec<BlockAccumulator>,
    in_dmem: usize,
}

pub(super) type BlockGraphResult = Result<BlockValue, GraphError>;

impl BlockGraph {
    /// An empty graph for a grid of blocks with loops of so many iterations. `reduction_dimx` is the width that
    /// [`ForloopAccum::SumToDimx`] leaves. How many threads a block has (`block_dim`) is kept and told by
    /// [`BlockGraph::notes`]: no device here runs a block by threads that a graph numbers.
    ///
    /// # Errors
    /// A size of 0.
    pub fn new(
        grid_dim: [u32; 3],
        block_dim: [u32; 3],
        forloop_range: u32,
        reduction_dimx: u32,
    ) -> Result<BlockGraph, GraphError> {
        let sizes = [("grid_dim", &grid_dim[..]), ("block_dim", &block_dim), ("forloop_range", &[forloop_range])];
        for (argument, given) in sizes.into_iter().chain([("reduction_dimx", &[reduction_dimx][..])]) {
            if given.contains(&0) {
                let (what, given) = ("new_threadblock_graph", format!("{given:?}"));
                return Err(GraphError::Argument { what, argument, given, wanted: "sizes above 0" });
            }
        }
        Ok(BlockGraph {
            grid_dim,
            block_dim,
            forloop_range,
            reduction_dimx,
            body: KernelGraph::new("body"),
            block: KernelGraph::new("block"),
            inputs: Vec::new(),
            outputs: Vec::new(),
            accumulators: Vec::new(),
            in_dmem: 0,
        })
    }

    /// A tile of a value of `graph`: `input_map` names the dimension that each axis of the grid cuts and `forloop_dim` the
    /// one that the loop cuts inside of that, each -1 for none: each iteration reads the same. `store_in_dmem` is kept and told by
    /// [`BlockGraph::notes`]: where a tile lies is a device's matter.
    ///
    /// # Errors
    /// A dimension that the value does not have or that does not divide, and one that is cut by two axes.
    pub fn new_input(
        &mut self,
        graph: &KernelGraph,
        dtensor: ValueId,
        input_map: [i32; 3],
        forloop_dim: i32,
        store_in_dmem: bool,
    ) -> BlockGraphResult {
        let what = "new_input";
        let ty = graph.ty(what, dtensor)?.clone();
        let cut = TileIn { grid: dims(what, "input_map", input_map)?, by_loop: dim(what, "forloop_dim", forloop_dim)? };
        let tile = self.tiled(vec![cut]).tile(0, &ty);
        let tile = tile.map_err(|wanted| GraphError::Operands { what, given: ty.to_string(), wanted })?;
        let id = self.body.new_input(&sizes(&tile), None, tile.dtype)?;
        self.inputs.push(InputTile { ty, cut, tile: id, after: None });
        self.in_dmem += usize::from(store_in_dmem);
        Ok(BlockValue { half: BlockPhase::Loop, id })
    }

    /// Declares that each block gives a tile, laid out along the dimensions that `output_map` names for the axes of the
    /// grid, -1 for none. A value of the loop may be given where the loop has one iteration.
    ///
    /// # Errors
    /// A value of a loop of several iterations, and a `forloop_dim`: each iteration's tile as a part of an output is not
    /// supported. That the map lays each element once is checked by [`KernelGraph::customized`].
    pub fn new_output(
        &mut self,
        stensor: BlockValue,
        output_map: [i32; 3],
        forloop_dim: i32,
    ) -> Result<(), GraphError> {
        let what = "new_output";
        if forloop_dim != -1 {
            return Err(GraphError::Unsupported {
                what: format!("new_output with forloop_dim {forloop_dim}"),
                why: "outputs are written once a block; make the loop's dimension an axis of the grid".into(),
            });
        }
        let grid = dims(what, "output_map", output_map)?;
        let made = match stensor.half {
            BlockPhase::Loop if self.forloop_range == 1 => self.forloop_accum(stensor, None)?,
            _ => stensor,
        };
        let id = self.after(what, made)?;
        self.outputs.push((id, TileOut { grid }));
        Ok(())
    }

    /// Blocks along each axis.
    pub fn grid_dim(&self) -> [u32; 3] {
        self.grid_dim
    }

    /// Threads of a block along each axis, as they were given.
    pub fn block_dim(&self) -> [u32; 3] {
        self.block_dim
    }

    /// Iterations of a block's loop.
    pub fn forloop_range(&self) -> u32 {
        self.forloop_range
    }

    /// The width that [`ForloopAccum::SumToDimx`] leaves.
    pub fn reduction_dimx(&self) -> u32 {
        self.reduction_dimx
    }

    /// Sizes of a value: those of a block's tile.
    ///
    /// # Errors
    /// A value that is not of this graph.
    pub fn dims(&self, a: BlockValue) -> Result<Vec<u32>, GraphError> {
        self.half(a).dims(a.id)
    }

    /// Strides of a value, which lies in row-major order.
    ///
    /// # Errors
    /// As those of [`BlockGraph::dims`].
    pub fn strides(&self, a: BlockValue) -> Result<Vec<u32>, GraphError> {
        self.half(a).strides(a.id)
    }

    /// Element type of a value.
    ///
    /// # Errors
    /// As those of [`BlockGraph::dims`].
    pub fn dtype(&self, a: BlockValue) -> Result<DType, GraphError> {
        self.half(a).dtype(a.id)
    }

    /// The graph that a value is of.
    fn half(&self, a: BlockValue) -> &KernelGraph {
        match a.half {
            BlockPhase::Loop => &self.body,
            BlockPhase::After => &self.block,
        }
    }

    /// What was asked for that changes nothing here.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = vec![format!(
            "block_dim {:?} is kept and not used: how a block is run is the device's matter",
            self.block_dim
        )];
        if self.in_dmem > 0 {
            let n = self.in_dmem;
            notes.push(format!(
                "store_in_dmem of {n} inputs is kept and not used: where tiles lie is the device's matter"
            ));
        }
        notes
    }

    /// The value as what follows the loop reads it.
    fn after(&mut self, what: &'static str, a: BlockValue) -> Result<ValueId, GraphError> {
        if a.half == BlockPhase::After {
            return Ok(a.id);
        }
        let loops = self.forloop_range;
        let ty = self.body.ty(what, a.id)?.clone();
        let stays = |input: &&mut InputTile| input.tile == a.id && (input.cut.by_loop.is_none() || loops == 1);
        let Some(input) = self.inputs.iter_mut().find(stays) else {
            let wanted = "a value of the loop is accumulated before it meets what follows the loop".into();
            return Err(GraphError::Operands { what, given: ty.to_string(), wanted });
        };
        if let Some(after) = input.after {
            return Ok(after);
        }
        let after = self.block.new_input(&sizes(&ty), None, ty.dtype)?;
        input.after = Some(after);
        Ok(after)
    }

    /// The region without what the graphs say.
    fn tiled(&self, ins: Vec<TileIn>) -> Tiled {
        Tiled {
            grid: self.grid_dim,
            loops: self.forloop_range,
            ins,
            outs: Vec::new(),
            accumulators: Vec::new(),
            running: Vec::new(),
            reads: Vec::new(),
            block: Graph::default(),
        }
    }
}

/// A dimension, or -1 for none.
fn dim(what: &'static str, argument: &'static str, given: i32) -> Result<Option<u32>, GraphError> {
    let wrong =
        || GraphError::Argument { what, argument, given: given.to_string(), wanted: "dimensions, or -1 for none" };
    if given == -1 { Ok(None) } else { u32::try_from(given).map(Some).map_err(|_| wrong()) }
}

fn dims(what: &'static str, argument: &'static str, given: [i32; 3]) -> Result<[Option<u32>; 3], GraphError> {
    let [x, y, z] = given.map(|given| dim(what, argument, given));
    Ok([x?, y?, z?])
}
