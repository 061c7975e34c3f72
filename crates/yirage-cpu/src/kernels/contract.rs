//! Chains around a contraction.

use super::chain::{Each, further, program, sizes, strides};
use super::ways::elements;
use super::{BoundKernel, Kernel};
use crate::bind::{Binder, Run, Scratch, Viewed, ViewedOut};
use crate::general::contract::{self, Block, Contract, Product};
use crate::general::{self, Elem, Input, Output, Program, Sizes};
use crate::isa::Isa;
use crate::walk::Work;
use yirage_hal::HalError;
use yirage_ir::expr::Expr;
use yirage_ir::region::{Core, Elements};
use yirage_ir::{DType, Dim, Dims, RegionKind};
use yirage_plan::rules::OpRule;
use yirage_plan::{Sharing, Stage};

pub(super) const KERNEL: Kernel = Kernel {
    name: "cpu/contract@1",
    regions: &[RegionKind::Chain],
    rules: || ["contract", "map", "view"].map(|op| OpRule::new(op, vec![elements()])).into(),
    stages: &[Stage::always(Sharing::Drained)],
    scratch: true,
    bind,
};

/// A matrix of a batch as it is multiplied: elements of one operand, changed or not.
struct Side {
    matrix: Viewed,
    change: Option<Change>,
}

/// What becomes of elements that are at hand, and what else is read for it.
struct Change {
    program: Program,
    further: Vec<Viewed>,
}

struct ContractChain {
    batch: Vec<Dim>,
    m: Dim,
    k: Dim,
    n: Dim,
    sides: [Side; 2],
    after: Option<(Elem, Change)>,
    out: ViewedOut,
    /// Of each worker.
    scratch: Vec<Scratch>,
}

fn bind(binder: &mut Binder<'_>, n: usize) -> Result<Box<dyn BoundKernel>, HalError> {
    let node = binder.whole(n)?;
    let chain = node.chain()?;
    let Core::Contract(sides) = &chain.core else {
        return Err(HalError::Load(format!("{} computes contractions alone", KERNEL.name)));
    };
    let shape = &chain.after.shape;
    let (Some((&columns, outer)), Some(&k)) = (shape.split_last(), sides[0].shape.last()) else {
        return Err(HalError::Load("a contraction of what is no matrix".into()));
    };
    let Some((&m, batch)) = outer.split_last() else {
        return Err(HalError::Load("a contraction to what is no matrix".into()));
    };
    let side = |e: &Elements| -> Result<Side, HalError> {
        let e = batched(e, batch);
        let Each { program, reads } = Each::bind(&node, &e)?;
        let mut reads = reads.into_iter();
        let matrix = reads.next().ok_or_else(|| HalError::Load("a contraction of no input".into()))?;
        let change = (e.expr != Expr::input(0)).then(|| Change { program, further: reads.collect() });
        Ok(Side { matrix, change })
    };
    let sides = [side(&sides[0])?, side(&sides[1])?];
    let (reads, types) = further(&node, &chain.after, chain.core_dtype)?;
    let after = if chain.after.expr == Expr::input(0) {
        None
    } else {
        let result = chain.core_dtype.unwrap_or(DType::F32);
        let elem = Elem::try_from(result).map_err(|why| HalError::Load(why.to_string()))?;
        Some((elem, Change { program: program(&chain.after.expr, &types)?, further: reads }))
    };
    let bucket = node.bucket();
    let bytes = Contract::scratch_bytes(m.get(bucket).saturating_mul(count(batch, bucket)), columns.get(bucket));
    let out = node.written(&chain.out)?;
    let (batch, scratch) = (batch.to_vec(), binder.each_worker(bytes)?);
    Ok(Box::new(ContractChain { batch, m, k, n: columns, sides, after, out, scratch }))
}

fn count(batch: &[Dim], dims: &Dims) -> usize {
    batch.iter().fold(1usize, |n, dim| n.saturating_mul(dim.get(dims)))
}

/// A side with strides for all dimensions of the batch: it meets those that it does not have, or has once, again and
/// again.
fn batched(e: &Elements, batch: &[Dim]) -> Elements {
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

/// A change in one run, over the rows of all matrices of a batch.
struct Changing<'a> {
    change: &'a Change,
    run: &'a Run<'a>,
    batch: Sizes,
    rows: usize,
}

// SAFETY: what a run reads is shared by all workers; nothing is written through it.
unsafe impl Sync for Changing<'_> {}

impl contract::Program for Changing<'_> {
    unsafe fn run(&self, isa: Isa, block: Block, x: *mut f32, pitch: usize) {
        let columns = Sizes::new(&[block.columns]).unwrap_or_else(|why| unreachable!("columns of a block: {why}"));
        let one = strides(&[1]);
        for r in 0..block.rows {
            let here = x.wrapping_add(r * pitch).cast::<u8>();
            let mut inputs = vec![Input::at(here.cast_const(), Elem::F32, one)];
            inputs.extend(self.change.further.iter().map(|read| self.row(read, block.row + r, block.column)));
            let out = Output::at(here, Elem::F32, one);
            // SAFETY: the block's elements are the caller's; `Whole::read` has checked the others.
            unsafe { general::map(isa, &self.change.program, &columns, &inputs, out, 0..block.columns) };
        }
    }
}

impl Changing<'_> {
    /// Row `row`, counted through all matrices, from column `column` on.
    fn row(&self, read: &Viewed, row: usize, column: usize) -> Input {
        let [batch @ .., down, across] = read.strides() else { unreachable!("a matrix has two dimensions") };
        let (mut left, mut at) = (row / self.rows, (row % self.rows) as i64 * down + column as i64 * across);
        for (size, stride) in self.batch.as_slice().iter().zip(batch).rev() {
            at += (left % size) as i64 * stride;
            left /= size;
        }
        let first = read.first(self.run).wrapping_byte_offset(at as isize * read.elem().bytes() as isize);
        Input::at(first, read.elem(), strides(&[*across]))
    }
}

impl BoundKernel for ContractChain {
    unsafe fn run(&self, _: u32, run: &Run<'_>, work: Work<'_>) {
        let [m, k, n] = [self.m, self.k, self.n].map(|dim| run.size(dim));
        let batch = sizes(&self.batch, run.dims);
        let changing = |change, rows| Changing { change, run, batch, rows };
        let left = self.sides[0].change.as_ref().map(|change| changing(change, m));
        let right = self.sides[1].change.as_ref().map(|change| changing(change, k));
        let after = self.after.as_ref().map(|(elem, change)| (*elem, changing(change, m)));
        let matrix = |side: &Side| side.matrix.input(run, strides(side.matrix.strides()));
        let product = Product {
            batch: batch.as_slice(),
            m,
            k,
            n,
            a: matrix(&self.sides[0]),
            b: matrix(&self.sides[1]),
            out: self.out.output(run, strides(self.out.strides())),
            left: left.as_ref().map(|p| p as &dyn contract::Program),
            right: right.as_ref().map(|p| p as &dyn contract::Program),
            after: after.as_ref().map(|(elem, p)| (*elem, p as &dyn contract::Program)),
            workers: work.workers,
        };
        let call = match Contract::new(product) {
            Ok(call) => call,
            Err(why) => return run.fail(why),
        };
        // SAFETY: each worker has scratch of its own.
        let scratch = unsafe { self.scratch[work.worker].floats(run) };
        // SAFETY: `Whole::read` and `Whole::written` have checked that all elements exist; pieces are disjoint.
        work.drain(call.pieces(), |pieces| unsafe { contract::contract(run.isa, &call, pieces, scratch) });
    }
}
