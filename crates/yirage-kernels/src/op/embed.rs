//! `embed`: rows of a table of any stored format, chosen by ids; an id that is none gives a row of NaN.
//!
//! A thread makes a run of a row.

use super::output_words::words;
use super::{NodeView, OpKernels, integer_operands, stored_weights};
use crate::elements::{Elements, elements_per_word};
use crate::format::{StoredRows, WeightGroup};
use crate::grid::FlatGrid;
use crate::node_kernel::NodeKernel;
use crate::strided_index::{count, fixed};
use yirage_hal::HalError;
use yirage_ir::Dim;
use yirage_ir::op::{Embed, OpDef};
use yirage_kir::{KernelWriter, Register, ScalarType};
use yirage_plan::rules::OpRule;

pub(crate) const KERNELS: OpKernels = OpKernels {
    op: Embed::NAME,
    rules: || vec![OpRule::new(Embed::NAME, vec![stored_weights(), integer_operands()])],
    lower,
};

/// Threads of a group.
const THREADS: u32 = 64;

/// What a table's rows are read by.
struct RowLookup {
    table: StoredRows,
    ids: Elements,
    rows: u32,
    scale: f32,
}

fn lower(view: &NodeView<'_>) -> Result<Vec<NodeKernel>, HalError> {
    let &[rows, width] = &view.input(0).shape[..] else {
        return Err(HalError::Load(format!("a table of {}: a matrix wanted", view.input(0))));
    };
    let (rows, width) = (fixed(rows)?, fixed(width)?);
    // Rows of an odd number of elements share words; runs have no more than one element then.
    if width.is_multiple_of(elements_per_word(view.output(0).dtype)) {
        return Ok(vec![by_runs(view, rows, width)?]);
    }
    let kernel = words(&view.site, Embed::NAME, &view.dense_output(0)?, view.outs[0], |scope| {
        let (table, ids) = (scope.read(view.ins[0]), scope.read(view.ins[1]));
        let lookup = RowLookup::new(view, table, ids, rows, width)?;
        Ok(move |w: &mut KernelWriter, coordinates: &[Register]| {
            let nan = w.f32(f32::NAN);
            let made = w.variable(nan);
            let (id, there) = lookup.id(w, coordinates[0]);
            w.when(there, |w| {
                let run = lookup.run(w, id, coordinates[1]);
                let value = lookup.values(w, &run)[0][0];
                w.set(made, value);
            });
            w.get(made)
        })
    })?;
    Ok(vec![kernel])
}

fn by_runs(view: &NodeView<'_>, rows: u32, width: u32) -> Result<NodeKernel, HalError> {
    let mut scope = view.scope(Embed::NAME, THREADS);
    let (table, ids, output) = (scope.read(view.ins[0]), scope.read(view.ins[1]), scope.write(view.outs[0]));
    let lookup = RowLookup::new(view, table, ids, rows, width)?;
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
        let (id, there) = lookup.id(w, row);
        let before = w.mul(row, width);
        let inside = lookup.table.first(w, run);
        let first = w.add(before, inside);
        w.either(
            there,
            |w| {
                let run = lookup.run(w, id, run);
                for (values, (offset, _)) in lookup.values(w, &run).iter().zip(lookup.table.groups_of_run()) {
                    store(w, output, first, offset, values);
                }
            },
            |w| {
                let nan = w.f32(f32::NAN);
                for (offset, count) in lookup.table.groups_of_run() {
                    store(w, output, first, offset, &vec![nan; count as usize]);
                }
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
    fn new(view: &NodeView<'_>, table: Elements, ids: Elements, rows: u32, width: u32) -> Result<RowLookup, HalError> {
        let scale = view.op::<Embed>()?.scale.0;
        Ok(RowLookup { table: StoredRows::new(table, u64::from(rows), width)?, ids, rows, scale })
    }

    /// The id of a row of the output, and whether the table has it.
    fn id(&self, w: &mut KernelWriter, row: Register) -> (Register, Register) {
        let (id, rows) = (self.ids.load(w, row), w.u32(self.rows));
        // As a number without sign, one below 0 is too large.
        let id = w.bitcast(ScalarType::U32, id);
        (id, w.less(id, rows))
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
