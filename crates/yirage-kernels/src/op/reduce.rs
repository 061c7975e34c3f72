//! Reductions: a group makes a word of the result, element after element. Thread p of 64 has partial result p, and the
//! partial results are joined as [`yirage_ir::op::join_parts`] says: the op's own order, whatever the shape of the rest.

use super::PlanSite;
use super::output_words::{ResultOrder, WordRange};
use super::placed_chain::{ChainReads, PlacedChain, core_result, value};
use crate::elements::{computed_as, elements_per_word};
use crate::grid::FlatGrid;
use crate::math;
use crate::node_kernel::NodeKernel;
use crate::scope::KernelScope;
use crate::strided_index::{DenseShape, count};
use yirage_hal::HalError;
use yirage_ir::Dim;
use yirage_ir::op::{PARTS, Reduce, ReduceKind, join_parts};
use yirage_ir::region::ElementExpr;
use yirage_kir::{KernelMemory, KernelWriter, Register, ScalarType};

/// The kernel of a chain around a reduction.
pub(crate) fn kernel(
    site: &PlanSite<'_>,
    placed: &PlacedChain,
    op: &Reduce,
    of: &ElementExpr,
) -> Result<NodeKernel, HalError> {
    let chain = &placed.chain;
    let mut scope = site.scope("reduce", PARTS as u32);
    let reduction = GroupReduction::new(&mut scope, placed, op, of)?;
    let after = placed.reads(&mut scope, &chain.after.reads);
    let output = scope.write(placed.out);
    let per_word = elements_per_word(output.dtype);
    let results = ResultOrder::new(&chain.out)?;
    let grid = FlatGrid::of(&results.shape, per_word, 1, &site.bucket)?;
    let elements = count(&mut scope, &results.shape);
    let w = &mut scope.w;
    let range = WordRange::new(w, &grid, elements, per_word);
    let (thread, one, zero) = (w.thread(), w.u32(1), w.u32(0));
    w.for_each(range.first, range.end, one, |w, word| {
        let made: Vec<Register> = (0..per_word)
            .map(|part| {
                let coordinates = results.coordinates(w, word, part, per_word, elements);
                let result = reduction.result(w, &coordinates);
                let result = core_result(w, chain, result);
                value(w, &chain.after, &[result], &after, &coordinates)
            })
            .collect();
        let is_first = w.equal(thread, zero);
        w.when(is_first, |w| output.store_word(w, word, &made));
    });
    Ok(scope.finish(grid.axes(), 0))
}

/// A reduction of an expression by the threads of a group, which share the partial results of one element.
pub(crate) struct GroupReduction<'a> {
    partial: ReductionParts<'a>,
    /// How many elements are reduced to one.
    length: Register,
    parts: KernelMemory,
}

impl<'a> GroupReduction<'a> {
    pub(crate) fn new(
        scope: &mut KernelScope<'_>,
        placed: &PlacedChain,
        op: &'a Reduce,
        of: &'a ElementExpr,
    ) -> Result<GroupReduction<'a>, HalError> {
        let (reads, along) = (placed.reads(scope, &of.reads), along(op, of));
        let (inner, length) = (DenseShape::new(&along)?, count(scope, &along));
        let parts = scope.w.shared(computed_as(of.dtype), PARTS as u32);
        Ok(GroupReduction { partial: ReductionParts::new(reads, op, of, inner), length, parts })
    }

    /// The result at these coordinates, in every thread. All threads of the group come here.
    pub(crate) fn result(&self, w: &mut KernelWriter, coordinates: &[Register]) -> Register {
        let thread = w.thread();
        let nothing = self.partial.nothing(w);
        let mine = self.partial.of_thread(w, coordinates, self.length, nothing);
        // Nobody reads what the element before left any more.
        w.barrier();
        w.store(self.parts, thread, mine);
        w.barrier();
        // Each thread joins them for itself: a barrier is dearer.
        joined(w, self.partial.op.kind, self.length, |w, part| w.load(self.parts, part))
    }
}

/// The dimensions that are reduced.
pub(crate) fn along(op: &Reduce, of: &ElementExpr) -> Vec<Dim> {
    op.axes.0.iter().map(|&axis| of.shape[axis as usize]).collect()
}

/// The partial results of a reduction of an expression: thread p of 64 has number p.
pub(crate) struct ReductionParts<'a> {
    op: &'a Reduce,
    of: &'a ElementExpr,
    reads: ChainReads,
    inner: DenseShape,
}

