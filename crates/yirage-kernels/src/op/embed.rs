//! `embed`: rows of a table of any stored format, chosen by ids; an id that is none gives a row of NaN.
//!
//! A thread makes a run of a row. A table that is larger than a binding is bound in parts, one launch each: a launch makes the
//! rows whose ids are in its part, and the first one also those of ids that are none.

use super::output_words::{PartElement, words, words_in_parts};
use super::{NodeView, OpKernels, integer_operands, weights_in_parts};
use crate::elements::{Elements, elements_per_word};
use crate::format::{StoredRows, WeightGroup};
use crate::grid::FlatGrid;
use crate::node_kernel::NodeKernel;
use crate::scope::KernelScope;
use crate::strided_index::{count, fixed};
use std::ops::Range;
use yirage_hal::HalError;
use yirage_ir::Dim;
use yirage_ir::op::{Embed, OpDef};
use yirage_kir::{KernelWriter, Register, ScalarType, UnaryFunction};
use yirage_plan::rules::OpRule;

pub(crate) const KERNELS: OpKernels = OpKernels {
    op: Embed::NAME,
    rules: || vec![OpRule::new(Embed::NAME, vec![weights_in_parts(), integer_operands()])],
    lower,
};

/// Threads of a group.
const THREADS: u32 = 64;

/// What a table's rows are read by.
struct RowLookup {
    table: StoredRows,
    ids: Elements,
    /// Rows of the table.
    all: u32,
    /// Those that are bound.
    part: Range<u32>,
    scale: f32,
}

/// A row that is asked for.
struct WantedRow {
    /// Which of those that are bound.
    row: Register,
    /// Whether it is one of them.
    is_bound: Register,
    /// Of a part that is not all of the table, whether the table has it.
    there: Option<Register>,
}

fn lower(view: &NodeView<'_>) -> Result<Vec<NodeKernel>, HalError> {
    let &[rows, width] = &view.input(0).shape[..] else {
        return Err(HalError::Load(format!("a table of {}: a matrix wanted", view.input(0))));
    };
    let (rows, width) = (fixed(rows)?, fixed(width)?);
    // Rows of an odd number of elements share words; runs have no more than one element then.
    let whole_words = width.is_multiple_of(elements_per_word(view.output(0).dtype));
    let kernel = |part: Range<u32>| {
        if whole_words { by_runs(view, part, rows, width) } else { by_words(view, part, rows, width) }
    };
    view.site.parts(&[view.input(0)])?.ranges().map(kernel).collect()
}

fn by_words(view: &NodeView<'_>, part: Range<u32>, rows: u32, width: u32) -> Result<NodeKernel, HalError> {
    let (output, is_whole) = (view.dense_output(0)?, part.len() == rows as usize);
    if is_whole {
        return words(&view.site, Embed::NAME, &output, view.outs[0], |scope| {
            let lookup = RowLookup::new(view, scope, part, rows, width)?;
            Ok(move |w: &mut KernelWriter, coordinates: &[Register]| lookup.element(w, coordinates).value)
        });
    }
    words_in_parts(&view.site, Embed::NAME, &output, view.outs[0], |scope| {
        let lookup = RowLookup::new(view, scope, part, rows, width)?;
        Ok(move |w: &mut KernelWriter, coordinates: &[Register]| lookup.element(w, coordinates))
    })
}

