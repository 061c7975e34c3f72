//! Chains around a contraction.

use super::chain::{further, program, rounded, sizes, strides};
use super::operand_constraints::elements;
use super::{BoundKernel, Kernel};
use crate::bind::{Binder, CpuRunContext, ScratchBuffer, Viewed, ViewedOut, Whole};
use crate::walk::StageWork;
use std::sync::{Mutex, PoisonError};
use yirage_cpu_kernels::general::contract::{self, BatchMatmul, Contract, Fused, RhsPacking};
use yirage_cpu_kernels::general::{ElementProgram, StridedInput};
use yirage_hal::HalError;
use yirage_ir::expr::Expr;
use yirage_ir::region::{Core, ElementExpr};
use yirage_ir::{DType, Dim, Dims, RegionKind};
use yirage_plan::rules::OpRule;
use yirage_plan::{Partitioning, Stage};

impl Kernel {
    pub(super) const CONTRACT: Kernel = Kernel {
        name: "cpu/contract@1",
        regions: &[RegionKind::Chain],
        rules: || ["contract", "map", "view"].map(|op| OpRule::new(op, vec![elements()])).into(),
        stages: &[Stage::always(Partitioning::WorkQueue)],
        scratch: true,
        bind,
    };
}

/// A matrix of a batch as it is multiplied: elements of one operand, changed or not.
struct ContractOperand {
    matrix: Viewed,
    change: Option<ElementTransform>,
}

/// What becomes of elements that are at hand, and what else is read for it.
struct ElementTransform {
    program: ElementProgram,
    further: Vec<Viewed>,
}

impl ElementTransform {
    /// What else is read, where it is in a run.
    fn inputs(&self, run: &CpuRunContext<'_>) -> Vec<StridedInput> {
        self.further.iter().map(|read| read.input(run, strides(read.strides()))).collect()
    }
}

struct ContractChain {
    batch: Vec<Dim>,
    m: Dim,
    k: Dim,
    n: Dim,
    sides: [ContractOperand; 2],
    after: Option<ElementTransform>,
    out: ViewedOut,
    /// Whether it goes on from its output in all iterations of a loop but the first.
    carries: bool,
    /// Of each worker.
    scratch: Vec<ScratchBuffer>,
    /// Of each worker, where a right side is kept from block to block of a tiled region.
    prepacked: Option<Vec<PrepackCache>>,
}

/// Where a worker keeps a packed right side.
struct PrepackCache {
    memory: ScratchBuffer,
    /// How it was packed last, and from which address.
    packed: Mutex<Option<(RhsPacking, usize)>>,
}

/// Fewest rows of a product whose right side is kept: packing it takes as long as fewer rows do.
const MIN_PREPACK_ROWS: usize = 8;

fn bind(binder: &mut Binder<'_>, n: usize) -> Result<Box<dyn BoundKernel>, HalError> {
    let node = binder.whole(n)?;
    let scratch = binder.each_worker(scratch_bytes(&node)?)?;
    Ok(Box::new(whole(&node, scratch)?))
}

/// Bytes of scratch that a worker needs for a chain around a contraction.
pub(super) fn scratch_bytes(node: &Whole) -> Result<usize, HalError> {
    let (bucket, shape) = (node.bucket(), &node.chain()?.after.shape);
    let [outer @ .., columns] = &shape[..] else {
        return Err(HalError::Load("a contraction to what is no matrix".into()));
    };
    Ok(Contract::scratch_bytes(count(outer, bucket), columns.get(bucket)))
}

/// Bytes in which a worker keeps the packed right side of a chain around a contraction on tiles; nothing where it is made or
/// changed inside of the block, read by few rows, or another one in the next block of the grid.
pub(super) fn prepacked_bytes(node: &Whole, grid: [u32; 3]) -> Result<Option<usize>, HalError> {
    let chain = node.chain()?;
    let Core::Contract(sides) = &chain.core else { return Ok(None) };
    let [read] = &sides[1].reads[..] else { return Ok(None) };
    let [outer @ .., m, n] = &chain.after.shape[..] else { return Ok(None) };
    let given = sides[1].expr == Expr::input(0) && node.is_next_tile_too(read, grid);
    let size = |dim: &Dim| dim.get(node.bucket());
    let k = sides[0].shape.last().map_or(0, size);
    let floats = contract::packed_rhs_floats(count(outer, node.bucket()), k, size(n));
    let bytes = floats.and_then(|floats| floats.checked_mul(size_of::<f32>()));
    Ok(bytes.filter(|_| given && size(m) >= MIN_PREPACK_ROWS))
}

/// A chain around a contraction on tiles, which goes on from its output in a loop, or keeps its right side.
pub(super) fn in_tiles(
    node: &Whole,
    carries: bool,
    scratch: Vec<ScratchBuffer>,
    kept: Option<Vec<ScratchBuffer>>,
) -> Result<Box<dyn BoundKernel>, HalError> {
    let one = |memory: ScratchBuffer| PrepackCache { memory, packed: Mutex::new(None) };
    let kept = kept.map(|all| all.into_iter().map(one).collect());
    Ok(Box::new(ContractChain { carries, prepacked: kept, ..whole(node, scratch)? }))
}

