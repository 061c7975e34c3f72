//! Ops that carry a state from position to position: workers take channels.

use super::operand_constraints::{floats, integers, states};
use super::{BoundKernel, Kernel, not_for, single};
use crate::bind::{Binder, CpuRunContext, FloatRow, FloatRows, OutputRows, Site, StateOperand, WordArray};
use crate::walk::StageWork;
use yirage_cpu_kernels::recurrent::{
    CausalConv1dStep, ChannelChunks, GatedDeltaStep, PlacedTokens, SsmScanStep, StepTokens, advance,
};
use yirage_hal::HalError;
use yirage_ir::{Dim, Op};
use yirage_plan::rules::OpRule;
use yirage_plan::{Partitioning, Stage};

impl Kernel {
    pub(super) const RECURRENT: Kernel = Kernel {
        name: "cpu/recurrent@1",
        regions: &[],
        rules,
        stages: &[Stage::always(Partitioning::Static)],
        scratch: false,
        bind,
    };
}

fn rules() -> Vec<OpRule> {
    let rule = |op: &str, rows: usize, last: bool| {
        let mut inputs = vec![states()];
        inputs.extend((0..rows).map(|_| floats()));
        inputs.extend((0..3).map(|_| integers()));
        inputs.extend(last.then(floats));
        OpRule::new(op, inputs)
    };
    vec![rule("causal_conv1d", 2, true), rule("ssm_scan", 5, true), rule("gated_delta", 5, false)]
}

/// What an op reads beside its state and the step's tokens.
enum Recurrence {
    CausalConv1d { x: FloatRows, weight: FloatRows, bias: Option<FloatRow> },
    SsmScan { rows: [FloatRows; 5], skip: Option<FloatRow>, heads_per_group: usize },
    GatedDelta { rows: [FloatRows; 5], heads_per_key: usize },
}

struct RecurrentKernel {
    recurrence: Recurrence,
    states: StateOperand,
    chunks: ChannelChunks,
    positions: WordArray<i32>,
    seqs: WordArray<i32>,
    table: WordArray<i32>,
    table_width: Dim,
    /// Positions that a block of the state stands for.
    block: usize,
    out: OutputRows<f32>,
}

fn bind(binder: &mut Binder<'_>, n: usize) -> Result<Box<dyn BoundKernel>, HalError> {
    let [site] = single(binder.sites(n)?, Kernel::RECURRENT.name)?;
    let (out, states) = (site.out(0)?, site.states(0)?);
    let row = |at: usize| if site.inputs() > at { site.float_row(at).map(Some) } else { Ok(None) };
    // The op's types say that heads divide channels and groups heads.
    let (recurrence, heads, (at, block)) = match site.op() {
        Op::CausalConv1d(op) => {
            let (x, weight) = (site.float_rows(1)?, site.float_rows(2)?);
            (Recurrence::CausalConv1d { x, weight, bias: row(6)? }, 1, (3, op.block_positions))
        }
        Op::SsmScan(op) => {
            let heads_per_group = (op.heads / op.groups.max(1)) as usize;
            (
                Recurrence::SsmScan { rows: rows(&site)?, skip: row(9)?, heads_per_group },
                op.heads as usize,
                (6, op.block_positions),
            )
        }
        Op::GatedDelta(op) => {
            let heads_per_key = (op.heads / op.key_heads.max(1)) as usize;
            (Recurrence::GatedDelta { rows: rows(&site)?, heads_per_key }, op.heads as usize, (6, op.block_positions))
        }
        _ => return Err(not_for(Kernel::RECURRENT.name, &site)),
    };
    Ok(Box::new(RecurrentKernel {
        recurrence,
        chunks: ChannelChunks { heads, head: out.width() / heads.max(1) },
        states,
        positions: site.array(at)?,
        seqs: site.array(at + 1)?,
        table: site.array(at + 2)?,
        table_width: site.last_dim(at + 2)?,
        // The op's types say that it is not 0.
        block: block as usize,
        out,
    }))
}

/// The five rows of floats after the state.
fn rows(site: &Site) -> Result<[FloatRows; 5], HalError> {
    let [a, b, c, d, e] = [1, 2, 3, 4, 5].map(|at| site.float_rows(at));
    Ok([a?, b?, c?, d?, e?])
}

impl BoundKernel for RecurrentKernel {
    unsafe fn run(&self, _: u32, run: &CpuRunContext<'_>, work: StageWork<'_>) {
        // SAFETY: what `BoundKernel::run` is promised; what is computed was written before;
        // `yirage_plan::VerifiedPlan` proves it of programs.
        let tokens = unsafe {
            StepTokens {
                positions: self.positions.all(run),
                seqs: self.seqs.all(run),
                table: self.table.all(run),
                width: run.size(self.table_width),
                block: self.block,
            }
        };
        match tokens.place(self.states.blocks()) {
            // SAFETY: what `BoundKernel::run` is promised; `yirage_plan::VerifiedPlan` proves it of programs.
            Ok(tokens) => unsafe { self.advance(run, tokens, work) },
            Err(why) => run.fail(why),
        }
    }
}

impl RecurrentKernel {
    /// # Safety
    /// As [`BoundKernel::run`].
    unsafe fn advance(&self, run: &CpuRunContext<'_>, tokens: PlacedTokens<'_>, work: StageWork<'_>) {
        let (share, out, n) = (work.partition(self.chunks.count()), self.out.dst(run), self.states.blocks().shape()[0]);
        let (isa, chunks) = (run.isa, self.chunks);
        // SAFETY: what `RecurrentKernel::advance` is promised; `Site` bound rows that lie whole in their memory and a
        // state of the op's types, which say how many channels and rows all of them have; workers take disjoint
        // channels.
        unsafe {
            match &self.recurrence {
                Recurrence::CausalConv1d { x, weight, bias } => {
                    let bias = bias.as_ref().map(|bias| bias.first(run));
                    let step = CausalConv1dStep { kept: n, x: x.src(run), weight: weight.src(run), bias };
                    advance(isa, step, tokens, chunks, share, out);
                }
                Recurrence::SsmScan { rows, skip, heads_per_group } => {
                    let [x, dt, decay, b, c] = [0, 1, 2, 3, 4].map(|at: usize| rows[at].src(run));
                    let (skip, heads_per_group) = (skip.as_ref().map(|skip| skip.first(run)), *heads_per_group);
                    let step = SsmScanStep { n, heads_per_group, x, dt, decay, b, c, skip };
                    advance(isa, step, tokens, chunks, share, out);
                }
                Recurrence::GatedDelta { rows, heads_per_key } => {
                    let [q, k, v, decay, beta] = [0, 1, 2, 3, 4].map(|at: usize| rows[at].src(run));
                    let step = GatedDeltaStep { n, heads_per_key: *heads_per_key, q, k, v, decay, beta };
                    advance(isa, step, tokens, chunks, share, out);
                }
            }
        }
    }
}
