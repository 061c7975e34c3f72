//! `top_k`: a group finds the best elements of a row: those above a bound that is found bit by bit, and the place of each.

use super::output_words::WordRange;
use super::row_group::{GroupWords, THREADS, order_key};
use super::row_prefix::{KeyedRow, RowPrefix};
use super::{NodeView, OpKernels, plain_operands};
use crate::elements::Elements;
use crate::grid::FlatGrid;
use crate::math;
use crate::node_kernel::NodeKernel;
use crate::strided_index::fixed;
use yirage_hal::HalError;
use yirage_ir::op::{OpDef, TopK};
use yirage_ir::{DType, Type};
use yirage_kir::{KernelMemory, KernelWriter, Register, ScalarType, UnaryFunction};
use yirage_plan::rules::OpRule;
use yirage_plan::{NumberTest, Predicate, Quantity};

pub(crate) const KERNELS: OpKernels = OpKernels { op: TopK::NAME, rules, lower };

/// Elements whose places are found by comparing each with each.
const MOST_SORTED: u32 = 8192;

fn rules() -> Vec<OpRule> {
    let rule = || OpRule::new(TopK::NAME, vec![plain_operands()]);
    let few = Predicate::Number(Quantity::Attribute("k".into()), NumberTest::AtMost(MOST_SORTED));
    vec![rule().when("sorted", false), rule().when("sorted", true).wanting(few)]
}

fn lower(view: &NodeView<'_>) -> Result<Vec<NodeKernel>, HalError> {
    let op = view.op::<TopK>()?;
    let &[rows, width] = &view.input(0).shape[..] else {
        return Err(HalError::Load(format!("rows of {}: a matrix wanted", view.input(0))));
    };
    let width = fixed(width)?;
    let mut scope = view.scope("top_k", THREADS);
    let grid = FlatGrid::of(&[rows], 1, 1, &view.site.bucket)?;
    let count = scope.size(rows);
    let mut workspace = view.workspace;
    let found = Type { dtype: DType::U32, ..Type::rows(rows, op.k) };
    let mut temporary = || Ok::<_, HalError>(scope.update(workspace.take(&found, &view.site.bucket)?));
    let (keys, indices) = (temporary()?, temporary()?);
    let choice = Choice {
        op,
        width,
        x: scope.read(view.ins[0]),
        keys,
        indices,
        values: scope.write(view.outs[0]),
        places: scope.write(view.outs[1]),
        counts: scope.w.shared(ScalarType::U32, THREADS),
        words: GroupWords::new(&mut scope.w),
    };
    let w = &mut scope.w;
    let (range, one) = (WordRange::new(w, &grid, count, 1), w.u32(1));
    w.for_each(range.first, range.end, one, |w, row| choice.row(w, row));
    Ok(vec![scope.finish(grid.axes(), workspace.bytes())])
}

/// What a kernel reads and writes.
struct Choice<'a> {
    op: &'a TopK,
    width: u32,
    x: Elements,
    /// Of each row the keys of what was chosen, in the order of indices.
    keys: Elements,
    /// And their indices.
    indices: Elements,
    values: Elements,
    places: Elements,
    counts: KernelMemory,
    words: GroupWords,
}

impl Choice<'_> {
    fn row(&self, w: &mut KernelWriter, row: Register) {
        let (width, k) = (w.u32(self.width), w.u32(self.op.k));
        let (first, out) = (w.mul(row, width), w.mul(row, k));
        let keyed = KeyedRow {
            words: &self.words,
            width: self.width,
            end: width,
            key: |w: &mut KernelWriter, index: Register| {
                let at = w.add(first, index);
                let x = self.x.load(w, at);
                self.key(w, x)
            },
        };
        let (one, zero) = (w.u32(1), w.u32(0));
        let best: RowPrefix = keyed.shortest_prefix(w, [k, zero], |_, _, _| [one, zero]);
        keyed.compact(
            w,
            self.counts,
            |w, key, index| best.has(w, key, index),
            |w, place, index, key| {
                let at = w.add(out, place);
                self.keys.store(w, at, key);
                self.indices.store(w, at, index);
            },
        );
        let (thread, threads) = (w.thread(), w.u32(THREADS));
        w.for_each(thread, k, threads, |w, chosen| {
            let at = w.add(out, chosen);
            let index = self.indices.load(w, at);
            let place = if self.op.sorted { self.rank(w, out, chosen) } else { chosen };
            let (from, to) = (w.add(first, index), w.add(out, place));
            let value = self.x.load(w, from);
            self.values.store(w, to, value);
            self.places.store(w, to, index);
        });
    }

    /// The order of ranks as that of numbers, best last: NaN is larger than everything. No key is 0.
    fn key(&self, w: &mut KernelWriter, x: Register) -> Register {
        let (is_nan, most) = (math::is_nan(w, x), w.u32(u32::MAX));
        let key = order_key(w, x);
        let key = w.select(is_nan, most, key);
        if self.op.largest {
            return key;
        }
        let (turned, one) = (w.unary(UnaryFunction::Not, key), w.u32(1));
        w.max(turned, one)
    }

    /// How many of what was chosen from a row stand before one of it.
    fn rank(&self, w: &mut KernelWriter, out: Register, chosen: Register) -> Register {
        let (zero, one, k) = (w.u32(0), w.u32(1), w.u32(self.op.k));
        let at = w.add(out, chosen);
        let (own, rank) = (self.keys.load(w, at), w.variable(zero));
        w.for_each(zero, k, one, |w, other| {
            let at = w.add(out, other);
            let key = self.keys.load(w, at);
            let (better, equal, early) = (w.less(own, key), w.equal(own, key), w.less(other, chosen));
            let tie = w.and(equal, early);
            let before = w.or(better, tie);
            let before = w.convert(ScalarType::U32, before);
            let so_far = w.get(rank);
            let next = w.add(so_far, before);
            w.set(rank, next);
        });
        w.get(rank)
    }
}
