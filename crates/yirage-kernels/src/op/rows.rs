//! Rows: neighbouring chains over one dimension of rows as one kernel, a group a row.
//!
//! A group makes all chains of its row, one after the other, with a barrier in between; what one of them reads of another lies
//! in the same row, which is checked. So a normalisation is one launch, whatever its general form has in it.

use super::output_words::ResultOrder;
use super::placed_chain::{ChainReads, PlacedChain, core_result, value};
use super::reduce::GroupReduction;
use super::{NodePart, PlanSite, chain};
use crate::elements::{Elements, elements_per_word};
use crate::grid::FlatGrid;
use crate::node_kernel::NodeKernel;
use crate::scope::KernelScope;
use yirage_hal::HalError;
use yirage_ir::op::PARTS;
use yirage_ir::region::{ChainRead, Core};
use yirage_ir::{Dim, Dims, Strided, Sym};
use yirage_kir::{KernelWriter, Register};

/// Threads of a group: as many as a reduction has partial results.
const THREADS: u32 = PARTS as u32;

/// The kernels of parts, with neighbours joined where that can be.
pub(crate) fn joined(site: &PlanSite<'_>, parts: Vec<NodePart>) -> Result<Vec<NodeKernel>, HalError> {
    let mut kernels = Vec::new();
    let mut open: Vec<RowChain> = Vec::new();
    for part in parts {
        match part {
            NodePart::Chain(placed) => match RowChain::of(&placed) {
                Some(row) if open.iter().all(|before| row.may_follow(before)) => open.push(row),
                Some(row) => {
                    close(site, &mut open, &mut kernels)?;
                    open.push(row);
                }
                None => {
                    close(site, &mut open, &mut kernels)?;
                    kernels.push(chain::kernel(site, &placed)?);
                }
            },
            NodePart::Kernel(kernel) => {
                close(site, &mut open, &mut kernels)?;
                kernels.push(*kernel);
            }
        }
    }
    close(site, &mut open, &mut kernels)?;
    Ok(kernels)
}

fn close(site: &PlanSite<'_>, open: &mut Vec<RowChain>, kernels: &mut Vec<NodeKernel>) -> Result<(), HalError> {
    let chains = std::mem::take(open);
    match &chains[..] {
        [] => {}
        [alone] => kernels.push(chain::kernel(site, &alone.placed)?),
        several => kernels.push(kernel(site, several)?),
    }
    Ok(())
}

/// A chain whose output is rows of a step.
struct RowChain {
    placed: PlacedChain,
    /// The dimension of the rows.
    rows: Sym,
    /// Which dimension of the chain's results it is.
    axis: usize,
    /// Elements of a row of the output.
    width: u32,
}

impl RowChain {
    /// The chain as one of rows; none where its output is none, or where neighbouring rows share words.
    fn of(placed: &PlacedChain) -> Option<RowChain> {
        let chain = &placed.chain;
        match &chain.core {
            Core::None => {}
            // The rows are not what is reduced.
            Core::Reduce(op, of) if !op.axes.0.iter().any(|&axis| of.shape[axis as usize].as_const().is_none()) => {}
            _ => return None,
        }
        let axis = chain.out.shape.iter().position(|dim| dim.as_const().is_none())?;
        let Dim::Sym(rows) = chain.out.shape[axis] else { return None };
        let width = u32::try_from(chain.out.strides[axis]).ok()?;
        let inner: Option<u32> =
            chain.out.shape.iter().try_fold(1u32, |n, dim| n.checked_mul(dim.as_const().map_or(1, |n| n as u32)));
        let whole_words = width.is_multiple_of(elements_per_word(chain.after.dtype));
        (inner == Some(width) && whole_words && chain.out.offset == 0).then(|| RowChain {
            placed: placed.clone(),
            rows,
            axis,
            width,
        })
    }

