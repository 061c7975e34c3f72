//! Products with weights, and what becomes of their results: one kernel a chain, with all of the chain's products in it.
//!
//! A thread makes neighbouring columns of one row, or of several rows that it decodes each weight once for. Each output is a
//! sum over segments of a fixed length in ascending order, and a segment one over runs of weights, so that no byte depends on
//! the number of rows. Weights that are plain floats have one segment, in which products are added one after the other: so a
//! contraction gives the same bytes whether it is recognised as a product with a weight or not. All threads of a group read the
//! same activations at the same time. Where there are few results, several threads share the segments of each.
//!
//! A weight that is larger than a binding is bound in parts, one launch each, which makes the results of the rows, or of the
//! experts, that it is bound to.

mod along_k;
mod native;
mod products;

use super::NodeView;
use super::chosen_expert::ChosenExpert;
use super::output_words::{PartElement, words, words_in_parts};
use super::placed_chain::{ChainReads, PlacedChain, value};
use crate::elements::{Elements, elements_per_word};
use crate::expression::cast;
use crate::format::StoredRows;
use crate::grid::RowGrid;
use crate::node_kernel::NodeKernel;
use crate::scope::KernelScope;
use crate::strided_index::{DenseShape, element, fixed};
use along_k::ThreadsAlongK;
use products::{add_products, inputs_of_run};
use std::ops::Range;
use yirage_hal::HalError;
use yirage_ir::region::{ChainMatmul, Core};
use yirage_ir::{DType, Dim, Op, Strided, Type};
use yirage_kir::{KernelWriter, Register, Variable};
use yirage_plan::ValueParts;

/// Threads of a group.
const THREADS: u32 = 32;

/// Columns of a thread, which share what is read of the input.
const COLUMNS: u32 = 4;

/// Rows of a thread, which share what is decoded.
const ROWS: u32 = 4;

/// Elements whose products are added before they are added to others: a block of the formats with the largest ones.
const SEGMENT: u32 = 256;

/// The kernels of a product, or of a region of them.
pub(crate) fn lower(view: &NodeView<'_>) -> Result<Vec<NodeKernel>, HalError> {
    if let Some(products) = view.site.products {
        return native::lower(view, products);
    }
    let mut made = Vec::new();
    for chain in &PlacedChain::of(view)? {
        for part in ChainKernel::parts(view, chain)?.ranges() {
            made.push(ChainKernel::new(view, chain, part)?.kernel()?);
        }
    }
    Ok(made)
}

/// Which row of the weight and which part of the input a result is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Matching {
    /// Each group of columns meets its own part of the input's row.
    Groups { columns: u32 },
    /// A row of results is that of one of a token's experts, with columns of its own.
    Experts { count: u32, shared: bool },
}

/// The sizes that the products of a chain have in common.
#[derive(Clone, Copy, Debug)]
struct ProductSizes {
    /// Rows of the input.
    rows: Dim,
    /// Rows of results for each of them.
    per_row: u32,
    /// Columns of a row of results.
    columns: u32,
    /// The first dimension of a weight: its rows, or the experts that have rows.
    outermost: u32,
    /// Elements that a result is a sum over.
    k: u32,
    /// Elements of a row of the input.
    width: u32,
    matching: Matching,
}

impl ProductSizes {
    fn of(op: &Op, x: &Type, weight: &Type) -> Result<ProductSizes, HalError> {
        let wrong = || HalError::Load(format!("`{}` of {x} and {weight}", op.name()));
        let &[rows, width] = &x.shape[..] else { return Err(wrong()) };
        let width = fixed(width)?;
        let sizes = weight.shape.iter().map(|&dim| fixed(dim)).collect::<Result<Vec<u32>, _>>()?;
        match (op, &sizes[..]) {
            (Op::Linear(op), &[columns, k]) => {
                let matching = Matching::Groups { columns: columns / op.groups };
                Ok(ProductSizes { rows, per_row: 1, columns, outermost: columns, k, width, matching })
            }
            (Op::ExpertLinear(op), &[count, columns, k]) => {
                let matching = Matching::Experts { count, shared: op.shared };
                Ok(ProductSizes { rows, per_row: op.top_k, columns, outermost: count, k, width, matching })
            }
            _ => Err(wrong()),
        }
    }

    /// Whether neighbouring columns, from a multiple of so many on, meet the same part of the input.
    fn columns_together(&self, wanted: u32) -> bool {
        match self.matching {
            Matching::Groups { columns } => columns == self.columns || columns.is_multiple_of(wanted),
            Matching::Experts { .. } => true,
        }
    }
}

