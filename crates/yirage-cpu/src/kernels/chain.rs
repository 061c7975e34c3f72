//! Chains without a contraction: expressions over views, and reductions with what comes before and after.

use super::operand_constraints::elements;
use super::{BoundKernel, Kernel};
use crate::bind::{Binder, CpuRunContext, Viewed, ViewedOut, Whole};
use crate::walk::StageWork;
use yirage_cpu_kernels::general::{self, ElementProgram, LoopSizes, Reduction, StridedInput, Strides};
use yirage_hal::HalError;
use yirage_ir::expr::{Expr, is_float};
use yirage_ir::op::{Reduce, ReduceKind};
use yirage_ir::region::{Core, ElementExpr, FusedChain};
use yirage_ir::{DType, Dim, Dims, RegionKind};
use yirage_plan::rules::OpRule;
use yirage_plan::{Partitioning, Stage};

impl Kernel {
    pub(super) const CHAIN: Kernel = Kernel {
        name: "cpu/chain@1",
        regions: &[RegionKind::Chain],
        rules: || ["map", "view", "reduce"].map(|op| OpRule::new(op, vec![elements()])).into(),
        stages: &[Stage::always(Partitioning::Static)],
        scratch: false,
        bind,
    };
}

/// Elements that one worker computes in about the time that waking another one takes.
const FEW: usize = 4096;

fn bind(binder: &mut Binder<'_>, n: usize) -> Result<Box<dyn BoundKernel>, HalError> {
    bound(&binder.whole(n)?)
}

/// A chain without a contraction.
pub(super) fn bound(node: &Whole) -> Result<Box<dyn BoundKernel>, HalError> {
    let chain = node.chain()?;
    let out = node.written(0, &chain.out)?;
    Ok(match &chain.core {
        Core::None => {
            let each = BoundExpr::bind(node, &chain.after)?;
            Box::new(MapChain { each, shape: chain.after.shape.clone(), out })
        }
        Core::Reduce(op, x) => {
            let (before, stay) = (BoundExpr::bind(node, x)?, stay(op, &x.shape));
            let kept =
                |strides: &[i64]| if op.keep { stay.iter().map(|&a| strides[a]).collect() } else { strides.to_vec() };
            let (after, types) = further(node, chain)?;
            let after = after.into_iter().map(|read| Further { strides: kept(read.strides()), read }).collect();
            let epilogue = program(&rounded(&chain.after.expr, chain.core_dtype), &types)?;
            let strides = kept(out.strides());
            Box::new(ReduceChain {
                kind: op.kind,
                axes: op.axes.0.iter().map(|&a| a as usize).collect(),
                shape: x.shape.clone(),
                stay: stay.into_iter().map(|a| x.shape[a]).collect(),
                before,
                epilogue,
                after,
                strides,
                out,
            })
        }
        Core::Contract(_) | Core::Matmuls(_) => {
            return Err(HalError::Load(format!("{} computes no contraction and no product", Kernel::CHAIN.name)));
        }
    })
}

/// The dimensions that a reduction leaves.
fn stay(op: &Reduce, shape: &[Dim]) -> Vec<usize> {
    (0..shape.len()).filter(|&axis| !op.axes.0.contains(&(axis as u32))).collect()
}

/// An expression with its operands.
pub(super) struct BoundExpr {
    pub(super) program: ElementProgram,
    pub(super) reads: Vec<Viewed>,
}

impl BoundExpr {
    pub(super) fn bind(node: &Whole, e: &ElementExpr) -> Result<BoundExpr, HalError> {
        let reads = e.reads.iter().map(|read| node.read(read)).collect::<Result<Vec<_>, _>>()?;
        let (reads, types): (Vec<Viewed>, Vec<DType>) = reads.into_iter().unzip();
        Ok(BoundExpr { program: program(&e.expr, &types)?, reads })
    }

    /// The operands with the strides they are bound with.
    pub(super) fn inputs(&self, run: &CpuRunContext<'_>) -> Vec<StridedInput> {
        self.reads.iter().map(|read| read.input(run, strides(read.strides()))).collect()
    }
}