    /// Whether a group that has made a row of `before` may go on with its row of this one.
    fn may_follow(&self, before: &RowChain) -> bool {
        let chain = &self.placed.chain;
        let own_row = |read: &ChainRead, axis: usize| {
            self.placed.ins[read.input] != before.placed.out || lies_in_row(&read.at, axis, before.width)
        };
        let after = chain.after.reads.iter().all(|read| own_row(read, self.axis));
        let inside = match &chain.core {
            Core::Reduce(_, of) => {
                let axis = of.shape.iter().position(|dim| dim.as_const().is_none());
                of.reads.iter().all(|read| axis.is_some_and(|axis| own_row(read, axis)))
            }
            _ => true,
        };
        self.rows == before.rows && after && inside && self.placed.out != before.placed.out
    }
}

/// Whether elements of a value of rows of this width are in row t, for all coordinates of which number `axis` is t.
fn lies_in_row(at: &Strided, axis: usize, width: u32) -> bool {
    let mut row = at.clone();
    row.shape[axis] = Dim::Const(1);
    let inside = row.reach(&Dims::default()).is_some_and(|(low, high)| low >= 0 && high < i64::from(width));
    inside && at.strides[axis] == i64::from(width)
}

/// The kernel of several chains.
fn kernel(site: &PlanSite<'_>, chains: &[RowChain]) -> Result<NodeKernel, HalError> {
    let mut scope = site.scope("rows", THREADS);
    let rows = Dim::Sym(chains[0].rows);
    let grid = FlatGrid::of(&[rows], 1, 1, &site.bucket)?;
    let all = scope.size(rows);
    let stages = chains.iter().map(|chain| RowStage::new(&mut scope, chain)).collect::<Result<Vec<_>, _>>()?;
    let w = &mut scope.w;
    let (group, per_group, one) = (w.group(0), w.u32(grid.per_group), w.u32(1));
    let first = w.mul(group, per_group);
    let end = w.add(first, per_group);
    let end = w.min(end, all);
    w.for_each(first, end, one, |w, row| {
        for (at, stage) in stages.iter().enumerate() {
            if at > 0 {
                w.barrier();
            }
            stage.write(w, row, all);
        }
    });
    Ok(scope.finish(grid.axes(), 0))
}

/// A chain in a kernel of rows.
struct RowStage<'a> {
    row: &'a RowChain,
    results: ResultOrder,
    after: ChainReads,
    reduction: Option<GroupReduction<'a>>,
    output: Elements,
}

impl<'a> RowStage<'a> {
    fn new(scope: &mut KernelScope<'_>, row: &'a RowChain) -> Result<RowStage<'a>, HalError> {
        let (placed, chain) = (&row.placed, &row.placed.chain);
        let reduction = match &chain.core {
            Core::Reduce(op, of) => Some(GroupReduction::new(scope, placed, op, of)?),
            _ => None,
        };
        let after = placed.reads(scope, &chain.after.reads);
        Ok(RowStage { row, results: ResultOrder::new(&chain.out)?, after, reduction, output: scope.write(placed.out) })
    }

    /// Makes a row of the output.
    fn write(&self, w: &mut KernelWriter, row: Register, rows: Register) {
        let per_word = elements_per_word(self.output.dtype);
        let words = w.u32(self.row.width / per_word);
        let first = w.mul(row, words);
        let end = w.add(first, words);
        let width = w.u32(self.row.width);
        let elements = w.mul(rows, width);
        let (thread, zero, one, threads) = (w.thread(), w.u32(0), w.u32(1), w.u32(THREADS));
        let make = |w: &mut KernelWriter, word: Register| -> Vec<Register> {
            let element = |part| {
                let coordinates = self.results.coordinates(w, word, part, per_word, elements);
                let result = self.reduction.as_ref().map(|reduction| {
                    let result = reduction.result(w, &coordinates);
                    core_result(w, &self.row.placed.chain, result)
                });
                let results: Vec<Register> = result.into_iter().collect();
                value(w, &self.row.placed.chain.after, &results, &self.after, &coordinates)
            };
            (0..per_word).map(element).collect()
        };
        if self.reduction.is_none() {
            let from = w.add(first, thread);
            w.for_each(from, end, threads, |w, word| {
                let made = make(w, word);
                self.output.store_word(w, word, &made);
            });
            return;
        }
        // A reduction is made by all threads together, one result after the other.
        w.for_each(first, end, one, |w, word| {
            let made = make(w, word);
            let is_first = w.equal(thread, zero);
            w.when(is_first, |w| self.output.store_word(w, word, &made));
        });
    }
}