/// A chain around products with weights.
struct ChainKernel<'a> {
    view: &'a NodeView<'a>,
    placed: &'a PlacedChain,
    products: &'a [ChainMatmul],
    sizes: ProductSizes,
    /// What of the weights' first dimension is bound.
    part: Range<u32>,
    /// Threads that share the segments of a result.
    along_k: u32,
    /// The type of the products' results.
    dtype: DType,
    /// The coordinates of a result.
    results: DenseShape,
}

/// A product in a kernel.
struct Product {
    weight: StoredRows,
    /// The experts of each row.
    chosen: Option<Elements>,
}

/// What a kernel reads.
struct Operands {
    x: Elements,
    products: Vec<Product>,
    after: ChainReads,
}

/// What a thread makes at once, or with those that share its segments: these columns of these rows.
struct Tile<'t> {
    rows: &'t [Register],
    columns: &'t [Register],
    along_k: Option<&'t ThreadsAlongK>,
}

impl<'a> ChainKernel<'a> {
    /// The products of a chain.
    fn products(placed: &PlacedChain) -> Result<&[ChainMatmul], HalError> {
        match &placed.chain.core {
            Core::Matmuls(products) => Ok(products),
            _ => Err(HalError::Load("a chain without a product of weights".into())),
        }
    }

    /// The parts in which a chain's weights are bound.
    fn parts(view: &NodeView<'_>, placed: &PlacedChain) -> Result<ValueParts, HalError> {
        let products = Self::products(placed)?;
        let weights: Vec<&Type> = products.iter().map(|product| view.input(product.ins[1])).collect();
        let parts = view.site.parts(&weights)?;
        // A launch makes what it has all the weights of.
        let chosen = |product: &ChainMatmul| product.ins.get(2).map(|&at| placed.ins[at]);
        if !parts.is_whole() && products.iter().any(|product| chosen(product) != chosen(&products[0])) {
            return Err(HalError::Load("products of different experts, and weights larger than a binding".into()));
        }
        Ok(parts)
    }