/// What is read beside the results of a chain's core, and the types of all that the expression reads, the results' first.
pub(super) fn further(node: &Whole, chain: &FusedChain) -> Result<(Vec<Viewed>, Vec<DType>), HalError> {
    let reads = chain.after.reads.iter().map(|read| node.read(read)).collect::<Result<Vec<_>, _>>()?;
    let (reads, mut types): (Vec<Viewed>, Vec<DType>) = reads.into_iter().unzip();
    // Results of floats come as f32.
    let held = chain.core_dtype.map(|dtype| if is_float(dtype) { DType::F32 } else { dtype });
    types.splice(0..0, held.into_iter().flat_map(|dtype| std::iter::repeat_n(dtype, chain.core.results())));
    Ok((reads, types))
}

/// The expression of a core's result, which is rounded to its type first.
pub(super) fn rounded(expr: &Expr, result: Option<DType>) -> Expr {
    match result {
        Some(dtype) if dtype != DType::F32 => {
            expr.substitute(|i| if i == 0 { Expr::input(0).cast(dtype) } else { Expr::input(i) })
        }
        _ => expr.clone(),
    }
}

pub(super) fn program(expr: &Expr, types: &[DType]) -> Result<ElementProgram, HalError> {
    ElementProgram::new(expr, types).map_err(|why| HalError::Load(format!("`{expr}`: {why}")))
}

/// Strides of a bound operand: there are as many as its shape has dimensions, which types bound.
pub(super) fn strides(of: &[i64]) -> Strides {
    Strides::new(of).unwrap_or_else(|why| unreachable!("strides of a verified type: {why}"))
}

/// Sizes of a shape in a step; they are at most the bucket's, for which the plan was placed.
pub(super) fn sizes(shape: &[Dim], dims: &Dims) -> LoopSizes {
    let all: Vec<usize> = shape.iter().map(|dim| dim.get(dims)).collect();
    LoopSizes::new(&all).unwrap_or_else(|why| unreachable!("sizes of a placed value: {why}"))
}

struct MapChain {
    each: BoundExpr,
    shape: Vec<Dim>,
    out: ViewedOut,
}

impl BoundKernel for MapChain {
    unsafe fn run(&self, _: u32, run: &CpuRunContext<'_>, work: StageWork<'_>) {
        let sizes = sizes(&self.shape, run.dims);
        let (inputs, out) = (self.each.inputs(run), self.out.output(run, strides(self.out.strides())));
        let share = work.partition(sizes.count());
        // SAFETY: `Whole::read` and `Whole::written` have checked that all elements exist; workers take disjoint ones.
        unsafe { general::map(run.isa, &self.each.program, &sizes, &inputs, out, share) };
    }

    fn workers(&self, dims: &Dims) -> usize {
        sizes(&self.shape, dims).count().div_ceil(FEW)
    }
}

/// An operand of what comes after, with strides for the dimensions that stay.
struct Further {
    read: Viewed,
    strides: Vec<i64>,
}

struct ReduceChain {
    kind: ReduceKind,
    axes: Vec<usize>,
    shape: Vec<Dim>,
    /// The dimensions that stay.
    stay: Vec<Dim>,
    before: BoundExpr,
    epilogue: ElementProgram,
    after: Vec<Further>,
    /// Of the output, for the dimensions that stay.
    strides: Vec<i64>,
    out: ViewedOut,
}

impl BoundKernel for ReduceChain {
    unsafe fn run(&self, _: u32, run: &CpuRunContext<'_>, work: StageWork<'_>) {
        let further: Vec<StridedInput> = self.after.iter().map(|f| f.read.input(run, strides(&f.strides))).collect();
        let reduction = Reduction {
            kind: self.kind,
            sizes: sizes(&self.shape, run.dims),
            axes: &self.axes,
            prologue: &self.before.program,
            inputs: &self.before.inputs(run),
            epilogue: &self.epilogue,
            further: &further,
            output: self.out.output(run, strides(&self.strides)),
        };
        let share = work.partition(sizes(&self.stay, run.dims).count());
        // SAFETY: as in `MapChain::run`.
        unsafe { general::reduce(run.isa, &reduction, share) };
    }

    fn workers(&self, dims: &Dims) -> usize {
        sizes(&self.shape, dims).count().div_ceil(FEW).min(sizes(&self.stay, dims).count().max(1))
    }
}
