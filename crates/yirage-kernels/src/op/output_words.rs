//! Kernels whose threads each make a word of an output: one element, or as many as share it. Elements are made in the order of
//! the output's memory, whatever the order in which they are computed.

use super::PlanSite;
use crate::elements::{Elements, elements_per_word};
use crate::grid::FlatGrid;
use crate::node_kernel::{NodeKernel, Operand};
use crate::scope::KernelScope;
use crate::strided_index::{DenseShape, count};
use yirage_hal::HalError;
use yirage_ir::{Dim, Strided};
use yirage_kir::{KernelWriter, Register};

/// Threads of a group that each make a word.
pub(crate) const THREADS: u32 = 64;

/// An element that a kernel makes which is one of several for an output.
pub(crate) struct PartElement {
    /// What it is.
    pub(crate) value: Register,
    /// Whether it is this kernel's to make. What is not stays as it was.
    pub(crate) is_own: Register,
}

/// A kernel whose threads each make a word of an output, where the elements of a result go as `places` says: `prepare`
/// declares what is read, and gives what makes the element at coordinates of the result.
pub(crate) fn words<M: Fn(&mut KernelWriter, &[Register]) -> Register>(
    site: &PlanSite<'_>,
    name: &str,
    places: &Strided,
    out: Operand,
    prepare: impl FnOnce(&mut KernelScope<'_>) -> Result<M, HalError>,
) -> Result<NodeKernel, HalError> {
    let mut scope = site.scope(name, THREADS);
    let make = prepare(&mut scope)?;
    let output = scope.write(out);
    write_words(site, scope, places, output, |w, coordinates, _| make(w, coordinates))
}

/// The same of an output that several kernels make one after the other, each some of its elements.
pub(crate) fn words_in_parts<M: Fn(&mut KernelWriter, &[Register]) -> PartElement>(
    site: &PlanSite<'_>,
    name: &str,
    places: &Strided,
    out: Operand,
    prepare: impl FnOnce(&mut KernelScope<'_>) -> Result<M, HalError>,
) -> Result<NodeKernel, HalError> {
    let mut scope = site.scope(name, THREADS);
    let make = prepare(&mut scope)?;
    let output = scope.update(out);
    write_words(site, scope, places, output, |w, coordinates, (word, part)| {
        let PartElement { value, is_own } = make(w, coordinates);
        let (per_word, part) = (w.u32(elements_per_word(output.dtype)), w.u32(part));
        let first = w.mul(word, per_word);
        let at = w.add(first, part);
        let before = output.load(w, at);
        w.select(is_own, value, before)
    })
}

/// Writes the kernel, whose elements `make` gives for coordinates and a place: a word of the output, and which in it.
fn write_words(
    site: &PlanSite<'_>,
    mut scope: KernelScope<'_>,
    places: &Strided,
    output: Elements,
    make: impl Fn(&mut KernelWriter, &[Register], (Register, u32)) -> Register,
) -> Result<NodeKernel, HalError> {
    let per_word = elements_per_word(output.dtype);
    let results = ResultOrder::new(places)?;
    let grid = FlatGrid::of(&results.shape, per_word, THREADS, &site.bucket)?;
    let elements = count(&mut scope, &results.shape);
    let w = &mut scope.w;
    let range = WordRange::new(w, &grid, elements, per_word);
    let thread = w.thread();
    let (from, step) = (w.add(range.first, thread), w.u32(THREADS));
    w.for_each(from, range.end, step, |w, word| {
        let made: Vec<Register> = (0..per_word)
            .map(|part| {
                let coordinates = results.coordinates(w, word, part, per_word, elements);
                make(w, &coordinates, (word, part))
            })
            .collect();
        output.store_word(w, word, &made);
    });
    Ok(scope.finish(grid.axes(), 0))
}

/// The words that a group makes.
pub(crate) struct WordRange {
    pub(crate) first: Register,
    pub(crate) end: Register,
}

impl WordRange {
    pub(crate) fn new(w: &mut KernelWriter, grid: &FlatGrid, elements: Register, per_word: u32) -> WordRange {
        let (group, per_group) = (w.group(0), w.u32(grid.per_group));
        let (per, less_one) = (w.u32(per_word), w.u32(per_word - 1));
        let padded = w.add(elements, less_one);
        let words = w.div(padded, per);
        let first = w.mul(group, per_group);
        let end = w.add(first, per_group);
        WordRange { first, end: w.min(end, words) }
    }
}

/// The elements of a result in the order in which they lie in the output.
pub(crate) struct ResultOrder {
    /// Sizes in that order.
    pub(crate) shape: Vec<Dim>,
    /// For each of them, which dimension of the result it is.
    axes: Vec<usize>,
    dense: DenseShape,
}

impl ResultOrder {
    pub(crate) fn new(places: &Strided) -> Result<ResultOrder, HalError> {
        let axes = output_order(places);
        let shape: Vec<Dim> = axes.iter().map(|&axis| places.shape[axis]).collect();
        Ok(ResultOrder { dense: DenseShape::new(&shape)?, shape, axes })
    }

    /// The coordinates, in the core's result, of an element of a word of the output. What lies behind the last element of the last
    /// word is that element again.
    pub(crate) fn coordinates(
        &self,
        w: &mut KernelWriter,
        word: Register,
        part: u32,
        per_word: u32,
        elements: Register,
    ) -> Vec<Register> {
        let (per, part, one) = (w.u32(per_word), w.u32(part), w.u32(1));
        let first = w.mul(word, per);
        let mut at = w.add(first, part);
        if per_word > 1 {
            let last = w.sub(elements, one);
            at = w.min(at, last);
        }
        let turned = self.dense.coordinates(w, at);
        let mut coordinates = turned.clone();
        self.axes.iter().zip(turned).for_each(|(&axis, coordinate)| coordinates[axis] = coordinate);
        coordinates
    }
}

/// The dimensions of elements that go to `out`, from the one whose neighbours lie farthest apart.
fn output_order(out: &Strided) -> Vec<usize> {
    let mut order: Vec<usize> = (0..out.shape.len()).collect();
    // Sizes of 1 have no neighbours: they stay where they do no harm.
    order.sort_by_key(|&axis| if out.shape[axis] == Dim::Const(1) { 0 } else { -out.strides[axis] });
    order
}