impl<'a> ReductionParts<'a> {
    /// Of an expression whose reduced dimensions are `inner`.
    pub(crate) fn new(reads: ChainReads, op: &'a Reduce, of: &'a ElementExpr, inner: DenseShape) -> ReductionParts<'a> {
        ReductionParts { op, of, reads, inner }
    }

    /// A partial result of no elements.
    pub(crate) fn nothing(&self, w: &mut KernelWriter) -> Register {
        identity(w, self.op.kind, computed_as(self.of.dtype))
    }

    /// The thread's partial result of the element at these coordinates, of so many elements, behind what there is already.
    pub(crate) fn of_thread(
        &self,
        w: &mut KernelWriter,
        coordinates: &[Register],
        length: Register,
        so_far: Register,
    ) -> Register {
        let kind = self.op.kind;
        let (thread, step) = (w.thread(), w.u32(PARTS as u32));
        let sum = w.variable(so_far);
        w.for_each(thread, length, step, |w, at| {
            let inner = self.inner.coordinates(w, at);
            let x = value(w, self.of, &[], &self.reads, &self.element(coordinates, &inner));
            let x = if kind == ReduceKind::MeanSquare { w.mul(x, x) } else { x };
            let so_far = w.get(sum);
            let next = join(w, kind, so_far, x);
            w.set(sum, next);
        });
        w.get(sum)
    }

    /// Coordinates of what is reduced: those of the result and, along the axes, of the element.
    fn element(&self, result: &[Register], inner: &[Register]) -> Vec<Register> {
        let (mut result, mut inner) = (result.iter(), inner.iter());
        let mut own = Vec::with_capacity(self.of.shape.len());
        for axis in 0..self.of.shape.len() {
            let reduced = self.op.axes.0.contains(&(axis as u32));
            let kept = if !reduced || self.op.keep { result.next() } else { None };
            own.extend(if reduced { inner.next() } else { kept });
        }
        own
    }
}

/// The partial results of a reduction of so many elements as one.
pub(crate) fn joined(
    w: &mut KernelWriter,
    kind: ReduceKind,
    length: Register,
    load: impl Fn(&mut KernelWriter, Register) -> Register,
) -> Register {
    let parts: [Register; PARTS] = std::array::from_fn(|part| {
        let part = w.u32(part as u32);
        load(w, part)
    });
    let all = join_parts(parts, |a, b| join(w, kind, a, b));
    match kind {
        ReduceKind::Mean | ReduceKind::MeanSquare => {
            let (zero, none) = (w.u32(0), w.f32(f32::NAN));
            // Not every device says NaN of 0 / 0.
            let is_none = w.equal(length, zero);
            let length = w.convert(ScalarType::F32, length);
            let mean = w.div(all, length);
            w.select(is_none, none, mean)
        }
        _ => all,
    }
}

fn join(w: &mut KernelWriter, kind: ReduceKind, a: Register, b: Register) -> Register {
    let floats = w.ty(a) == ScalarType::F32;
    match kind {
        ReduceKind::Sum | ReduceKind::Mean | ReduceKind::MeanSquare => w.add(a, b),
        ReduceKind::Prod => w.mul(a, b),
        ReduceKind::Max if floats => math::larger(w, a, b),
        ReduceKind::Min if floats => math::smaller(w, a, b),
        ReduceKind::Max => w.max(a, b),
        ReduceKind::Min => w.min(a, b),
    }
}

/// What an element joined to nothing is itself.
fn identity(w: &mut KernelWriter, kind: ReduceKind, ty: ScalarType) -> Register {
    match (kind, ty) {
        (ReduceKind::Max, ScalarType::F32) => w.f32(f32::NEG_INFINITY),
        (ReduceKind::Min, ScalarType::F32) => w.f32(f32::INFINITY),
        (ReduceKind::Prod, ScalarType::F32) => w.f32(1.0),
        (_, ScalarType::F32) => w.f32(0.0),
        (ReduceKind::Max, ScalarType::I32) => w.i32(i32::MIN),
        (ReduceKind::Min, ScalarType::I32) => w.i32(i32::MAX),
        (ReduceKind::Prod, ScalarType::I32) => w.i32(1),
        (_, ScalarType::I32) => w.i32(0),
        (ReduceKind::Min, _) => w.u32(u32::MAX),
        (ReduceKind::Prod, _) => w.u32(1),
        (_, _) => w.u32(0),
    }
}
