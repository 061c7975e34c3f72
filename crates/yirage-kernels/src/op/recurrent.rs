//! Ops that carry a state from position to position: `causal_conv1d`, `ssm_scan`, `gated_delta`.
//!
//! A thread has a channel and goes through the tokens, as their states follow from each other. So the bytes do not depend on
//! how a prompt is cut, and a single sequence is as parallel as a layer has channels.

use super::output_words::{THREADS, WordRange};
use super::{NodeView, OpKernels, float_operands, integer_operands};
use crate::elements::Elements;
use crate::grid::FlatGrid;
use crate::node_kernel::NodeKernel;
use crate::scope::KernelScope;
use crate::strided_index::fixed;
use yirage_hal::HalError;
use yirage_ir::op::{CausalConv1d, GatedDelta, OpDef, SsmScan};
use yirage_ir::{Dim, Format};
use yirage_kir::{KernelWriter, Register, ScalarType, Variable};
use yirage_plan::rules::{OpRule, OperandConstraint, OperandKind};
use yirage_plan::{KvCacheLayout, WeightLayout};

pub(crate) const CAUSAL_CONV1D: OpKernels = OpKernels {
    op: CausalConv1d::NAME,
    rules: || vec![OpRule::new(CausalConv1d::NAME, inputs(2, true))],
    lower: causal_conv1d,
};

pub(crate) const SSM_SCAN: OpKernels =
    OpKernels { op: SsmScan::NAME, rules: || vec![OpRule::new(SsmScan::NAME, inputs(5, true))], lower: ssm_scan };

pub(crate) const GATED_DELTA: OpKernels = OpKernels {
    op: GatedDelta::NAME,
    rules: || vec![OpRule::new(GatedDelta::NAME, inputs(5, false))],
    lower: gated_delta,
};

/// A state, so many inputs of floats, positions, sequences and a table, and floats that may be missing.
fn inputs(floats: usize, has_last: bool) -> Vec<Vec<OperandConstraint>> {
    let of_floats = || {
        let plain = [Format::F32, Format::F16, Format::BF16];
        let weight = OperandConstraint::new(OperandKind::Weight(WeightLayout::ROWS), plain);
        [float_operands(), vec![weight]].concat()
    };
    let mut inputs = vec![vec![OperandConstraint::new(OperandKind::KvCache(KvCacheLayout::STATES), [Format::F32])]];
    inputs.extend((0..floats).map(|_| of_floats()));
    inputs.extend((0..3).map(|_| integer_operands()));
    inputs.extend(has_last.then(of_floats));
    inputs
}

/// A token that a thread's channel is at.
struct ChannelStep {
    state: Elements,
    token: Register,
    channel: Register,
    /// The first element of its state before the token, and whether there is one.
    before: Register,
    has_before: Register,
    /// The first element of its state after the token.
    after: Register,
    /// Elements from a row of the state to the next.
    width: Register,
}

impl ChannelStep {
    /// A row of the state before the token.
    fn before(&self, w: &mut KernelWriter, row: Register) -> Register {
        let behind = w.mul(row, self.width);
        let at = w.add(self.before, behind);
        let (x, zero) = (self.state.load(w, at), w.f32(0.0));
        w.select(self.has_before, x, zero)
    }

    fn place(&self, w: &mut KernelWriter, row: Register) -> Register {
        let behind = w.mul(row, self.width);
        w.add(self.after, behind)
    }

    /// A row as it was left.
    fn left(&self, w: &mut KernelWriter, row: Register) -> Register {
        let at = self.place(w, row);
        self.state.load(w, at)
    }

    /// Leaves a row.
    fn leave(&self, w: &mut KernelWriter, row: Register, x: Register) {
        let at = self.place(w, row);
        self.state.store(w, at, x);
    }

    /// An element of the token's row of a value, whose rows have so many.
    fn of_row(&self, w: &mut KernelWriter, rows: Elements, width: u32, at: Register) -> Register {
        let width = w.u32(width);
        let first = w.mul(self.token, width);
        let at = w.add(first, at);
        rows.load(w, at)
    }
}

/// What a variable of a sum has after `a * b` more.
fn add_product(w: &mut KernelWriter, sum: Variable, a: Register, b: Register) {
    let (product, so_far) = (w.mul(a, b), w.get(sum));
    let sum_now = w.add(so_far, product);
    w.set(sum, sum_now);
}