/// A chain around a contraction.
fn whole(node: &Whole, scratch: Vec<ScratchBuffer>) -> Result<ContractChain, HalError> {
    let chain = node.chain()?;
    let Core::Contract(sides) = &chain.core else {
        return Err(HalError::Load(format!("{} computes contractions alone", Kernel::CONTRACT.name)));
    };
    let shape = &chain.after.shape;
    let (Some((&columns, outer)), Some(&k)) = (shape.split_last(), sides[0].shape.last()) else {
        return Err(HalError::Load("a contraction of what is no matrix".into()));
    };
    let Some((&m, batch)) = outer.split_last() else {
        return Err(HalError::Load("a contraction to what is no matrix".into()));
    };
    let side = |e: &ElementExpr| -> Result<ContractOperand, HalError> {
        let e = batched(e, batch);
        let read = e.reads.iter().map(|read| node.read(read)).collect::<Result<Vec<_>, _>>()?;
        let (reads, types): (Vec<Viewed>, Vec<DType>) = read.into_iter().unzip();
        let mut reads = reads.into_iter();
        let Some(matrix) = reads.next() else {
            return Err(HalError::Load("a contraction of no input".into()));
        };
        let change = if e.expr == Expr::input(0) {
            None
        } else {
            Some(ElementTransform { program: program(&e.expr, &types)?, further: reads.collect() })
        };
        Ok(ContractOperand { matrix, change })
    };
    let sides = [side(&sides[0])?, side(&sides[1])?];
    let (reads, types) = further(node, chain)?;
    let after = if chain.after.expr == Expr::input(0) {
        None
    } else {
        let expr = rounded(&chain.after.expr, chain.core_dtype);
        Some(ElementTransform { program: program(&expr, &types)?, further: reads })
    };
    let (out, batch) = (node.written(0, &chain.out)?, batch.to_vec());
    Ok(ContractChain { batch, m, k, n: columns, sides, after, out, carries: false, scratch, prepacked: None })
}

fn count(batch: &[Dim], dims: &Dims) -> usize {
    batch.iter().fold(1usize, |n, dim| n.saturating_mul(dim.get(dims)))
}

/// A side with strides for all dimensions of the batch: it meets those that it does not have, or has once, again and
/// again.
fn batched(e: &ElementExpr, batch: &[Dim]) -> ElementExpr {
    let mut e = e.clone();
    let own = e.shape.len() - 2;
    let missing = batch.len() - own;
    for read in &mut e.reads {
        for (axis, dim) in e.shape[..own].iter().enumerate() {
            if *dim != batch[missing + axis] {
                read.at.strides[axis] = 0;
            }
        }
        read.at.strides.splice(0..0, vec![0; missing]);
        let matrix = read.at.shape.split_off(own);
        read.at.shape = e.shape[..own].to_vec();
        read.at.shape.splice(0..0, batch[..missing].iter().copied());
        read.at.shape.extend(matrix);
    }
    e
}

impl BoundKernel for ContractChain {
    unsafe fn run(&self, _: u32, run: &CpuRunContext<'_>, work: StageWork<'_>) {
        let [m, k, n] = [self.m, self.k, self.n].map(|dim| run.size(dim));
        let batch = sizes(&self.batch, run.dims);
        let changes = [&self.sides[0].change, &self.sides[1].change, &self.after].map(Option::as_ref);
        let inputs = changes.map(|change| change.map_or(Vec::new(), |change| change.inputs(run)));
        let [left, right, after] = [0, 1, 2].map(|i| {
            let others = inputs[i].as_slice();
            changes[i].map(|change| Fused { program: &change.program, others })
        });
        let matrix = |side: &ContractOperand| side.matrix.input(run, strides(side.matrix.strides()));
        let product = BatchMatmul {
            batch: batch.as_slice(),
            m,
            k,
            n,
            a: matrix(&self.sides[0]),
            b: matrix(&self.sides[1]),
            out: self.out.output(run, strides(self.out.strides())),
            left,
            right,
            after,
            goes_on: self.carries && run.tile.iteration > 0,
            workers: work.workers,
        };
        let mut call = match Contract::new(run.isa, product) {
            Ok(call) => call,
            Err(why) => return run.fail(why),
        };
        // SAFETY: each worker has scratch of its own.
        let scratch = unsafe { self.scratch[work.worker].floats(run) };
        if let Some(kept) = &self.prepacked {
            let PrepackCache { memory, packed } = &kept[work.worker];
            let from = self.sides[1].matrix.first(run) as usize;
            // SAFETY: the memory is this worker's.
            let room = unsafe { memory.floats(run) };
            let mut last = packed.lock().unwrap_or_else(PoisonError::into_inner);
            // In this run, this worker has packed the same tile.
            let there = last.filter(|(_, of)| run.tile.kept && *of == from);
            // SAFETY: `Whole::read` has checked that all elements exist.
            let (packed, _) =
                *last.insert(there.unwrap_or_else(|| (unsafe { call.prepack_right(run.isa, room) }, from)));
            call = call.reading(packed, room);
        }
        // SAFETY: `Whole::read` and `Whole::written` have checked that all elements exist; pieces are disjoint.
        work.for_each_item(call.pieces(), |pieces| unsafe { contract::contract(run.isa, &call, pieces, scratch) });
    }
}
