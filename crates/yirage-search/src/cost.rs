//! What a graph is expected to cost: its kernels after fusion, each as long as the slower of its bytes and its operations
//! takes, and the time that starting a kernel takes.
//!
//! It is an estimate to order candidates by, never a reason to choose one: that is measured. It counts every value that
//! a kernel reads or makes once, at the speed of memory, whatever a cache may hold. Products of 16-bit floats take half as
//! long where the target has instructions for them.

use yirage_compile::{CompileError, CompileOptions, Decisions, PIPELINE};
use yirage_ir::cost::{Reads, StepSizes};
use yirage_ir::expr::{Func, Term};
use yirage_ir::op::ViewForm;
use yirage_ir::{DType, Dims, Format, Graph, Node, NodeKind, Op, Type, ValueId};
use yirage_plan::{KernelCapabilities, Target};

/// How fast a device is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DeviceRates {
    /// Bytes of memory that are read in a second.
    pub bytes_per_second: u64,
    /// Operations on f32 in a second; a multiplication and an addition are two.
    pub f32_ops_per_second: u64,
    /// Nanoseconds from one kernel to the next.
    pub launch_ns: u64,
}

impl DeviceRates {
    /// Of a device that nobody has measured: a desktop's processor, by orders of magnitude.
    pub const UNMEASURED: DeviceRates =
        DeviceRates { bytes_per_second: 20_000_000_000, f32_ops_per_second: 200_000_000_000, launch_ns: 2_000 };
}

/// What a graph is expected to cost.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// Nanoseconds.
    pub ns: f64,
    /// Kernels.
    pub kernels: u32,
    /// Bytes that they read and write.
    pub bytes: f64,
    /// Operations that they compute.
    pub ops: f64,
}

/// The graph after the compiler's passes.
pub(super) fn fused(graph: &Graph, target: &Target, options: &CompileOptions) -> Result<Graph, CompileError> {
    let mut lowered = graph.clone();
    // Which tiles are worth it the search proposes itself: a graph without them is what its proposals are weighed against.
    for pass in PIPELINE.iter().filter(|pass| pass.name != "attention") {
        lowered = (pass.run)(&lowered, target, options, &mut Decisions::unheard())?;
    }
    Ok(lowered)
}

/// What a fused graph is expected to cost in a step of these sizes.
pub(super) fn estimate(fused: &Graph, dims: &Dims, target: &Target, rates: &DeviceRates) -> Estimate {
    let mut sum = Estimate { ns: 0.0, kernels: 0, bytes: 0.0, ops: 0.0 };
    for node in &fused.nodes {
        let (bytes, ops) = (bytes(fused, node, dims), ops(fused, node, dims, &target.capabilities));
        // Who makes few elements, or has few blocks, cannot use all workers.
        let made: usize = node.outs.iter().map(|&o| fused.ty(o).elems(dims)).sum();
        let made = blocks(node).map_or(made as u64, |(blocks, _)| blocks);
        let share = (made.max(1) as f64 / f64::from(target.queues())).min(1.0);
        let read = bytes / (rates.bytes_per_second.max(1) as f64 * share);
        let computed = ops / (rates.f32_ops_per_second.max(1) as f64 * share);
        sum.ns += rates.launch_ns as f64 + 1e9 * read.max(computed);
        sum.kernels += 1;
        sum.bytes += bytes;
        sum.ops += ops;
    }
    sum
}

/// Bytes that a kernel reads and writes: each operand once, of what only views read no more than they show.
fn bytes(graph: &Graph, node: &Node, dims: &Dims) -> f64 {
    let held = |id: ValueId| graph.ty(id).storage_bytes(dims) as f64;
    let written: f64 = node.outs.iter().map(|&o| held(o)).sum();
    let mut read = 0.0;
    for (at, &id) in node.ins.iter().enumerate() {
        if node.ins[..at].contains(&id) {
            continue;
        }
        read += match &node.kind {
            NodeKind::Op(op) => of_op(op, graph, node, at, dims) * held(id),
            NodeKind::Region(region) if region.tiled.is_some() => held(id),
            NodeKind::Region(region) => shown(&region.graph, region.graph.inputs[at], dims).unwrap_or(1.0) * held(id),
        };
    }
    read + written
}