/// A kernel of which `prepare` gives what a token makes of its channel. The step's tokens are the inputs from `steps` on; a
/// block of the state stands for so many positions.
fn kernel<M: Fn(&mut KernelWriter, &ChannelStep) -> Register>(
    view: &NodeView<'_>,
    name: &str,
    (steps, block_positions): (usize, u32),
    prepare: impl FnOnce(&mut KernelScope<'_>) -> Result<M, HalError>,
) -> Result<Vec<NodeKernel>, HalError> {
    let &[rows, width] = &view.input(0).shape[..] else {
        return Err(HalError::Load(format!("a state of {}: a matrix wanted", view.input(0))));
    };
    let (rows, width) = (fixed(rows)?, fixed(width)?);
    let mut scope = view.scope(name, THREADS);
    let state = scope.update(view.ins[0]);
    let make = prepare(&mut scope)?;
    let [positions, seqs, table] = [0, 1, 2].map(|at| scope.read(view.ins[steps + at]));
    let y = scope.write(view.outs[0]);
    let (tokens, blocks) = (scope.size(view.output(0).shape[0]), scope.size(view.input(steps + 2).shape[1]));
    let grid = FlatGrid::of(&[Dim::Const(width)], 1, THREADS, &view.site.bucket)?;
    let w = &mut scope.w;
    let channels = w.u32(width);
    let range = WordRange::new(w, &grid, channels, 1);
    let thread = w.thread();
    let (from, step) = (w.add(range.first, thread), w.u32(THREADS));
    w.for_each(from, range.end, step, |w, channel| {
        let (zero, one) = (w.u32(0), w.u32(1));
        w.for_each(zero, tokens, one, |w, token| {
            let (position, seq) = (positions.load(w, token), seqs.load(w, token));
            let [position, seq] = [position, seq].map(|x| w.bitcast(ScalarType::U32, x));
            let first = w.mul(seq, blocks);
            let has_before = w.less(zero, position);
            let earlier = w.sub(position, one);
            let earlier = w.select(has_before, earlier, zero);
            let place = |w: &mut KernelWriter, position: Register| {
                let (per, size) = (w.u32(block_positions), w.u32(rows * width));
                let block = w.div(position, per);
                let at = w.add(first, block);
                let block = table.load(w, at);
                let block = w.bitcast(ScalarType::U32, block);
                let first = w.mul(block, size);
                w.add(first, channel)
            };
            let (before, after) = (place(w, earlier), place(w, position));
            let at = ChannelStep { state, token, channel, before, has_before, after, width: channels };
            let made = make(w, &at);
            let row = w.mul(token, channels);
            let to = w.add(row, channel);
            y.store(w, to, made);
        });
    });
    Ok(vec![scope.finish(grid.axes(), 0)])
}

fn causal_conv1d(view: &NodeView<'_>) -> Result<Vec<NodeKernel>, HalError> {
    let (kept, width) = (fixed(view.input(0).shape[0])?, fixed(view.input(0).shape[1])?);
    let block_positions = view.op::<CausalConv1d>()?.block_positions;
    kernel(view, CausalConv1d::NAME, (3, block_positions), |scope| {
        let (x, weight) = (scope.read(view.ins[1]), scope.read(view.ins[2]));
        let bias = view.ins.get(6).map(|&bias| scope.read(bias));
        Ok(move |w: &mut KernelWriter, at: &ChannelStep| {
            let first = match bias {
                Some(bias) => bias.load(w, at.channel),
                None => w.f32(0.0),
            };
            let y = w.variable(first);
            let tap = |w: &mut KernelWriter, row: Register, x: Register| {
                let width = w.u32(width);
                let first = w.mul(row, width);
                let place = w.add(first, at.channel);
                let factor = weight.load(w, place);
                add_product(w, y, factor, x);
            };
            let (zero, one, last) = (w.u32(0), w.u32(1), w.u32(kept));
            w.for_each(zero, last, one, |w, row| {
                let x = at.before(w, row);
                tap(w, row, x);
                // The row has been read, so that a state may be left where it was.
                let is_behind = w.less(zero, row);
                w.when(is_behind, |w| {
                    let to = w.sub(row, one);
                    at.leave(w, to, x);
                });
            });
            let x = at.of_row(w, x, width, at.channel);
            let newest = w.u32(kept - 1);
            at.leave(w, newest, x);
            tap(w, last, x);
            w.get(y)
        })
    })
}

/// Where the elements of a channel's head, or of what its head shares with others, begin in a row.
fn of_head(w: &mut KernelWriter, channel: Register, channels: u32, n: u32) -> Register {
    let (channels, n) = (w.u32(channels), w.u32(n));
    let head = w.div(channel, channels);
    w.mul(head, n)
}

fn ssm_scan(view: &NodeView<'_>) -> Result<Vec<NodeKernel>, HalError> {
    let (op, n, width) = (view.op::<SsmScan>()?, fixed(view.input(0).shape[0])?, fixed(view.input(0).shape[1])?);
    let (heads, groups) = (op.heads, op.groups);
    kernel(view, SsmScan::NAME, (6, op.block_positions), |scope| {
        let [x, dt, decay, b, c] = [1, 2, 3, 4, 5].map(|at| scope.read(view.ins[at]));
        let skip = view.ins.get(9).map(|&skip| scope.read(skip));
        Ok(move |w: &mut KernelWriter, at: &ChannelStep| {
            let head = of_head(w, at.channel, width / heads, 1);
            let group = of_head(w, at.channel, width / groups, n);
            let x = at.of_row(w, x, width, at.channel);
            let (dt, decay) = (at.of_row(w, dt, heads, head), at.of_row(w, decay, heads, head));
            let (given, nothing) = (w.mul(dt, x), w.f32(0.0));
            let y = w.variable(nothing);
            let (zero, one, rows) = (w.u32(0), w.u32(1), w.u32(n));
            w.for_each(zero, rows, one, |w, row| {
                let inside = w.add(group, row);
                let (b, c) = (at.of_row(w, b, groups * n, inside), at.of_row(w, c, groups * n, inside));
                let before = at.before(w, row);
                let (kept, added) = (w.mul(decay, before), w.mul(given, b));
                let s = w.add(kept, added);
                at.leave(w, row, s);
                add_product(w, y, c, s);
            });
            if let Some(skip) = skip {
                let skip = skip.load(w, head);
                add_product(w, y, skip, x);
            }
            w.get(y)
        })
    })
}

fn gated_delta(view: &NodeView<'_>) -> Result<Vec<NodeKernel>, HalError> {
    let (op, n, width) = (view.op::<GatedDelta>()?, fixed(view.input(0).shape[0])?, fixed(view.input(0).shape[1])?);
    let (heads, key_heads) = (op.heads, op.key_heads);
    kernel(view, GatedDelta::NAME, (6, op.block_positions), |scope| {
        let [q, k, v, decay, beta] = [1, 2, 3, 4, 5].map(|at| scope.read(view.ins[at]));
        Ok(move |w: &mut KernelWriter, at: &ChannelStep| {
            let head = of_head(w, at.channel, width / heads, 1);
            let key = of_head(w, at.channel, width / key_heads, n);
            let (decay, beta) = (at.of_row(w, decay, heads, head), at.of_row(w, beta, heads, head));
            let nothing = w.f32(0.0);
            let (said, y) = (w.variable(nothing), w.variable(nothing));
            let (zero, one, rows) = (w.u32(0), w.u32(1), w.u32(n));
            w.for_each(zero, rows, one, |w, row| {
                let inside = w.add(key, row);
                let (k, before) = (at.of_row(w, k, key_heads * n, inside), at.before(w, row));
                let s = w.mul(decay, before);
                at.leave(w, row, s);
                add_product(w, said, k, s);
            });
            let (v, said) = (at.of_row(w, v, width, at.channel), w.get(said));
            let missing = w.sub(v, said);
            let correction = w.mul(missing, beta);
            w.for_each(zero, rows, one, |w, row| {
                let inside = w.add(key, row);
                let (q, k) = (at.of_row(w, q, key_heads * n, inside), at.of_row(w, k, key_heads * n, inside));
                let (left, added) = (at.left(w, row), w.mul(k, correction));
                let s = w.add(left, added);
                at.leave(w, row, s);
                add_product(w, y, q, s);
            });
            w.get(y)
        })
    })
}
