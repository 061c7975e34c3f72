//! What becomes of a product's results where they are at hand: an expression of them and of other values.

use super::chain::{further, program, sizes, strides};
use crate::bind::{Binder, Run, Scratch, Viewed, ViewedOut, Whole};
use crate::general::{Elem, Input, Map, Program, Strides};
use crate::isa::Isa;
use std::ops::Range;
use yirage_hal::HalError;
use yirage_ir::Dim;
use yirage_ir::expr::Expr;
use yirage_ir::region::Chain;

/// The expression, its operands, and where the product leaves its results for it.
pub(super) struct Epilogue {
    program: Program,
    /// The elements of `[rows, width]` in their order, as the expression sees them.
    shape: Vec<Dim>,
    width: usize,
    /// What is read beside the results.
    further: Vec<Viewed>,
    out: ViewedOut,
    /// Memory of the results; none where they lie in the output's place.
    held: Option<Scratch>,
}

impl Epilogue {
    /// Of the chain to an output whose product gives `rows` of `width` floats; none where it leaves them as they are.
    ///
    /// # Errors
    /// Operands that general kernels do not take, and a device that has no memory left.
    pub(super) fn bind(
        binder: &mut Binder<'_>,
        node: &Whole,
        output: usize,
        chain: &Chain,
        (rows, width): (Dim, usize),
    ) -> Result<Option<Epilogue>, HalError> {
        if chain.after.expr == Expr::input(0) && chain.out.is_dense() {
            return Ok(None);
        }
        let (further, types) = further(node, &chain.after, chain.core_dtype)?;
        let (out, shape) = (node.written(output, &chain.out)?, chain.after.shape.clone());
        let in_place = out.elem() == Elem::F32 && chain.out.is_dense();
        let held = if in_place {
            None
        } else {
            let elems = rows.get(node.bucket()).saturating_mul(width);
            Some(binder.scratch.take(elems.saturating_mul(size_of::<f32>()))?)
        };
        let program = program(&chain.after.expr, &types)?;
        Ok(Some(Epilogue { program, shape, width, further, out, held }))
    }

    /// Where the product writes its results, row after row.
    pub(super) fn results(&self, run: &Run<'_>) -> *mut f32 {
        match &self.held {
            Some(scratch) => scratch.at(run, 0).cast(),
            None => self.out.first(run).cast(),
        }
    }

    /// As it is in a run.
    pub(super) fn ready(&self, run: &Run<'_>) -> Ready<'_> {
        let sizes = sizes(&self.shape, run.dims);
        let results = Input::at(self.results(run).cast_const().cast(), Elem::F32, Strides::dense(&sizes));
        let further = self.further.iter().map(|read| read.input(run, strides(read.strides())));
        let inputs: Vec<Input> = std::iter::once(results).chain(further).collect();
        let out = self.out.output(run, strides(self.out.strides()));
        Ready { map: Map::new(&self.program, &sizes, &inputs, out), width: self.width }
    }
}

/// An epilogue with the operands of a run.
pub(super) struct Ready<'a> {
    map: Map<'a>,
    width: usize,
}

impl Ready<'_> {
    /// The output's elements of these rows and columns.
    ///
    /// # Safety
    /// The results of these rows and columns are there, and nobody else uses the output's elements of them meanwhile.
    pub(super) unsafe fn run(&self, isa: Isa, rows: Range<usize>, columns: Range<usize>) {
        for row in rows {
            let first = row * self.width;
            // SAFETY: `Whole::read` and `Whole::written` have checked that all elements exist, and the results have a
            // place for each; the caller gives the rest.
            unsafe { self.map.run(isa, first + columns.start..first + columns.end) };
        }
    }
}
