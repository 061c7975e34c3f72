//! What becomes of products' results where they are at hand: an expression of them and of other values.

use super::chain::{further, program, sizes, strides};
use crate::bind::{Binder, CpuRunContext, ScratchBuffer, Viewed, ViewedOut, Whole};
use std::ops::Range;
use yirage_cpu_kernels::general::{BoundMap, Elem, ElementProgram, StridedInput, Strides};
use yirage_cpu_kernels::isa::Isa;
use yirage_cpu_kernels::linear::work_items::{MatmulWorkItem, SLICE};
use yirage_cpu_kernels::pack::PANEL_ROWS;
use yirage_hal::HalError;
use yirage_ir::Dim;
use yirage_ir::expr::Expr;
use yirage_ir::region::FusedChain;

/// The expression, its operands, and where products leave their results for it.
pub(super) struct Epilogue {
    program: ElementProgram,
    /// The elements of `[rows, width]` in their order, as the expression sees them.
    shape: Vec<Dim>,
    width: usize,
    /// What is read beside the results.
    further: Vec<Viewed>,
    out: ViewedOut,
    results: EpilogueStorage,
}

/// Memory of the results.
enum EpilogueStorage {
    /// The output's place.
    InPlace,
    /// All of one product.
    Buffer(ScratchBuffer),
    /// A block of some rows and columns of several products.
    Blocks(EpilogueBlocks),
}

/// Where products write their results in a run.
pub(super) enum EpilogueTarget<'a> {
    /// One product all of them, row after row.
    Whole(*mut f32),
    /// Several, a block at a time.
    Blocks(&'a EpilogueBlocks),
}

/// Most results of a product in a block: with as many of another, a part of a second-level cache.
const BLOCK: usize = 8 * PANEL_ROWS * SLICE;

/// Memory of blocks, one product's behind another's.
pub(super) struct EpilogueBlocks {
    /// Each worker's.
    memory: Vec<ScratchBuffer>,
    /// Results of a product.
    each: usize,
    panels: usize,
}

/// How a step of some rows is cut into blocks.
#[derive(Clone, Copy)]
pub(super) struct BlockSize {
    pub(super) rows: usize,
    pub(super) panels: usize,
}

impl BlockSize {
    /// Columns of a block.
    pub(super) fn columns(self) -> usize {
        self.panels * PANEL_ROWS
    }

    /// The blocks of some panels and tokens: all tokens with the same panels.
    pub(super) fn cut(self, part: &MatmulWorkItem) -> impl Iterator<Item = MatmulWorkItem> {
        let edges = |all: Range<usize>, step| {
            let end = all.end;
            all.step_by(step).map(move |first| first..end.min(first + step))
        };
        let (matrix, tokens) = (part.matrix, part.tokens.clone());
        let of_panels = move |panels: Range<usize>| {
            edges(tokens.clone(), self.rows).map(move |tokens| MatmulWorkItem {
                matrix,
                panels: panels.clone(),
                tokens,
            })
        };
        edges(part.panels.clone(), self.panels).flat_map(of_panels)
    }
}

impl EpilogueBlocks {
    /// For results of `rows` rows of `width` columns at most.
    fn new(binder: &mut Binder<'_>, products: usize, rows: usize, width: usize) -> Result<EpilogueBlocks, HalError> {
        let made = EpilogueBlocks::without_memory(rows, width);
        let bytes = made.each.saturating_mul(products).saturating_mul(size_of::<f32>());
        Ok(EpilogueBlocks { memory: binder.each_worker(bytes)?, ..made })
    }

    fn without_memory(rows: usize, width: usize) -> EpilogueBlocks {
        let panels = width.div_ceil(PANEL_ROWS);
        let each = rows.saturating_mul(panels).saturating_mul(PANEL_ROWS).min(BLOCK);
        EpilogueBlocks { memory: Vec::new(), each, panels }
    }

    /// Blocks of a step of `rows` rows, `most` panels wide at most. They are as high as there is room for, so that a panel
    /// meets many rows before that of another product takes its place in the cache.
    pub(super) fn size(&self, rows: usize, most: usize) -> BlockSize {
        let least = rows.clamp(1, SLICE);
        let panels = (self.each / (least * PANEL_ROWS)).min(self.panels).min(most).max(1);
        let room = self.each / (panels * PANEL_ROWS);
        BlockSize { rows: (room / SLICE * SLICE).max(least), panels }
    }

    /// Where a worker's products write the results of a block.
    pub(super) fn first(&self, run: &CpuRunContext<'_>, worker: usize, product: usize) -> *mut f32 {
        self.memory[worker].at(run, product * self.each * size_of::<f32>()).cast()
    }
}

