//! `sample`: a group makes the token of a sequence.
//!
//! What is computed, is computed as the op says, bit by bit: floats of 32 bits in the op's order, numbers of 64 bits in words.

mod adjust;
mod draw;
mod logprobs;
mod random;
mod weight;

use super::output_words::WordRange;
use super::row_group::{GroupWords, LEAST_KEY, THREADS, for_each_element, order_key};
use super::{NodeView, OpKernels};
use crate::elements::Elements;
use crate::grid::FlatGrid;
use crate::math;
use crate::node_kernel::{NodeKernel, Operand};
use crate::scope::KernelScope;
use crate::strided_index::fixed;
use crate::workspace::Workspace;
use adjust::LogitRow;
use draw::DrawMemory;
use weight::ChunkSums;
use yirage_hal::HalError;
use yirage_ir::op::sample::SampleInput;
use yirage_ir::op::{OpDef, Sample};
use yirage_ir::{DType, Sym, Type};
use yirage_kir::{KernelWriter, Register, ScalarType, Variable};
use yirage_plan::rules::{OpRule, OperandConstraint, OperandKind};

pub(crate) const KERNELS: OpKernels = OpKernels { op: Sample::NAME, rules, lower };

fn rules() -> Vec<OpRule> {
    let words = [DType::F32, DType::I32, DType::U32];
    let anywhere = [OperandKind::Arena, OperandKind::StepInput].map(|kind| OperandConstraint::new(kind, words));
    vec![OpRule::new(Sample::NAME, vec![anywhere.into()])]
}

fn lower(view: &NodeView<'_>) -> Result<Vec<NodeKernel>, HalError> {
    let op = view.op::<Sample>()?;
    let seqs = view.output(0).shape[0];
    let mut scope = view.scope("sample", THREADS);
    let grid = FlatGrid::of(&[seqs], 1, 1, &view.site.bucket)?;
    let sequences = scope.size(seqs);
    let mut workspace = view.workspace;
    let sampler = SampleKernel::new(&mut scope, view, op, &mut workspace)?;
    let w = &mut scope.w;
    let (range, one) = (WordRange::new(w, &grid, sequences, 1), w.u32(1));
    w.for_each(range.first, range.end, one, |w, s| sampler.sequence(w, s));
    Ok(vec![scope.finish(grid.axes(), workspace.bytes())])
}

/// What a kernel reads and writes.
struct SampleKernel<'a> {
    op: &'a Sample,
    vocabulary: u32,
    inputs: Vec<(SampleInput, Elements)>,
    /// Rows of logits.
    rows: Register,
    /// Entries of biases and of the history, of all sequences.
    entry_counts: [Register; 2],
    /// Rows of logits that were changed, where some are.
    adjusted: Option<Elements>,
    /// Of draws and log-probabilities.
    sums: Option<ChunkSums>,
    draw_memory: Option<DrawMemory>,
    outs: Vec<Elements>,
    words: GroupWords,
}

/// What the logits of a row are like.
struct RowSurvey {
    /// The first token whose logit is NaN or infinite; none is [`u32::MAX`].
    bad: Register,
    /// The first token with the largest logit.
    best: Register,
    /// Whether its logit is above -infinity.
    has_best: Register,
}

/// Why a row gives no token: the words of the op's output.
struct FaultVariables {
    kind: Variable,
    token: Variable,
    value: Variable,
}

