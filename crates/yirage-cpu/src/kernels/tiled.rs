//! Tiled regions: a block is a piece of work, and what lives inside of one lies with the worker that has it.
//!
//! The steps of a block are the chains that this device runs as nodes of their own too: their kernels, on tiles.

use super::operand_constraints::{elements, moved};
use super::{BoundKernel, Kernel, chain, concat, constants, contract};
use crate::bind::{Binder, Carry, CpuRunContext, IterationFilter, ScratchBuffer, TileAt, TileStep, ViewedOut, Whole};
use crate::walk::StageWork;
use yirage_cpu_kernels::general::PartialReduction;
use yirage_hal::HalError;
use yirage_ir::op::{Op, PARTS, ReduceKind};
use yirage_ir::region::{Core, Tiled};
use yirage_ir::{Dim, Dims, RegionKind};
use yirage_plan::rules::OpRule;
use yirage_plan::{Partitioning, Stage};

impl Kernel {
    pub(super) const TILED: Kernel = Kernel {
        name: "cpu/tiled@1",
        regions: &[RegionKind::Tiled],
        rules: || {
            let mut rules: Vec<OpRule> =
                ["map", "view", "reduce", "contract"].map(|op| OpRule::new(op, vec![elements()])).into();
            rules.push(OpRule::new("concat", vec![moved()]));
            rules.extend(["fill", "iota"].map(|op| OpRule::new(op, Vec::new())));
            rules
        },
        stages: &[Stage::always(Partitioning::WorkQueue)],
        scratch: true,
        bind,
    };
}

/// Most bytes of a right side that a worker keeps: a part of the third-level cache.
const MAX_PREPACKED_BYTES: usize = 4 << 20;

/// A step, bound.
struct BoundTileStep {
    when: IterationFilter,
    kernel: Box<dyn BoundKernel>,
}

struct TiledKernel {
    tiled: Tiled,
    blocks: usize,
    body: Vec<BoundTileStep>,
    block: Vec<BoundTileStep>,
}

fn bind(binder: &mut Binder<'_>, n: usize) -> Result<Box<dyn BoundKernel>, HalError> {
    let steps = binder.tiled(n)?;
    let tiled = steps.tiled;
    // Pieces of a list are counted in 32 bits.
    let blocks = tiled.blocks().and_then(|n| u32::try_from(n).ok());
    let blocks = blocks.ok_or_else(|| HalError::Load(format!("a grid of {:?} blocks is too large", tiled.grid)))?;
    let mut bytes = 0;
    for step in steps.body.iter().chain(&steps.block).filter(|step| is_contraction(&step.whole)) {
        bytes = bytes.max(contract::scratch_bytes(&step.whole)?);
    }
    let scratch = binder.each_worker(bytes)?;
    let mut all = |steps: Vec<TileStep>| {
        let bind = |step: TileStep| {
            let kept = prepack_scratch(binder, &step, tiled.grid)?;
            bound(step, &scratch, kept)
        };
        steps.into_iter().map(bind).collect::<Result<Vec<_>, HalError>>()
    };
    let (body, block) = (all(steps.body)?, all(steps.block)?);
    Ok(Box::new(TiledKernel { tiled, blocks: blocks as usize, body, block }))
}

/// Memory in which each worker keeps the right side of a product from block to block, where several rows read it; nothing
/// of other steps, and of right sides that are larger than the caches.
fn prepack_scratch(
    binder: &mut Binder<'_>,
    step: &TileStep,
    grid: [u32; 3],
) -> Result<Option<Vec<ScratchBuffer>>, HalError> {
    if step.carry != Carry::Nothing || !is_contraction(&step.whole) {
        return Ok(None);
    }
    match contract::prepacked_bytes(&step.whole, grid)?.filter(|bytes| *bytes <= MAX_PREPACKED_BYTES) {
        Some(bytes) => binder.each_worker(bytes).map(Some),
        None => Ok(None),
    }
}

fn is_contraction(whole: &Whole) -> bool {
    whole.chain().is_ok_and(|chain| matches!(chain.core, Core::Contract(_)))
}