    fn new(view: &'a NodeView<'a>, placed: &'a PlacedChain, part: Range<u32>) -> Result<ChainKernel<'a>, HalError> {
        let products = Self::products(placed)?;
        let first = products.first().ok_or_else(|| HalError::Load("a chain of no product".into()))?;
        let sizes = ProductSizes::of(&first.op, view.input(first.ins[0]), view.input(first.ins[1]))?;
        let (dtype, results) = (placed.chain.core_dtype.unwrap_or(DType::F32), &placed.chain.after.shape);
        let mut kernel =
            ChainKernel { view, placed, products, sizes, part, along_k: 1, dtype, results: DenseShape::new(results)? };
        if kernel.has_segments() {
            kernel.along_k = along_k::count(&sizes, kernel.columns().len() as u32, &view.site.bucket, view.site.limits);
        }
        Ok(kernel)
    }

    /// Whether every result is a sum of segments, which all threads of a group come to at once.
    fn has_segments(&self) -> bool {
        let is_coded = |product: &ChainMatmul| match self.view.input(product.ins[1]).dtype {
            DType::Stored(format) => format.info().block > 1,
            _ => false,
        };
        let is_together = self.is_whole() || matches!(self.sizes.matching, Matching::Groups { .. });
        is_together && self.products.iter().all(is_coded)
    }

    /// Whether the weights are bound whole.
    fn is_whole(&self) -> bool {
        self.part.len() == self.sizes.outermost as usize
    }

    /// The columns that are made: of a product with experts all, of the experts that are bound.
    fn columns(&self) -> Range<u32> {
        match self.sizes.matching {
            Matching::Groups { .. } => self.part.clone(),
            Matching::Experts { .. } => 0..self.sizes.columns,
        }
    }

    fn kernel(&self) -> Result<NodeKernel, HalError> {
        match self.columns_of_a_thread() {
            Some(columns) => self.tiled(columns),
            None => self.word_by_word(),
        }
    }

    /// Columns whose results fill words of the output that no others are in; none where there are no such.
    fn columns_of_a_thread(&self) -> Option<u32> {
        let out = &self.placed.chain.out;
        let per_word = elements_per_word(self.placed.chain.after.dtype);
        let whole_words = |(at, (&stride, dim)): (usize, (&i64, &Dim))| {
            let last = at + 1 == out.shape.len();
            let size = dim.as_const().map_or(0, |n| n as i64);
            let per = i64::from(per_word);
            if last { stride == 1 && size % per == 0 } else { stride % per == 0 || size == 1 }
        };
        let words = per_word == 1
            || out.offset % i64::from(per_word) == 0 && out.strides.iter().zip(&out.shape).enumerate().all(whole_words);
        let mine = self.columns();
        let ends_words = mine.end == self.sizes.columns || mine.end.is_multiple_of(per_word);
        let together = |count: &u32| {
            let begins = count.is_multiple_of(per_word) && mine.start.is_multiple_of(*count);
            words && ends_words && begins && self.sizes.columns_together(*count)
        };
        let most = if self.along_k > 1 { COLUMNS / 2 } else { COLUMNS };
        [COLUMNS, 2, 1].into_iter().filter(|&count| count <= most).find(together)
    }

    fn operands(&self, scope: &mut KernelScope<'_>) -> Result<Operands, HalError> {
        let ins = &self.placed.ins;
        let x = scope.read(ins[self.products[0].ins[0]]);
        let product = |product: &ChainMatmul| {
            let weight = scope.read_rows(ins[product.ins[1]], self.part.clone());
            let rows_of_one = if product.ins.len() > 2 { self.sizes.columns } else { 1 };
            let rows = self.part.len() as u64 * u64::from(rows_of_one);
            let weight = StoredRows::new(weight, rows, self.sizes.k)?;
            Ok(Product { weight, chosen: product.ins.get(2).map(|&chosen| scope.read(ins[chosen])) })
        };
        let products = self.products.iter().map(product).collect::<Result<_, HalError>>()?;
        let after = self.placed.reads(scope, &self.placed.chain.after.reads);
        Ok(Operands { x, products, after })
    }

    /// Each word of the output by itself: where neighbours in the output are no neighbouring columns.
    fn word_by_word(&self) -> Result<NodeKernel, HalError> {
        let chain = &self.placed.chain;
        let lies = Strided::dense(&chain.after.shape);
        let lies = lies.ok_or_else(|| HalError::Load("results that are too many".into()))?;
        let place = move |w: &mut KernelWriter, coordinates: &[Register]| {
            let (at, columns) = (element(w, &lies, coordinates), w.u32(self.sizes.columns));
            (w.div(at, columns), w.rem(at, columns))
        };
        let result = |w: &mut KernelWriter, operands: &Operands, row: Register, column: Register, at: &[Register]| {
            let tile = Tile { rows: &[row], columns: &[column], along_k: None };
            let results = self.results_of(w, operands, &tile);
            let results: Vec<Register> = results.iter().map(|of| of[0][0]).collect();
            value(w, &chain.after, &results, &operands.after, at)
        };
        if self.is_whole() {
            return words(&self.view.site, "weight_matmul", &chain.out, self.placed.out, |scope| {
                let operands = self.operands(scope)?;
                Ok(move |w: &mut KernelWriter, coordinates: &[Register]| {
                    let (row, column) = place(w, coordinates);
                    result(w, &operands, row, column, coordinates)
                })
            });
        }
        words_in_parts(&self.view.site, "weight_matmul", &chain.out, self.placed.out, |scope| {
            let operands = self.operands(scope)?;
            Ok(move |w: &mut KernelWriter, coordinates: &[Register]| {
                let (row, column) = place(w, coordinates);
                let (is_own, read) = match self.is_own_row(w, &operands, row) {
                    Some(is_own) => (is_own, column),
                    None => self.own_column(w, column),
                };
                let value = result(w, &operands, row, read, coordinates);
                PartElement { value, is_own }
            })
        })
    }

    /// Whether the expert of a row of results is bound; none where all rows have the same weights.
    fn is_own_row(&self, w: &mut KernelWriter, operands: &Operands, row: Register) -> Option<Register> {
        let Matching::Experts { count, .. } = self.sizes.matching else { return None };
        let expert = ChosenExpert::load(w, operands.products.first()?.chosen?, row, count);
        let (in_part, bound) = (self.in_part(w, expert.number), w.u32(self.part.end - self.part.start));
        Some(w.less(in_part, bound))
    }

    /// Whether a column is made, and one that is: the same, or another.
    fn own_column(&self, w: &mut KernelWriter, column: Register) -> (Register, Register) {
        let (in_part, bound) = (self.in_part(w, column), w.u32(self.part.end - self.part.start));
        let (is_own, first) = (w.less(in_part, bound), w.u32(self.part.start));
        (is_own, w.select(is_own, column, first))
    }

    /// A place along the weights' first dimension, counted from the first that is bound: as a number without sign, one before
    /// that is too large.
    fn in_part(&self, w: &mut KernelWriter, at: Register) -> Register {
        if self.is_whole() {
            return at;
        }
        let start = w.u32(self.part.start);
        w.sub(at, start)
    }

    /// A group makes so many columns a thread of some rows.
    fn tiled(&self, per_thread: u32) -> Result<NodeKernel, HalError> {
        let ProductSizes { rows, per_row, .. } = self.sizes;
        let mut scope = self.view.scope("weight_matmul", THREADS * self.along_k);
        let operands = self.operands(&mut scope)?;
        let output = scope.write(self.placed.out);
        // Rows of experts have no weights in common.
        let bucket = &self.view.site.bucket;
        let most = (rows.get(bucket) as u64).clamp(1, u64::from(ROWS)) as u32;
        let together = if matches!(self.sizes.matching, Matching::Experts { .. }) { 1 } else { most };
        let grid = RowGrid::of(rows, per_row, together, bucket)?;
        let (count, per_row) = (scope.size(rows), scope.w.u32(per_row));
        let w = &mut scope.w;
        let count = w.mul(count, per_row);
        let along_k = (self.along_k > 1).then(|| ThreadsAlongK::new(w, self.along_k, per_thread * together));
        let along_k = along_k.as_ref();
        let first = self.first_column(w, along_k, per_thread);
        let place = (first, per_thread, along_k);
        let range = grid.range(w, count);
        let (whole, one) = (w.u32(together), w.u32(1));
        let mut from = range.start;
        if grid.most_rows >= together && together > 1 {
            let all = w.sub(range.end, range.start);
            let tiles = w.div(all, whole);
            let rows = w.mul(tiles, whole);
            let end = w.add(range.start, rows);
            w.for_each(from, end, whole, |w, row| self.rows(w, &operands, output, row, together, place));
            from = end;
        }
        if grid.most_rows % together != 0 || grid.is_symbolic || together == 1 {
            w.for_each(from, range.end, one, |w, row| self.rows(w, &operands, output, row, 1, place));
        }
        let groups = (self.columns().len() as u32).div_ceil(THREADS * per_thread);
        Ok(scope.finish(grid.axes(groups)?, 0))
    }

    /// The first column of a thread.
    fn first_column(&self, w: &mut KernelWriter, along_k: Option<&ThreadsAlongK>, per_thread: u32) -> Register {
        let thread = along_k.map_or_else(|| w.thread(), |along_k| along_k.column);
        let (group, threads, per_thread) = (w.group(0), w.u32(THREADS), w.u32(per_thread));
        let first = w.mul(group, threads);
        let number = w.add(first, thread);
        let first = w.mul(number, per_thread);
        match self.columns().start {
            0 => first,
            start => {
                let start = w.u32(start);
                w.add(first, start)
            }
        }
    }

    /// Some columns of so many rows, from a row on.
    fn rows(
        &self,
        w: &mut KernelWriter,
        operands: &Operands,
        output: Elements,
        row: Register,
        count: u32,
        (first, per_thread, along_k): (Register, u32, Option<&ThreadsAlongK>),
    ) {
        let columns = self.columns();
        let last = w.u32(columns.end - 1);
        let behind = |w: &mut KernelWriter, from: Register, by: u32| {
            let by = w.u32(by);
            w.add(from, by)
        };
        let rows: Vec<Register> = (0..count).map(|by| behind(w, row, by)).collect();
        let mine: Vec<Register> = (0..per_thread).map(|by| behind(w, first, by)).collect();
        let full = columns.len().is_multiple_of((THREADS * per_thread) as usize);
        let read: Vec<Register> = mine.iter().map(|&column| if full { column } else { w.min(column, last) }).collect();
        let make = |w: &mut KernelWriter| {
            let results = self.results_of(w, operands, &Tile { rows: &rows, columns: &read, along_k });
            let store = |w: &mut KernelWriter| {
                for (at, &row) in rows.iter().enumerate() {
                    let of_row: Vec<&Vec<Register>> = results.iter().map(|of| &of[at]).collect();
                    self.store(w, operands, output, row, &mine, &of_row);
                }
            };
            match along_k {
                Some(along_k) => along_k.when_first(w, store),
                None => store(w),
            }
        };
        match if self.is_whole() { None } else { self.is_own_row(w, operands, row) } {
            Some(is_own) => w.when(is_own, make),
            None => make(w),
        }
    }

    /// Writes columns of a row, of which all products have results. Those behind the last column are none.
    fn store(
        &self,
        w: &mut KernelWriter,
        operands: &Operands,
        output: Elements,
        row: Register,
        columns: &[Register],
        results: &[&Vec<Register>],
    ) {
        let (chain, width) = (&self.placed.chain, w.u32(self.sizes.columns));
        let before = w.mul(row, width);
        let per_word = elements_per_word(output.dtype);
        let mine = self.columns();
        let full = mine.len().is_multiple_of(THREADS as usize * columns.len());
        for (number, columns) in columns.chunks(per_word as usize).enumerate() {
            let first = number * per_word as usize;
            let write = |w: &mut KernelWriter| {
                let mut place = None;
                let mut values = Vec::with_capacity(columns.len());
                for (at, &column) in columns.iter().enumerate() {
                    let linear = w.add(before, column);
                    let coordinates = self.results.coordinates(w, linear);
                    let results: Vec<Register> = results.iter().map(|of| of[first + at]).collect();
                    values.push(value(w, &chain.after, &results, &operands.after, &coordinates));
                    place.get_or_insert_with(|| element(w, &chain.out, &coordinates));
                }
                let (per_word, place) = (w.u32(per_word), place.unwrap_or(before));
                let word = w.div(place, per_word);
                output.store_word(w, word, &values);
            };
            if full {
                write(w);
            } else {
                let end = w.u32(mine.end);
                let there = w.less(columns[0], end);
                w.when(there, write);
            }
        }
    }

    /// The results of all products for a tile: of each, for each row, those of the columns.
    fn results_of(&self, w: &mut KernelWriter, operands: &Operands, tile: &Tile<'_>) -> Vec<Vec<Vec<Register>>> {
        operands.products.iter().map(|product| self.sums(w, operands.x, product, tile)).collect()
    }

    /// The results of one product.
    fn sums(&self, w: &mut KernelWriter, x: Elements, product: &Product, tile: &Tile<'_>) -> Vec<Vec<Register>> {
        let place = self.place(w, product, tile);
        let weight = &product.weight;
        let totals = zeros(w, tile);
        let none = w.u32(0);
        let per_segment = (SEGMENT / weight.run_elements()).max(1);
        if weight.is_plain() {
            let runs = w.u32(weight.runs());
            let runs = place.end(w, none, runs);
            self.add_runs(w, x, weight, &place, none..runs, &totals);
        } else if let Some(along_k) = tile.along_k {
            let all: Vec<Variable> = totals.iter().flatten().copied().collect();
            along_k.add_segments(w, weight.runs().div_ceil(per_segment), &all, |w, number| {
                let runs = w.u32(per_segment);
                let first = w.mul(number, runs);
                self.segment(w, x, weight, &place, first, tile).into_iter().flatten().collect()
            });
        } else {
            let (runs, step) = (w.u32(weight.runs()), w.u32(per_segment));
            w.for_each(none, runs, step, |w, first| {
                let segment = self.segment(w, x, weight, &place, first, tile);
                for (total, part) in totals.iter().flatten().zip(segment.iter().flatten()) {
                    let (a, b) = (w.get(*total), w.get(*part));
                    let sum = w.add(a, b);
                    w.set(*total, sum);
                }
            });
        }
        let result = |w: &mut KernelWriter, total: Variable| {
            let sum = w.get(total);
            let sum = match place.expert {
                Some(expert) => {
                    let missing = expert.missing(w);
                    w.select(expert.is_there, sum, missing)
                }
                None => sum,
            };
            if self.dtype == DType::F32 { sum } else { cast(w, self.dtype, sum) }
        };
        let columns = 0..tile.columns.len();
        let row = |at: usize| columns.clone().map(|column| result(w, totals[column][at])).collect();
        (0..tile.rows.len()).map(row).collect()
    }

    /// The sums of the segment that begins with a run.
    fn segment(
        &self,
        w: &mut KernelWriter,
        x: Elements,
        weight: &StoredRows,
        place: &OperandPlaces,
        first: Register,
        tile: &Tile<'_>,
    ) -> Vec<Vec<Variable>> {
        let per_segment = (SEGMENT / weight.run_elements()).max(1);
        let (sums, runs) = (zeros(w, tile), w.u32(per_segment));
        let mut end = w.add(first, runs);
        if !weight.runs().is_multiple_of(per_segment) {
            let all = w.u32(weight.runs());
            end = w.min(end, all);
        }
        let end = place.end(w, first, end);
        self.add_runs(w, x, weight, place, first..end, &sums);
        sums
    }

    /// Adds the products of runs of the weight to the sums of each column: one for each row.
    fn add_runs(
        &self,
        w: &mut KernelWriter,
        x: Elements,
        weight: &StoredRows,
        place: &OperandPlaces,
        runs: Range<Register>,
        sums: &[Vec<Variable>],
    ) {
        let one = w.u32(1);
        w.for_each(runs.start, runs.end, one, |w, run| {
            let (first, even) = (weight.first(w, run), self.sizes.k.is_multiple_of(2));
            let inputs = inputs_of_run(w, x, &place.inputs, first, weight.groups_of_run(), even);
            for (&row, sums) in place.weights.iter().zip(sums) {
                let groups = weight.decode(w, row, run);
                add_products(w, &groups, &inputs, sums, weight.is_plain());
            }
        });
    }

    /// Where the operands of a tile's results lie.
    fn place(&self, w: &mut KernelWriter, product: &Product, tile: &Tile<'_>) -> OperandPlaces {
        let ProductSizes { per_row, columns, k, width, .. } = self.sizes;
        let (width, k) = (w.u32(width), w.u32(k));
        match (self.sizes.matching, product.chosen) {
            (Matching::Experts { count, shared }, Some(chosen)) => {
                let (row, columns, per_row) = (tile.rows[0], w.u32(columns), w.u32(per_row));
                let expert = ChosenExpert::load(w, chosen, row, count);
                let mut bound = self.in_part(w, expert.number);
                if !self.is_whole() {
                    let last = w.u32(self.part.end - self.part.start - 1);
                    bound = w.min(bound, last);
                }
                let before = w.mul(bound, columns);
                let weight = |w: &mut KernelWriter, &column: &Register| {
                    let row = w.add(before, column);
                    product.weight.row(w, row)
                };
                let weights = tile.columns.iter().map(|column| weight(w, column)).collect();
                let token = w.div(row, per_row);
                let input = if shared { w.mul(token, k) } else { w.mul(row, k) };
                OperandPlaces { inputs: vec![input], weights, expert: Some(expert) }
            }
            (Matching::Groups { columns: of_group }, _) | (Matching::Experts { count: of_group, .. }, None) => {
                let of_group = w.u32(of_group);
                let group = if columns == self.group_columns() { w.u32(0) } else { w.div(tile.columns[0], of_group) };
                let before = w.mul(group, k);
                let input = |w: &mut KernelWriter, &row: &Register| {
                    let first = w.mul(row, width);
                    w.add(first, before)
                };
                let inputs = tile.rows.iter().map(|row| input(w, row)).collect();
                let weight = |w: &mut KernelWriter, &column: &Register| {
                    let row = self.in_part(w, column);
                    product.weight.row(w, row)
                };
                let weights = tile.columns.iter().map(|column| weight(w, column)).collect();
                OperandPlaces { inputs, weights, expert: None }
            }
        }
    }

    fn group_columns(&self) -> u32 {
        match self.sizes.matching {
            Matching::Groups { columns } => columns,
            Matching::Experts { .. } => self.sizes.columns,
        }
    }
}

/// A sum of nothing for each row, column by column.
fn zeros(w: &mut KernelWriter, tile: &Tile<'_>) -> Vec<Vec<Variable>> {
    let zero = w.f32(0.0);
    tile.columns.iter().map(|_| tile.rows.iter().map(|_| w.variable(zero)).collect()).collect()
}

/// Where the operands of a tile's results lie.
struct OperandPlaces {
    /// For each row the first element of the input.
    inputs: Vec<Register>,
    /// For each column the first byte of the weight's row.
    weights: Vec<Register>,
    /// Whose weights they are.
    expert: Option<ChosenExpert>,
}

impl OperandPlaces {
    /// Where runs of the weight end that begin at `first`: there, for an expert that there is not.
    fn end(&self, w: &mut KernelWriter, first: Register, end: Register) -> Register {
        self.expert.map_or(end, |expert| w.select(expert.is_there, end, first))
    }
}