impl<'a> SampleKernel<'a> {
    fn new(
        scope: &mut KernelScope<'_>,
        view: &NodeView<'_>,
        op: &'a Sample,
        workspace: &mut Workspace,
    ) -> Result<SampleKernel<'a>, HalError> {
        let vocabulary = fixed(view.input(0).shape[1])?;
        let inputs = op.inputs().into_iter().zip(&view.ins).map(|(slot, &operand)| (slot, scope.read(operand)));
        let inputs = inputs.collect();
        let changes = op.mask || op.bias || op.penalties;
        let adjusted = if changes { Some(rows(scope, view, workspace, vocabulary)?) } else { None };
        let sums = if op.draw || op.logprobs {
            let [parts, sums] = ChunkSums::widths(vocabulary);
            let parts = rows(scope, view, workspace, parts)?;
            Some(ChunkSums { parts, sums: words(scope, view, workspace, sums)? })
        } else {
            None
        };
        let draw_memory = if op.draw {
            let counts = scope.w.shared(ScalarType::U32, THREADS);
            let weights = rows(scope, view, workspace, vocabulary)?;
            Some(DrawMemory { weights, kept: words(scope, view, workspace, vocabulary)?, counts })
        } else {
            None
        };
        Ok(SampleKernel {
            op,
            vocabulary,
            inputs,
            rows: scope.size(view.input(0).shape[0]),
            entry_counts: [Sym::Blocks, Sym::Tokens].map(|sym| scope.size(sym.into())),
            adjusted,
            sums,
            draw_memory,
            outs: view.outs.iter().map(|&out| scope.write(out)).collect(),
            words: GroupWords::new(&mut scope.w),
        })
    }

    /// An input that the op's flags say is there.
    fn input(&self, slot: SampleInput) -> &Elements {
        let found = self.inputs.iter().find(|(known, _)| *known == slot);
        &found.unwrap_or(&self.inputs[0]).1
    }

    fn sequence(&self, w: &mut KernelWriter, s: Register) {
        let row = self.input(SampleInput::Row).load(w, s);
        let row = w.bitcast(ScalarType::U32, row);
        let (is_row, zero, vocabulary) = (w.less(row, self.rows), w.u32(0), w.u32(self.vocabulary));
        let row = w.select(is_row, row, zero);
        let end = w.select(is_row, vocabulary, zero);
        let given = LogitRow { elements: *self.input(SampleInput::Logits), first: w.mul(row, vocabulary) };
        let fault = FaultVariables { kind: w.variable(zero), token: w.variable(zero), value: w.variable(zero) };
        let survey = self.survey(w, &given, end);
        fault.of_row(w, &given, &survey, 1);
        let end = fault.none_or(w, end);
        let token = match self.adjusted {
            None => self.draw(w, s, &given, &survey, end),
            Some(elements) => {
                let row = LogitRow { elements, first: w.mul(s, vocabulary) };
                self.adjust(w, s, &given, &row, end);
                let survey = self.survey(w, &row, end);
                let is_new = w.less(zero, end);
                w.when(is_new, |w| fault.of_row(w, &row, &survey, 2));
                let end = fault.none_or(w, end);
                self.draw(w, s, &row, &survey, end)
            }
        };
        self.report(w, s, &fault, token);
        let end = fault.none_or(w, end);
        self.logprobs(w, s, &given, &survey, token, end);
    }

    /// A token's logit; 0 where there is no row.
    fn value_or_zero(&self, w: &mut KernelWriter, row: &LogitRow, token: Register, end: Register) -> Register {
        let (zero, none) = (w.f32(0.0), w.u32(0));
        let (value, is_row) = (w.variable(zero), w.less(none, end));
        w.when(is_row, |w| {
            let logit = row.load(w, token);
            w.set(value, logit);
        });
        w.get(value)
    }

    /// What the first `end` logits are like. All threads come here.
    fn survey(&self, w: &mut KernelWriter, row: &LogitRow, end: Register) -> RowSurvey {
        let (none, zero) = (w.u32(u32::MAX), w.u32(0));
        let (bad, key, best) = (w.variable(none), w.variable(zero), w.variable(zero));
        for_each_element(w, end, |w, token| {
            let (logit, infinite) = (row.load(w, token), w.f32(f32::INFINITY));
            let (nan, infinite) = (math::is_nan(w, logit), w.equal(logit, infinite));
            let is_bad = w.or(nan, infinite);
            let first = w.get(bad);
            let earlier = w.min(first, token);
            let first = w.select(is_bad, earlier, first);
            w.set(bad, first);
            let (own, largest) = (order_key(w, logit), w.get(key));
            let is_larger = w.less(largest, own);
            w.when(is_larger, |w| {
                w.set(key, own);
                w.set(best, token);
            });
        });
        let (bad, key, best) = (w.get(bad), w.get(key), w.get(best));
        let bad = self.words.least(w, bad);
        let [key, best] = self.words.best(w, key, best);
        let least = w.u32(LEAST_KEY);
        RowSurvey { bad, best, has_best: w.less(least, key) }
    }

    /// Writes the token, or why there is none.
    fn report(&self, w: &mut KernelWriter, s: Register, fault: &FaultVariables, token: Register) {
        let (thread, zero) = (w.thread(), w.u32(0));
        let is_first = w.equal(thread, zero);
        w.when(is_first, |w| {
            let [kind, at, value] = [fault.kind, fault.token, fault.value].map(|word| w.get(word));
            let (is_right, none, three) = (w.equal(kind, zero), w.u32(u32::MAX), w.u32(3));
            let token = w.select(is_right, token, none);
            self.outs[0].store(w, s, token);
            let first = w.mul(s, three);
            for (word, value) in (0..).zip([kind, at, value]) {
                let word = w.u32(word);
                let place = w.add(first, word);
                self.outs[1].store(w, place, value);
            }
        });
    }
}

/// So many floats for each sequence, in the workspace.
fn rows(
    scope: &mut KernelScope<'_>,
    view: &NodeView<'_>,
    workspace: &mut Workspace,
    width: u32,
) -> Result<Elements, HalError> {
    let operand: Operand = workspace.take(&Type::rows(Sym::Seqs, width), &view.site.bucket)?;
    Ok(scope.update(operand))
}

/// So many words for each sequence, in the workspace.
fn words(
    scope: &mut KernelScope<'_>,
    view: &NodeView<'_>,
    workspace: &mut Workspace,
    width: u32,
) -> Result<Elements, HalError> {
    let ty = Type { dtype: DType::U32, ..Type::rows(Sym::Seqs, width) };
    let operand = workspace.take(&ty, &view.site.bucket)?;
    Ok(scope.update(operand))
}

impl FaultVariables {
    /// What is wrong with a row: `kind` where a logit is NaN or infinite, 3 where there is no token or no row.
    fn of_row(&self, w: &mut KernelWriter, row: &LogitRow, survey: &RowSurvey, kind: u32) {
        let none = w.u32(u32::MAX);
        let is_bad = w.not_equal(survey.bad, none);
        w.either(
            is_bad,
            |w| {
                let (kind, logit) = (w.u32(kind), row.load(w, survey.bad));
                let bits = w.bitcast(ScalarType::U32, logit);
                w.set(self.kind, kind);
                w.set(self.token, survey.bad);
                w.set(self.value, bits);
            },
            |w| {
                let (nothing, zero) = (w.u32(3), w.u32(0));
                let kind = w.select(survey.has_best, zero, nothing);
                w.set(self.kind, kind);
            },
        );
    }

    /// `end` where nothing is wrong so far, and otherwise 0.
    fn none_or(&self, w: &mut KernelWriter, end: Register) -> Register {
        let (kind, zero) = (w.get(self.kind), w.u32(0));
        let is_right = w.equal(kind, zero);
        w.select(is_right, end, zero)
    }
}