/// The part of input `at` that an op reads.
fn of_op(op: &Op, graph: &Graph, node: &Node, at: usize, dims: &Dims) -> f64 {
    let types: Vec<_> = node.ins.iter().map(|&i| graph.ty(i).clone()).collect();
    let parts = types[at].shape.first().map_or(1, |d| d.get(dims)).max(1) as f64;
    if let Op::View(view) = op {
        return cut(&view.form, graph.ty(node.ins[at]).elems(dims), graph.ty(node.outs[0]).elems(dims));
    }
    match op.work(&types, &StepSizes { dims: *dims, spans: &[] }).reads.get(at) {
        Some(Reads::Whole) => 1.0,
        Some(Reads::Parts(count)) => (count / parts).min(1.0),
        Some(Reads::Positions(_) | Reads::Nothing) | None => 0.0,
    }
}

/// The part of its input that a view shows.
fn cut(form: &ViewForm, of: usize, shown: usize) -> f64 {
    if matches!(form, ViewForm::Slice(_)) { (shown as f64 / of.max(1) as f64).min(1.0) } else { 1.0 }
}

/// The part of a region's input that is read, where slices alone read it.
fn shown(region: &Graph, input: ValueId, dims: &Dims) -> Option<f64> {
    let mut part = 0.0;
    for node in region.nodes.iter().filter(|n| n.ins.contains(&input)) {
        let NodeKind::Op(Op::View(view)) = &node.kind else { return None };
        part += cut(&view.form, region.ty(input).elems(dims), region.ty(node.outs[0]).elems(dims));
    }
    Some(f64::min(part, 1.0))
}

/// Blocks of a tiled region, and the iterations of each.
fn blocks(node: &Node) -> Option<(u64, u32)> {
    let NodeKind::Region(region) = &node.kind else { return None };
    let tiled = region.tiled.as_ref()?;
    Some((tiled.blocks()?, tiled.loops))
}

/// Operations of a kernel: products as they count themselves, and what is done to each element.
fn ops(graph: &Graph, node: &Node, dims: &Dims, has: &KernelCapabilities) -> f64 {
    match &node.kind {
        NodeKind::Region(region) => {
            let of = |graph: &Graph| graph.nodes.iter().map(|inner| ops(graph, inner, dims, has)).sum::<f64>();
            match (&region.tiled, blocks(node)) {
                // Each block computes for itself what all of them need.
                (Some(tiled), Some((blocks, loops))) => {
                    blocks as f64 * (f64::from(loops) * of(&region.graph) + of(&tiled.block))
                }
                _ => of(&region.graph),
            }
        }
        NodeKind::Op(op) => {
            let types: Vec<_> = node.ins.iter().map(|&i| graph.ty(i).clone()).collect();
            let read: usize = types.first().map_or(0, |ty| ty.elems(dims));
            let made: usize = node.outs.iter().map(|&o| graph.ty(o).elems(dims)).sum();
            let each = match op {
                Op::Map(map) => made as f64 * map.expr.terms().iter().map(weight).sum::<f64>(),
                Op::Reduce(_) => 2.0 * read as f64,
                Op::RmsNorm(_) => 4.0 * read as f64,
                Op::LayerNorm(_) => 8.0 * read as f64,
                Op::Softmax(_) => (SLOW + 6.0) * read as f64,
                _ => 0.0,
            };
            each + op.work(&types, &StepSizes { dims: *dims, spans: &[] }).ops / speed(op, &types, has)
        }
    }
}

/// How many times as fast as of f32 a product of such operands is.
fn speed(op: &Op, types: &[Type], has: &KernelCapabilities) -> f64 {
    let all = |dtype: DType| types.iter().take(2).all(|ty| ty.dtype == dtype);
    let doubled = (has.bf16 && all(DType::Stored(Format::BF16))) || (has.fp16 && all(DType::Stored(Format::F16)));
    if matches!(op, Op::Contract(_) | Op::Linear(_)) && doubled { 2.0 } else { 1.0 }
}

/// Operations of a function that is evaluated by a polynomial.
const SLOW: f64 = 40.0;
/// Of one that divides or takes a root.
const DIVIDES: f64 = 16.0;

/// What a function of one element counts as. An addition alone takes the time of a multiplication with one.
fn weight(term: &Term) -> f64 {
    match term {
        Term::Input(_) | Term::Const(_) => 0.0,
        Term::Cast(..) => 2.0,
        Term::Call(func, _) => match func {
            Func::Div | Func::Recip | Func::Sqrt | Func::Rsqrt => DIVIDES,
            Func::Exp | Func::Log | Func::Pow | Func::Tanh | Func::Sigmoid => SLOW,
            Func::Silu | Func::GeluErf | Func::GeluTanh => SLOW + DIVIDES,
            _ => 2.0,
        },
    }
}