impl Epilogue {
    /// Of the chain to an output whose products give `rows` of `width` floats; none where they leave them as they are.
    ///
    /// # Errors
    /// Operands that general kernels do not take, and a device that has no memory left.
    pub(super) fn bind(
        binder: &mut Binder<'_>,
        node: &Whole,
        output: usize,
        chain: &FusedChain,
        (rows, width): (Dim, usize),
    ) -> Result<Option<Epilogue>, HalError> {
        let products = chain.core.results();
        if products == 1 && chain.after.expr == Expr::input(0) && chain.out.is_dense() {
            return Ok(None);
        }
        let (further, types) = further(node, chain)?;
        let (out, shape) = (node.written(output, &chain.out)?, chain.after.shape.clone());
        let rows = rows.get(node.bucket());
        let results = if products > 1 {
            EpilogueStorage::Blocks(EpilogueBlocks::new(binder, products, rows, width)?)
        } else if out.elem() == Elem::F32 && chain.out.is_dense() {
            EpilogueStorage::InPlace
        } else {
            EpilogueStorage::Buffer(binder.scratch.take(rows.saturating_mul(width).saturating_mul(size_of::<f32>()))?)
        };
        let program = program(&chain.after.expr, &types)?;
        Ok(Some(Epilogue { program, shape, width, further, out, results }))
    }

    /// Where products write their results.
    pub(super) fn target(&self, run: &CpuRunContext<'_>) -> EpilogueTarget<'_> {
        match &self.results {
            EpilogueStorage::InPlace => EpilogueTarget::Whole(self.out.first(run).cast()),
            EpilogueStorage::Buffer(scratch) => EpilogueTarget::Whole(scratch.at(run, 0).cast()),
            EpilogueStorage::Blocks(blocks) => EpilogueTarget::Blocks(blocks),
        }
    }

    /// As it is in a run, with results whose rows of a product are `stride` apart.
    pub(super) fn ready(&self, run: &CpuRunContext<'_>, products: usize, stride: usize) -> BoundEpilogue<'_> {
        let sizes = sizes(&self.shape, run.dims);
        let results = match self.target(run) {
            EpilogueTarget::Whole(first) => {
                StridedInput::at(first.cast_const().cast(), Elem::F32, Strides::dense(&sizes))
            }
            // `yirage_ir` has checked that several products are read as they are: as rows of columns.
            EpilogueTarget::Blocks(_) => StridedInput::at(std::ptr::null(), Elem::F32, strides(&[stride as i64, 1])),
        };
        let further = self.further.iter().map(|read| read.input(run, strides(read.strides())));
        let inputs: Vec<StridedInput> = std::iter::repeat_n(results, products).chain(further).collect();
        let out = self.out.output(run, strides(self.out.strides()));
        BoundEpilogue { map: BoundMap::new(&self.program, &sizes, &inputs, out), width: self.width }
    }
}

/// An epilogue with the operands of a run.
pub(super) struct BoundEpilogue<'a> {
    map: BoundMap<'a>,
    width: usize,
}

impl BoundEpilogue<'_> {
    /// The output's elements of these rows and columns; `first` are the addresses that results of row 0 and column 0 have
    /// where they lie in blocks.
    ///
    /// # Safety
    /// The results of these rows and columns are there, and nobody else uses the output's elements of them meanwhile.
    pub(super) unsafe fn run(&self, isa: Isa, rows: Range<usize>, columns: Range<usize>, first: &[*const u8]) {
        let first_row = rows.start * self.width + columns.start..rows.start * self.width + columns.end;
        // SAFETY: `Whole::read` and `Whole::written` have checked that all elements exist, and the results have a place
        // for each; the caller gives the rest.
        unsafe { self.map.run_rows(isa, first_row, rows.len(), self.width, first) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever a step's rows are, of those that were planned for: a block has room, and blocks are all of a part.
    #[test]
    fn blocks_have_room_and_meet_each_element_once() {
        for (most, width) in [(1, 1), (1, 8960), (16, 4864), (40, 64), (512, 600), (512, 151_936), (2048, 8960)] {
            let blocks = EpilogueBlocks::without_memory(most, width);
            for rows in [1, 2, 15, 16, 17, 63, 64, 65, 127, most].into_iter().filter(|rows| *rows <= most) {
                for together in [0, 1, 3, usize::MAX] {
                    let size = blocks.size(rows, together);
                    assert!(size.rows * size.columns() <= blocks.each, "{rows} of {most} rows of {width}");
                    let part =
                        MatmulWorkItem { matrix: 3, panels: 1..width.div_ceil(PANEL_ROWS).min(40), tokens: 0..rows };
                    let mut seen = vec![0; 40 * rows];
                    for block in size.cut(&part) {
                        assert!(block.panels.len() <= size.panels && block.tokens.len() <= size.rows);
                        assert!(block.tokens.start.is_multiple_of(SLICE) && block.matrix == 3);
                        for (panel, token) in block.panels.flat_map(|p| block.tokens.clone().map(move |t| (p, t))) {
                            seen[panel * rows + token] += 1;
                        }
                    }
                    let inside = part.panels.start * rows..part.panels.end.max(1) * rows;
                    assert!(seen.iter().enumerate().all(|(at, n)| *n == i32::from(inside.contains(&at))));
                }
            }
        }
    }
}
