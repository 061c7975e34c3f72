//! Row-wise ops in one pass over the tokens. An op is a file here and a line of [`RowOpEntry::ALL`].

mod concat_heads;
mod embed;
mod expert_bias;
mod expert_sum;
mod hadamard;
mod kv_append;
mod layer_norm;
mod map;
mod matmul;
mod quantize;
mod rms_norm;
mod rope;
mod route;
mod softmax;
mod top_k;

use super::{BoundKernel, Kernel, not_for};
use crate::bind::{Binder, CpuRunContext, GROUP, Site};
use crate::walk::StageWork;
use std::ops::Range;
use yirage_hal::HalError;
use yirage_ir::op::{OpDef, OpVariant};
use yirage_ir::{Dim, RegionKind};
use yirage_plan::rules::{OpRule, OperandConstraint};
use yirage_plan::{Partitioning, Stage};

impl Kernel {
    pub(super) const ROW_OPS: Kernel = Kernel {
        name: "cpu/rows@1",
        regions: &[RegionKind::Rows],
        rules: || RowOpEntry::ALL.iter().flat_map(|line| (line.rules)()).collect(),
        stages: &[Stage::always(Partitioning::Rows)],
        scratch: false,
        bind,
    };
}

/// An op's name, what it may read, and how it is bound.
struct RowOpEntry {
    op: &'static str,
    rules: fn() -> Vec<OpRule>,
    bind: fn(&Site) -> Result<Box<dyn RowOp>, HalError>,
}

impl RowOpEntry {
    /// The ops that run row by row within one pass.
    const ALL: &'static [RowOpEntry] = &[
        line::<embed::EmbedRowOp>(),
        line::<quantize::QuantizeRowOp>(),
        line::<rms_norm::RmsNormRowOp>(),
        line::<layer_norm::LayerNormRowOp>(),
        line::<softmax::SoftmaxRowOp>(),
        line::<map::MapRowOp>(),
        line::<concat_heads::ConcatHeadsRowOp>(),
        line::<matmul::MatMulRowOp>(),
        line::<top_k::TopKRowOp>(),
        line::<rope::RopeRowOp>(),
        line::<hadamard::HadamardRowOp>(),
        line::<kv_append::KvAppendRowOp>(),
        line::<route::RouteRowOp>(),
        line::<expert_bias::ExpertBiasRowOp>(),
        line::<expert_sum::ExpertSumRowOp>(),
    ];
}

const fn line<R: BindRow>() -> RowOpEntry {
    RowOpEntry { op: <R::Op as OpDef>::NAME, rules: R::rules, bind: boxed::<R> }
}

fn boxed<R: BindRow>(site: &Site) -> Result<Box<dyn RowOp>, HalError> {
    let op = R::Op::of(site.op()).ok_or_else(|| not_for(Kernel::ROW_OPS.name, site))?;
    Ok(Box::new(R::bind(op, site)?))
}

/// A row-wise op bound to its operands.
trait RowOp: Send + Sync {
    /// Makes the rows of a range.
    ///
    /// # Safety
    /// The rows exist, what they are made of is whole, and nobody else uses the outputs' rows of the range. [`RowPass`]
    /// gives each worker rows of its own, and [`bind`] lets only ops over the same rows into a pass.
    unsafe fn run(&self, run: &CpuRunContext<'_>, rows: Range<usize>);
}

/// How an op of the graph becomes one.
trait BindRow: RowOp + Sized + 'static {
    /// The op.
    type Op: OpVariant;
    /// What it may read.
    fn rules() -> Vec<OpRule>;
    /// The op with its operands.
    fn bind(op: &Self::Op, site: &Site) -> Result<Self, HalError>;
}

/// A rule for an op, whatever its attributes.
fn rule<O: OpDef>(inputs: Vec<Vec<OperandConstraint>>) -> OpRule {
    OpRule::new(O::NAME, inputs)
}

/// The ops of a pass, in order.
struct RowPass {
    ops: Vec<Box<dyn RowOp>>,
    rows: Dim,
}

fn bind(binder: &mut Binder<'_>, n: usize) -> Result<Box<dyn BoundKernel>, HalError> {
    let sites = binder.sites(n)?;
    let first = sites.first().ok_or_else(|| HalError::Load("a pass over rows without ops".into()))?;
    let rows = first.rows()?;
    let one = |site: &Site| {
        if site.rows()? != rows {
            let (op, own) = (site.op().name(), site.rows()?);
            return Err(HalError::Load(format!("`{op}` runs over {own} rows, in a pass over {rows}")));
        }
        let line = RowOpEntry::ALL.iter().find(|line| line.op == site.op().name());
        (line.ok_or_else(|| not_for(Kernel::ROW_OPS.name, site))?.bind)(site)
    };
    Ok(Box::new(RowPass { ops: sites.iter().map(one).collect::<Result<_, _>>()?, rows }))
}

impl BoundKernel for RowPass {
    unsafe fn run(&self, _: u32, run: &CpuRunContext<'_>, work: StageWork<'_>) {
        let share = work.partition(run.size(self.rows));
        for first in share.clone().step_by(GROUP) {
            let group = run.of_group(work.worker, first);
            for op in &self.ops {
                // SAFETY: shares of different workers are disjoint; a row is made of its own row and of what was whole
                // before the pass (`Site::whole_rows`).
                unsafe { op.run(&group, first..share.end.min(first + GROUP)) };
            }
        }
    }
}
