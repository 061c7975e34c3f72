//! What the blocks of a tiled region do, and in which memory.

use super::memory::BlockMemory;
use super::operand::count;
use super::outputs::RegionOutput;
use super::step::BlockStep;
use super::steps::{StepsBuilder, chains};
use crate::elements::elements_per_word;
use crate::op::NodeView;
use crate::scope::KernelScope;
use crate::workspace::Workspace;
use yirage_hal::HalError;
use yirage_ir::region::{ChainRead, Core, Tiled};
use yirage_ir::{Dims, Graph, Region};
use yirage_kir::MAX_SHARED_BYTES;
use yirage_plan::DeviceLimits;

/// A tile that products read so many times is worth a copy that the block's threads share.
const WORTH_SHARING: usize = 4;

/// The steps of a block.
pub(super) struct TiledPlan {
    /// Before the loop.
    pub(super) before: Vec<BlockStep>,
    /// In each iteration.
    pub(super) body: Vec<BlockStep>,
    /// After the loop.
    pub(super) after: Vec<BlockStep>,
    pub(super) memory: BlockMemory,
    pub(super) outputs: Vec<RegionOutput>,
}

impl TiledPlan {
    pub(super) fn of(
        view: &NodeView<'_>,
        scope: &mut KernelScope<'_>,
        region: &Region,
        tiled: &Tiled,
        workspace: &mut Workspace,
    ) -> Result<TiledPlan, HalError> {
        let mut ins = Vec::with_capacity(view.ins.len());
        for (at, &operand) in view.ins.iter().enumerate() {
            ins.push((scope.read(operand), view.places(at)?));
        }
        let mut output = |number| RegionOutput::new(view, &mut *scope, tiled, number, &mut *workspace);
        let outputs = (0..tiled.outs.len()).map(&mut output).collect::<Result<Vec<_>, _>>()?;
        let outs = outputs.iter().map(|output| output.tile.clone()).collect();
        let builder = StepsBuilder { body: &region.graph, tiled, ins, outs };
        let most_shared = shared_bytes(view.site.limits) / 4;
        let mut buffer = || scope.workspace();
        let mut steps = builder.steps(BlockMemory::new(most_shared), &[], &mut buffer)?;
        // What is left when all that a block makes has its place is for copies of what it reads.
        let room = most_shared.saturating_sub(steps.memory.shared_words().into());
        let shared = shared_tiles(&region.graph, tiled, room);
        if !shared.is_empty() {
            steps = builder.steps(BlockMemory::new(most_shared), &shared, &mut buffer)?;
        }
        let (before, body, after) = (steps.before, steps.body, steps.after);
        Ok(TiledPlan { before, body, after, memory: steps.memory, outputs })
    }
}

/// Bytes that the threads of a group may share on a device of these limits.
fn shared_bytes(limits: &DeviceLimits) -> u64 {
    limits.block_bytes.unwrap_or(MAX_SHARED_BYTES).min(MAX_SHARED_BYTES)
}

/// The inputs whose tiles are copied to what the threads share, within so many words.
fn shared_tiles(body: &Graph, tiled: &Tiled, mut room: u64) -> Vec<usize> {
    let after = tiled.accumulators.iter().map(|_| None).chain(tiled.reads.iter().map(|&input| Some(input as usize)));
    let after: Vec<Option<usize>> = after.collect();
    let looped: Vec<Option<usize>> = (0..tiled.ins.len()).map(Some).collect();
    let mut chosen = Vec::new();
    for input in 0..tiled.ins.len() {
        let tile = body.ty(body.inputs[input]);
        let words = u64::from(count(tile).div_ceil(elements_per_word(tile.dtype))).max(1);
        let reads = times_read(body, &looped, input).max(times_read(&tiled.block, &after, input));
        if reads >= WORTH_SHARING && words <= room {
            room -= words;
            chosen.push(input);
        }
    }
    chosen
}

/// How often the products of a graph read each element of an input of the node, at most. Inputs of the graph are tiles of
/// those in `of`.
fn times_read(graph: &Graph, of: &[Option<usize>], input: usize) -> usize {
    let is_tile = |id| graph.inputs.iter().position(|&i| i == id).and_then(|at| of.get(at)) == Some(&Some(input));
    let mut most = 0;
    for node in &graph.nodes {
        let Ok(chains) = chains(graph, node, &Default::default()) else { continue };
        for chain in &chains {
            let Core::Contract(sides) = &chain.core else { continue };
            let size = |side: usize, behind: usize| {
                let shape = &sides[side].shape;
                shape.len().checked_sub(behind).map_or(1, |at| shape[at].get(&Dims::default()))
            };
            let reads = |read: &ChainRead| is_tile(node.ins[read.input]);
            // An element of the left side is read for each column, one of the right side for each row.
            for (side, times) in [(0, size(1, 1)), (1, size(0, 2))] {
                if sides[side].reads.iter().any(reads) {
                    most = most.max(times);
                }
            }
        }
    }
    most
}
