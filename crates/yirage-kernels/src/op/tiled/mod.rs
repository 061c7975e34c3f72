//! Tiled regions: a block of the grid is a group of threads, and a block's loop is a loop of the kernel.
//!
//! What a block makes lies in memory that its threads share, the tiles that its products read again and again beside it, and
//! what finds no room there in the block's part of the node's workspace. A step of a block is an op or a chain on tiles; its
//! threads wait for each other where one reads what another has written. Each sum is added up in the order of its op, so a
//! tiling alone changes no bit.

mod barriers;
mod memory;
mod operand;
mod outputs;
mod plan;
mod step;
mod steps;
#[cfg(test)]
mod tests;
mod write;

use super::NodeView;
use crate::grid::FlatGrid;
use crate::node_kernel::NodeKernel;
use crate::scope::KernelScope;
use barriers::StepBarriers;
use operand::{BlockPosition, TILES};
use plan::TiledPlan;
use step::BlockStep;
use yirage_hal::HalError;
use yirage_ir::op::PARTS;
use yirage_ir::region::Tiled;
use yirage_ir::{Dim, Region};
use yirage_kir::{KernelWriter, Register, ScalarType};

/// Threads of a group: as many as a reduction has partial results.
const THREADS: u32 = PARTS as u32;

/// The kernels that run a tiled region: its own, and one for each output whose blocks share words.
pub(super) fn lower(view: &NodeView<'_>, region: &Region) -> Result<Vec<NodeKernel>, HalError> {
    let none = || HalError::Load("a tiled region of which nothing says how it is tiled".into());
    let tiled = region.tiled.as_deref().ok_or_else(none)?;
    let blocks = tiled.blocks().and_then(|blocks| u32::try_from(blocks).ok());
    let too_many = || HalError::Load(format!("a grid of {:?} blocks is more than a kernel counts", tiled.grid));
    let blocks = blocks.ok_or_else(too_many)?;
    let mut scope = view.scope("tiled", THREADS);
    let mut workspace = view.workspace;
    let plan = TiledPlan::of(view, &mut scope, region, tiled, &mut workspace)?;
    let spilled = workspace.take_words(blocks, plan.memory.workspace_words())?;
    if plan.memory.shared_words() > 0 {
        let tiles = scope.w.shared(ScalarType::U32, plan.memory.shared_words());
        debug_assert_eq!(tiles, TILES, "a block shares one array");
    }
    if plan.memory.workspace_words() > 0 {
        scope.workspace();
    }
    let grid = FlatGrid::of(&[Dim::Const(blocks)], 1, 1, &view.site.bucket)?;
    BlockKernel { tiled, plan: &plan, spilled }.write(&mut scope, grid, blocks);
    let mut kernels = vec![scope.finish(grid.axes(), 0)];
    for shared in &plan.outputs {
        kernels.extend(shared.packed(view)?);
    }
    for kernel in kernels.iter_mut().filter(|kernel| kernel.uses_workspace()) {
        kernel.workspace = workspace.bytes();
    }
    Ok(kernels)
}

struct BlockKernel<'a> {
    tiled: &'a Tiled,
    plan: &'a TiledPlan,
    /// The first word of all blocks' parts of the workspace.
    spilled: u32,
}

impl BlockKernel<'_> {
    fn write(&self, scope: &mut KernelScope<'_>, grid: FlatGrid, blocks: u32) {
        let barriers = StepBarriers::of(self.plan, self.tiled.loops > 1);
        let w = &mut scope.w;
        let group = w.group(0);
        if grid.per_group == 1 {
            self.block(w, group, &barriers);
            return;
        }
        let (per_group, all, one) = (w.u32(grid.per_group), w.u32(blocks), w.u32(1));
        let first = w.mul(group, per_group);
        let end = w.add(first, per_group);
        let end = w.min(end, all);
        w.for_each(first, end, one, |w, number| {
            // The block before is still read.
            w.barrier();
            self.block(w, number, &barriers);
        });
    }

    /// A block from its first iteration to its end.
    fn block(&self, w: &mut KernelWriter, number: Register, barriers: &StepBarriers) {
        let (zero, one, loops) = (w.u32(0), w.u32(1), w.u32(self.tiled.loops));
        let mut at = self.position(w, number);
        all(w, &self.plan.before, &barriers.before, &at);
        if self.tiled.loops == 1 {
            all(w, &self.plan.body, &barriers.body, &at);
        } else {
            w.for_each(zero, loops, one, |w, iteration| {
                at.iteration = iteration;
                at.is_first = Some(w.equal(iteration, zero));
                all(w, &self.plan.body, &barriers.body, &at);
            });
            (at.iteration, at.is_first) = (zero, None);
        }
        all(w, &self.plan.after, &barriers.after, &at);
    }

    /// A block before its first iteration.
    fn position(&self, w: &mut KernelWriter, number: Register) -> BlockPosition {
        let mut left = number;
        let mut block = [w.u32(0); 3];
        for (axis, place) in block.iter_mut().enumerate().filter(|(axis, _)| self.tiled.grid[*axis] > 1) {
            *place = left;
            if self.tiled.grid[axis + 1..].iter().any(|&blocks| blocks > 1) {
                let blocks = w.u32(self.tiled.grid[axis]);
                (*place, left) = (w.rem(left, blocks), w.div(left, blocks));
            }
        }
        let (words, spilled) = (w.u32(self.plan.memory.workspace_words()), w.u32(self.spilled));
        let before = w.mul(number, words);
        let workspace = w.add(before, spilled);
        BlockPosition { block, iteration: w.u32(0), is_first: None, workspace }
    }
}

/// Steps one after the other, with barriers where they are wanted.
fn all(w: &mut KernelWriter, steps: &[BlockStep], barriers: &[bool], at: &BlockPosition) {
    for (step, &waits) in steps.iter().zip(barriers) {
        if waits {
            w.barrier();
        }
        step.write(w, at);
    }
}