fn bound(
    step: TileStep,
    scratch: &[ScratchBuffer],
    kept: Option<Vec<ScratchBuffer>>,
) -> Result<BoundTileStep, HalError> {
    let TileStep { when, whole, carry } = step;
    let kernel = match (carry, whole.op()) {
        (Carry::Parts(count), _) => Box::new(Carried::bind(&whole, count)?),
        (Carry::Nothing, Ok(Op::Concat(_))) => concat::bound(&whole)?,
        (Carry::Nothing, Ok(Op::Fill(_) | Op::Iota(_))) => constants::bound(&whole)?,
        (carry, _) if is_contraction(&whole) => {
            contract::in_tiles(&whole, carry == Carry::Sums, scratch.to_vec(), kept)?
        }
        _ => chain::bound(&whole)?,
    };
    Ok(BoundTileStep { when, kernel })
}

impl BoundKernel for TiledKernel {
    unsafe fn run(&self, _: u32, run: &CpuRunContext<'_>, work: StageWork<'_>) {
        let mut kept = false;
        work.for_each_item(self.blocks, |blocks| {
            for at in blocks {
                // SAFETY: a block writes its own tiles of the outputs and the worker's memory.
                unsafe { self.one(self.tiled.block_at(at), kept, run, work.alone()) };
                kept = true;
            }
        });
    }

    fn workers(&self, _: &Dims) -> usize {
        self.blocks
    }
}

impl TiledKernel {
    /// A block from its first iteration to its end.
    ///
    /// # Safety
    /// As [`BoundKernel::run`]; nobody else has the block, nor the worker's memory.
    unsafe fn one(&self, block: [usize; 3], kept: bool, run: &CpuRunContext<'_>, work: StageWork<'_>) {
        let loops = self.tiled.loops as usize;
        for iteration in 0..loops {
            let now = run.of_tile(work.worker, TileAt { block, iteration, last: iteration + 1 == loops, kept });
            let first = iteration == 0;
            for step in &self.body {
                if step.when == IterationFilter::Each || (step.when == IterationFilter::First) == first {
                    // SAFETY: what `TiledKernel::one` is promised; steps follow each other;
                    // `yirage_plan::VerifiedPlan` proves it of programs.
                    unsafe { step.kernel.run(0, &now, work) };
                }
            }
        }
        let after = run.of_tile(work.worker, TileAt { block, iteration: 0, last: true, kept });
        for step in &self.block {
            // SAFETY: what `TiledKernel::one` is promised; steps follow each other; `yirage_plan::VerifiedPlan` proves
            // it of programs.
            unsafe { step.kernel.run(0, &after, work) };
        }
    }
}

/// A reduction that goes on from iteration to iteration.
struct Carried {
    kind: ReduceKind,
    axes: Vec<usize>,
    shape: Vec<Dim>,
    before: chain::BoundExpr,
    /// Elements of all iterations.
    count: usize,
    results: usize,
    parts: ViewedOut,
    out: ViewedOut,
}

impl Carried {
    fn bind(node: &Whole, count: usize) -> Result<Carried, HalError> {
        let chain = node.chain()?;
        let Core::Reduce(op, x) = &chain.core else {
            return Err(HalError::Load("partial results of what is no reduction".into()));
        };
        let axes: Vec<usize> = op.axes.0.iter().map(|&a| a as usize).collect();
        let stay = x.shape.iter().enumerate().filter(|(axis, _)| !axes.contains(axis));
        let results = stay.map(|(_, dim)| dim.get(node.bucket())).product();
        let (parts, out) = (node.all_written_of(1)?.0, node.all_written_of(0)?.0);
        let before = chain::BoundExpr::bind(node, x)?;
        Ok(Carried { kind: op.kind, axes, shape: x.shape.clone(), before, count, results, parts, out })
    }
}

impl BoundKernel for Carried {
    unsafe fn run(&self, _: u32, run: &CpuRunContext<'_>, _: StageWork<'_>) {
        let partial = PartialReduction {
            kind: self.kind,
            sizes: chain::sizes(&self.shape, run.dims),
            axes: &self.axes,
            prologue: &self.before.program,
            inputs: &self.before.inputs(run),
        };
        // SAFETY: `Whole::all_written_of` has checked that there are as many; they are the worker's alone.
        let parts =
            unsafe { std::slice::from_raw_parts_mut(self.parts.first(run).cast::<[f32; PARTS]>(), self.results) };
        if run.tile.iteration == 0 {
            partial.clear(parts);
        }
        // SAFETY: `Whole::read` has checked that all elements exist; results lie dense with the worker.
        unsafe {
            partial.take(run.isa, parts);
            if run.tile.last {
                partial.join(run.isa, self.count, parts, self.out.output(run, chain::strides(self.out.strides())));
            }
        }
    }
}