fn by_runs(view: &NodeView<'_>, part: Range<u32>, rows: u32, width: u32) -> Result<NodeKernel, HalError> {
    let mut scope = view.scope(Embed::NAME, THREADS);
    let lookup = RowLookup::new(view, &mut scope, part, rows, width)?;
    let output = scope.write(view.outs[0]);
    let runs = lookup.table.runs();
    let pieces = [view.output(0).shape[0], Dim::Const(runs)];
    let grid = FlatGrid::of(&pieces, 1, THREADS, &view.site.bucket)?;
    let pieces = count(&mut scope, &pieces);
    let w = &mut scope.w;
    let (group, per_group, thread, step) = (w.group(0), w.u32(grid.per_group), w.thread(), w.u32(THREADS));
    let first = w.mul(group, per_group);
    let end = w.add(first, per_group);
    let (from, to) = (w.add(first, thread), w.min(end, pieces));
    w.for_each(from, to, step, |w, piece| {
        let (runs, width) = (w.u32(runs), w.u32(width));
        let (row, run) = (w.div(piece, runs), w.rem(piece, runs));
        let wanted = lookup.wanted(w, row);
        let before = w.mul(row, width);
        let inside = lookup.table.first(w, run);
        let first = w.add(before, inside);
        let none = |w: &mut KernelWriter| {
            let nan = w.f32(f32::NAN);
            for (offset, count) in lookup.table.groups_of_run() {
                store(w, output, first, offset, &vec![nan; count as usize]);
            }
        };
        w.either(
            wanted.is_bound,
            |w| {
                let run = lookup.run(w, wanted.row, run);
                for (values, (offset, _)) in lookup.values(w, &run).iter().zip(lookup.table.groups_of_run()) {
                    store(w, output, first, offset, values);
                }
            },
            |w| match (wanted.there, lookup.part.start) {
                (None, _) => none(w),
                (Some(there), 0) => {
                    let nowhere = w.unary(UnaryFunction::Not, there);
                    w.when(nowhere, none);
                }
                (Some(_), _) => {}
            },
        );
    });
    Ok(scope.finish(grid.axes(), 0))
}

/// Writes neighbouring elements that fill words.
fn store(w: &mut KernelWriter, output: Elements, first: Register, offset: u32, values: &[Register]) {
    let per_word = elements_per_word(output.dtype);
    let per = w.u32(per_word);
    let word = w.div(first, per);
    for (number, values) in values.chunks(per_word as usize).enumerate() {
        let behind = w.u32(offset / per_word + number as u32);
        let at = w.add(word, behind);
        output.store_word(w, at, values);
    }
}

impl RowLookup {
    fn new(
        view: &NodeView<'_>,
        scope: &mut KernelScope<'_>,
        part: Range<u32>,
        all: u32,
        width: u32,
    ) -> Result<RowLookup, HalError> {
        let (table, ids) = (scope.read_rows(view.ins[0], part.clone()), scope.read(view.ins[1]));
        let scale = view.op::<Embed>()?.scale.0;
        Ok(RowLookup { table: StoredRows::new(table, part.len() as u64, width)?, ids, all, part, scale })
    }

    /// What a row of the output is a copy of.
    fn wanted(&self, w: &mut KernelWriter, row: Register) -> WantedRow {
        let (id, all) = (self.ids.load(w, row), w.u32(self.all));
        // As a number without sign, one below 0 is too large.
        let id = w.bitcast(ScalarType::U32, id);
        let there = w.less(id, all);
        if self.part.len() == self.all as usize {
            return WantedRow { row: id, is_bound: there, there: None };
        }
        let (start, count) = (w.u32(self.part.start), w.u32(self.part.end - self.part.start));
        // One before the part is too large as well.
        let row = w.sub(id, start);
        WantedRow { row, is_bound: w.less(row, count), there: Some(there) }
    }

    /// An element of the output, which is one of a run of its own. The first part's are also those of ids that are none.
    fn element(&self, w: &mut KernelWriter, coordinates: &[Register]) -> PartElement {
        let nan = w.f32(f32::NAN);
        let made = w.variable(nan);
        let wanted = self.wanted(w, coordinates[0]);
        w.when(wanted.is_bound, |w| {
            let run = self.run(w, wanted.row, coordinates[1]);
            let value = self.values(w, &run)[0][0];
            w.set(made, value);
        });
        let is_own = match wanted.there.filter(|_| self.part.start == 0) {
            Some(there) => {
                let nowhere = w.unary(UnaryFunction::Not, there);
                w.or(wanted.is_bound, nowhere)
            }
            None => wanted.is_bound,
        };
        PartElement { value: w.get(made), is_own }
    }

    /// A run of a row of the table.
    fn run(&self, w: &mut KernelWriter, id: Register, run: Register) -> Vec<WeightGroup> {
        let row = self.table.row(w, id);
        self.table.decode(w, row, run)
    }

    /// The elements of the groups of a run.
    fn values(&self, w: &mut KernelWriter, groups: &[WeightGroup]) -> Vec<Vec<Register>> {
        let scale = w.f32(self.scale);
        let values = |group: &WeightGroup| {
            let weights = group.weights(w);
            weights.into_iter().map(|x| if self.scale == 1.0 { x } else { w.mul(x, scale) }).collect()
        };
        groups.iter().map(values).collect()
    }
}
