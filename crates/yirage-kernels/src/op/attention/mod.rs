//! `attention`: a group makes the results of a token for a few query heads that read one key head.
//!
//! Positions are met in chunks of a fixed length, in ascending order: their scores, the largest of them, their weights
//! relative to the largest score so far, and the sums of values, each element's in one thread. So the order of additions
//! follows from the op and from a token's own position: no batch and no other sequence changes a bit.

mod cache_rows;
mod native;
mod seen;

use super::kv_append::{cache, step_integers};
use super::output_words::WordRange;
use super::{NodeView, OpKernels, plain_operands};
use crate::elements::Elements;
use crate::grid::FlatGrid;
use crate::math;
use crate::node_kernel::NodeKernel;
use crate::scope::KernelScope;
use crate::strided_index::count;
use cache_rows::{BLOCK, CacheRows};
use seen::{SeenPositions, SeenRange};
use yirage_hal::HalError;
use yirage_ir::op::{Attention, OpDef};
use yirage_ir::{DType, Dim};
use yirage_kir::{KernelMemory, KernelWriter, Register, ScalarType, Variable};
use yirage_plan::rules::OpRule;
use yirage_plan::{NumberTest, Predicate, Quantity};

pub(crate) const KERNELS: OpKernels = OpKernels { op: Attention::NAME, rules, lower };

/// Positions of a chunk that a thread makes the scores of.
const POSITIONS: u32 = 2;

/// Threads that look for the largest score of a head.
const SEARCHERS: u32 = 8;

/// The score of what is not seen.
const LOWEST: f32 = f32::MIN;

/// Elements of a value that a group has room for.
const MOST_VALUES: u32 = 2048;

fn rules() -> Vec<OpRule> {
    let values = || Predicate::Number(Quantity::Attribute("v_width".into()), NumberTest::AtMost(MOST_VALUES));
    let rule = |inputs| OpRule::new(Attention::NAME, inputs).wanting(values()).wanting(f32_output());
    let (x, given) = (plain_operands, step_integers);
    vec![
        rule(vec![x(), cache(), given(), given(), given(), x()]).when("cached", true),
        rule(vec![x(), x(), x(), given(), given(), x()]).when("cached", false),
    ]
}

fn f32_output() -> Predicate {
    Predicate::Outputs(vec![DType::F32])
}

fn lower(view: &NodeView<'_>) -> Result<Vec<NodeKernel>, HalError> {
    let op = view.op::<Attention>()?;
    if let Some(attention) = view.site.attention {
        return native::lower(view, op, attention);
    }
    let tokens = view.input(0).shape[0];
    let shape = GroupShape::new(op, view);
    let mut scope = view.scope("attention", shape.threads);
    let groups = Dim::Const(op.heads / shape.heads);
    let grid = FlatGrid::of(&[tokens, groups], 1, 1, &view.site.bucket)?;
    let all = count(&mut scope, &[tokens, groups]);
    let group = AttentionGroup::new(&mut scope, view, op, shape)?;
    let w = &mut scope.w;
    let (range, one) = (WordRange::new(w, &grid, all, 1), w.u32(1));
    w.for_each(range.first, range.end, one, |w, piece| group.piece(w, piece));
    Ok(vec![scope.finish(grid.axes(), 0)])
}

/// How a group shares its work: a property of the op alone.
#[derive(Clone, Copy)]
struct GroupShape {
    threads: u32,
    /// Query heads.
    heads: u32,
    /// Neighbouring elements of a value that a thread has.
    run: u32,
    /// Such runs of a value.
    runs: u32,
}

impl GroupShape {
    fn new(op: &Attention, view: &NodeView<'_>) -> GroupShape {
        let dtype = view.input(if op.cached { 1 } else { 2 }).dtype;
        let even = [op.k_width, op.v_width].iter().all(|n| n.is_multiple_of(2));
        let run = if even || (dtype == DType::F32 && op.v_width.is_multiple_of(2)) { 2 } else { 1 };
        let runs = op.v_width / run;
        let threads = runs.next_multiple_of(32).clamp(32, 256);
        // Scores and weights of a chunk are 8 KiB at most.
        let most = (threads / SEARCHERS).min(8).min(1024 / (threads * POSITIONS));
        let ratio = op.heads / op.kv_heads;
        let heads = (1..=most.max(1)).rev().find(|n| ratio.is_multiple_of(*n)).unwrap_or(1);
        GroupShape { threads, heads, run, runs }
    }

    /// Positions of a chunk.
    fn chunk(&self) -> u32 {
        self.threads * POSITIONS
    }

    /// Runs of a value that a thread has.
    fn runs_per_thread(&self) -> u32 {
        self.runs.div_ceil(self.threads)
    }
}

/// What a kernel reads, writes and shares.
struct AttentionGroup<'a> {
    op: &'a Attention,
    shape: GroupShape,
    queries: Elements,
    keys: CacheRows,
    values: CacheRows,
    seen: SeenPositions,
    sinks: Option<Elements>,
    out: Elements,
    /// Of each head the scores of a chunk.
    scores: KernelMemory,
    /// Of each head the weights of a chunk.
    weights: KernelMemory,
    /// Of each head the largest scores of parts of a chunk.
    largest: KernelMemory,
}

/// Sums that a thread has of a head: the weights, and weighted elements of values.
struct HeadSums {
    largest: Variable,
    weights: Variable,
    values: Vec<Variable>,
}

/// The token and heads of a group.
struct Piece {
    token: Register,
    first_head: Register,
    kv_head: Register,
    range: SeenRange,
    sums: Vec<HeadSums>,
}

/// A position that a thread makes scores of.
struct OwnPosition {
    is_seen: Register,
    /// It, or another that is there.
    at: Register,
    /// Its place in the chunk.
    place: Register,
    /// A score for each head.
    scores: Vec<Variable>,
}

impl<'a> AttentionGroup<'a> {
    fn new(
        scope: &mut KernelScope<'_>,
        view: &NodeView<'_>,
        op: &'a Attention,
        shape: GroupShape,
    ) -> Result<Self, HalError> {
        let (keys, values) = (scope.read(view.ins[1]), scope.read(view.ins[if op.cached { 1 } else { 2 }]));
        let even = |n: u32| n.is_multiple_of(2);
        let pairs = even(op.k_width) && (op.v_in_k || even(op.v_width));
        let memory = [shape.heads * shape.chunk(), shape.heads * shape.chunk(), shape.heads * SEARCHERS];
        let [scores, weights, largest] = memory.map(|len| scope.w.shared(ScalarType::F32, len));
        Ok(AttentionGroup {
            op,
            shape,
            queries: scope.read(view.ins[0]),
            keys: CacheRows { elements: keys, paired: pairs },
            values: CacheRows { elements: values, paired: pairs },
            seen: SeenPositions::new(scope, view, op)?,
            sinks: view.ins.get(5).map(|&sinks| scope.read(sinks)),
            out: scope.write(view.outs[0]),
            scores,
            weights,
            largest,
        })
    }

    /// Elements of a key head with what lies between it and the next.
    fn key_stride(&self) -> u32 {
        if self.op.cached && !self.op.v_in_k { self.op.k_width + self.op.v_width } else { self.op.k_width }
    }

    /// The same of a value head, and what lies before the first.
    fn value_stride(&self) -> (u32, u32) {
        match (self.op.cached, self.op.v_in_k) {
            (true, true) => (self.op.k_width, 0),
            (true, false) => (self.key_stride(), self.op.k_width),
            (false, _) => (self.op.v_width, 0),
        }
    }

    fn piece(&self, w: &mut KernelWriter, piece: Register) {
        let groups = w.u32(self.op.heads / self.shape.heads);
        let (token, group) = (w.div(piece, groups), w.rem(piece, groups));
        let (heads, ratio) = (w.u32(self.shape.heads), w.u32(self.op.heads / self.op.kv_heads));
        let first_head = w.mul(group, heads);
        let kv_head = w.div(first_head, ratio);
        let range = self.seen.range(w, token, self.shape.chunk());
        let (zero, lowest) = (w.f32(0.0), w.f32(LOWEST));
        let values = self.shape.runs_per_thread() * self.shape.run;
        let sums = |w: &mut KernelWriter| HeadSums {
            largest: w.variable(lowest),
            weights: w.variable(zero),
            values: (0..values).map(|_| w.variable(zero)).collect(),
        };
        let sums = (0..self.shape.heads).map(|_| sums(w)).collect();
        let piece = Piece { token, first_head, kv_head, range, sums };
        let chunk = w.u32(self.shape.chunk());
        w.for_each(piece.range.first_chunk, piece.range.end, chunk, |w, start| self.chunk(w, &piece, start));
        self.finish(w, &piece);
    }

    fn chunk(&self, w: &mut KernelWriter, piece: &Piece, start: Register) {
        let own: Vec<OwnPosition> = (0..POSITIONS).map(|at| self.own_position(w, piece, start, at)).collect();
        let any = own.iter().map(|own| own.is_seen).reduce(|a, b| w.or(a, b));
        if let Some(any) = any {
            w.when(any, |w| self.score(w, piece, &own));
        }
        let chunk = self.shape.chunk();
        for own in &own {
            for (head, &score) in (0..).zip(&own.scores) {
                let (score, before) = (w.get(score), w.u32(head * chunk));
                let at = w.add(before, own.place);
                w.store(self.scores, at, score);
            }
        }
        w.barrier();
        self.find_largest(w);
        w.barrier();
        for (head, sums) in (0..).zip(&piece.sums) {
            let (before, largest) = (w.get(sums.largest), self.largest_of(w, head, sums.largest));
            let less = w.sub(before, largest);
            let factor = math::exp(w, less);
            for &sum in sums.values.iter().chain([&sums.weights]) {
                let so_far = w.get(sum);
                let so_far = w.mul(so_far, factor);
                w.set(sum, so_far);
            }
            for own in &own {
                let score = w.get(own.scores[head as usize]);
                let less = w.sub(score, largest);
                let (weight, zero) = (math::exp(w, less), w.f32(0.0));
                let weight = w.select(own.is_seen, weight, zero);
                let before = w.u32(head * chunk);
                let at = w.add(before, own.place);
                w.store(self.weights, at, weight);
            }
        }
        w.barrier();
        self.add_values(w, piece, start);
    }

    fn own_position(&self, w: &mut KernelWriter, piece: &Piece, start: Register, at: u32) -> OwnPosition {
        let (thread, before) = (w.thread(), w.u32(at * self.shape.threads));
        let place = w.add(before, thread);
        let position = w.add(start, place);
        let (is_seen, at) = self.seen.sees(w, &piece.range, position);
        let lowest = w.f32(LOWEST);
        OwnPosition { is_seen, at, place, scores: (0..self.shape.heads).map(|_| w.variable(lowest)).collect() }
    }

    /// The scores of a thread's positions, for each head.
    fn score(&self, w: &mut KernelWriter, piece: &Piece, own: &[OwnPosition]) {
        let stride = self.key_stride();
        let rows: Vec<Register> = own.iter().map(|own| self.row(w, piece, own.at, stride)).collect();
        let (zero, heads, width) = (w.f32(0.0), w.u32(self.op.heads), w.u32(self.op.k_width));
        let first = w.mul(piece.token, heads);
        let first = w.add(first, piece.first_head);
        let queries: Vec<Register> = (0..self.shape.heads)
            .map(|head| {
                let head = w.u32(head);
                let head = w.add(first, head);
                w.mul(head, width)
            })
            .collect();
        for own in own {
            own.scores.iter().for_each(|&score| w.set(score, zero));
        }
        let step = if self.keys.is_q8_0() { BLOCK } else { 8 };
        let whole = self.op.k_width / step * step;
        let (from, to, by) = (w.u32(0), w.u32(whole), w.u32(step));
        w.for_each(from, to, by, |w, at| self.products(w, own, &rows, &queries, at, step));
        if whole < self.op.k_width {
            self.products(w, own, &rows, &queries, to, self.op.k_width - whole);
        }
        for own in own {
            for &score in &own.scores {
                let product = w.get(score);
                let scaled = self.scaled(w, product);
                let lowest = w.f32(LOWEST);
                let scaled = w.select(own.is_seen, scaled, lowest);
                w.set(score, scaled);
            }
        }
    }

    /// Adds the products of so many elements, from `at`, to the scores.
    fn products(
        &self,
        w: &mut KernelWriter,
        own: &[OwnPosition],
        rows: &[Register],
        queries: &[Register],
        at: Register,
        count: u32,
    ) {
        let query = |w: &mut KernelWriter, first: Register| {
            let first = w.add(first, at);
            (0..count)
                .map(|behind| {
                    let behind = w.u32(behind);
                    let at = w.add(first, behind);
                    self.queries.load(w, at)
                })
                .collect::<Vec<Register>>()
        };
        let queries: Vec<Vec<Register>> = queries.iter().map(|&first| query(w, first)).collect();
        for (own, &row) in own.iter().zip(rows) {
            let first = w.add(row, at);
            let (scale, key) = if self.keys.is_q8_0() {
                let elements = w.u32(BLOCK);
                let number = w.div(first, elements);
                let (scale, codes) = self.keys.block(w, number);
                (Some(scale), codes)
            } else {
                (None, self.keys.run(w, first, count))
            };
            for (&score, query) in own.scores.iter().zip(&queries) {
                let zero = w.f32(0.0);
                let so_far = w.get(score);
                let mut sum = if scale.is_some() { zero } else { so_far };
                for (&k, &q) in key.iter().zip(query) {
                    let product = w.mul(k, q);
                    sum = w.add(sum, product);
                }
                if let Some(scale) = scale {
                    let scaled = w.mul(sum, scale);
                    sum = w.add(so_far, scaled);
                }
                w.set(score, sum);
            }
        }
    }

    fn scaled(&self, w: &mut KernelWriter, product: Register) -> Register {
        let (scale, cap) = (w.f32(self.op.scale.0), self.op.softcap.0);
        let score = w.mul(product, scale);
        if cap <= 0.0 {
            return score;
        }
        let cap = w.f32(cap);
        let part = w.div(score, cap);
        let part = math::tanh(w, part);
        w.mul(part, cap)
    }

    /// The first element of a head at a position.
    fn row(&self, w: &mut KernelWriter, piece: &Piece, position: Register, stride: u32) -> Register {
        let slot = self.seen.slot(w, &piece.range, position);
        self.row_of_slot(w, piece, slot, stride)
    }

    fn row_of_slot(&self, w: &mut KernelWriter, piece: &Piece, slot: Register, stride: u32) -> Register {
        let (heads, stride) = (w.u32(self.op.kv_heads), w.u32(stride));
        let before = w.mul(slot, heads);
        let head = w.add(before, piece.kv_head);
        w.mul(head, stride)
    }

    /// The largest scores of parts of a chunk.
    fn find_largest(&self, w: &mut KernelWriter) {
        let (thread, searchers) = (w.thread(), w.u32(self.shape.heads * SEARCHERS));
        let part = self.shape.chunk() / SEARCHERS;
        let searches = w.less(thread, searchers);
        w.when(searches, |w| {
            let (length, one) = (w.u32(part), w.u32(1));
            // Parts of a head lie behind each other, and heads too.
            let first = w.mul(thread, length);
            let start = w.load(self.scores, first);
            let largest = w.variable(start);
            let (from, end) = (w.add(first, one), w.add(first, length));
            w.for_each(from, end, one, |w, at| {
                let (so_far, score) = (w.get(largest), w.load(self.scores, at));
                let larger = math::larger(w, so_far, score);
                w.set(largest, larger);
            });
            let found = w.get(largest);
            w.store(self.largest, thread, found);
        });
    }

    /// The largest score of a head so far, this chunk's among them.
    fn largest_of(&self, w: &mut KernelWriter, head: u32, so_far: Variable) -> Register {
        let mut largest = w.get(so_far);
        for part in 0..SEARCHERS {
            let at = w.u32(head * SEARCHERS + part);
            let other = w.load(self.largest, at);
            largest = math::larger(w, largest, other);
        }
        w.set(so_far, largest);
        largest
    }

    /// Adds the weighted values of a chunk.
    fn add_values(&self, w: &mut KernelWriter, piece: &Piece, start: Register) {
        let (thread, runs) = (w.thread(), w.u32(self.shape.runs));
        let has_values = w.less(thread, runs);
        w.when(has_values, |w| {
            let chunk = w.u32(self.shape.chunk());
            let behind = w.add(start, chunk);
            let (from, end) = (w.max(start, piece.range.first), w.min(behind, piece.range.end));
            self.seen.for_each_stretch(w, &piece.range, from, end, |w, from, end, slots| {
                let (one, four) = (w.u32(1), w.u32(4));
                let length = w.sub(end, from);
                let whole = w.div(length, four);
                let whole = w.mul(whole, four);
                let middle = w.add(from, whole);
                w.for_each(from, middle, four, |w, first| {
                    for at in 0..4 {
                        let at = w.u32(at);
                        let position = w.add(first, at);
                        self.add_value(w, piece, start, position, slots);
                    }
                });
                w.for_each(middle, end, one, |w, position| self.add_value(w, piece, start, position, slots));
            });
        });
    }

    /// Adds what a thread has of the value at a position, `slots` behind which it lies in memory.
    fn add_value(&self, w: &mut KernelWriter, piece: &Piece, start: Register, position: Register, slots: Register) {
        let slot = w.add(slots, position);
        let (stride, before) = self.value_stride();
        let (row, before) = (self.row_of_slot(w, piece, slot, stride), w.u32(before));
        let row = w.add(row, before);
        let runs = self.own_runs(w);
        let mut value = Vec::with_capacity(runs.len() * self.shape.run as usize);
        for (run, _) in runs {
            let length = w.u32(self.shape.run);
            let at = w.mul(run, length);
            let at = w.add(row, at);
            value.extend(self.values.run(w, at, self.shape.run));
        }
        let place = w.sub(position, start);
        for (head, sums) in (0..).zip(&piece.sums) {
            let before = w.u32(head * self.shape.chunk());
            let at = w.add(before, place);
            let weight = w.load(self.weights, at);
            self.add_weighted(w, sums, weight, &value);
        }
    }

    fn add_weighted(&self, w: &mut KernelWriter, sums: &HeadSums, weight: Register, value: &[Register]) {
        let so_far = w.get(sums.weights);
        let sum = w.add(so_far, weight);
        w.set(sums.weights, sum);
        let zero = w.f32(0.0);
        // What is hidden between seen positions is another sequence's: whatever it is, nothing of it is added.
        let is_nothing = w.equal(weight, zero);
        for (&sum, &x) in sums.values.iter().zip(value) {
            let x = if self.op.cached { x } else { w.select(is_nothing, zero, x) };
            let product = w.mul(weight, x);
            let so_far = w.get(sum);
            let next = w.add(so_far, product);
            w.set(sum, next);
        }
    }

    /// The numbers of a thread's runs of a value, and whether they are there; those that are not are the last again.
    fn own_runs(&self, w: &mut KernelWriter) -> Vec<(Register, Option<Register>)> {
        let thread = w.thread();
        (0..self.shape.runs_per_thread())
            .map(|at| {
                let (before, runs, one) = (w.u32(at * self.shape.threads), w.u32(self.shape.runs), w.u32(1));
                let run = w.add(before, thread);
                if (at + 1) * self.shape.threads <= self.shape.runs {
                    return (run, None);
                }
                let (is_there, last) = (w.less(run, runs), w.sub(runs, one));
                (w.min(run, last), Some(is_there))
            })
            .collect()
    }

    /// Writes the results.
    fn finish(&self, w: &mut KernelWriter, piece: &Piece) {
        let (all, width) = (w.u32(self.op.heads), w.u32(self.op.v_width));
        for (head, sums) in (0..).zip(&piece.sums) {
            let head = w.u32(head);
            let head = w.add(piece.first_head, head);
            let (factor, total) = self.with_sink(w, head, sums);
            let before = w.mul(piece.token, all);
            let row = w.add(before, head);
            let row = w.mul(row, width);
            for (at, (run, is_there)) in self.own_runs(w).into_iter().enumerate() {
                let length = self.shape.run as usize;
                let write = |w: &mut KernelWriter| {
                    for (element, &sum) in (0..).zip(&sums.values[at * length..][..length]) {
                        let (length, element) = (w.u32(self.shape.run), w.u32(element));
                        let first = w.mul(run, length);
                        let place = w.add(row, first);
                        let place = w.add(place, element);
                        let sum = w.get(sum);
                        let sum = w.mul(sum, factor);
                        let result = w.div(sum, total);
                        self.out.store(w, place, result);
                    }
                };
                match is_there {
                    None => write(w),
                    Some(is_there) => w.when(is_there, write),
                }
            }
        }
    }

    /// What the sums of a head are multiplied and divided by, with its sink among the scores.
    fn with_sink(&self, w: &mut KernelWriter, head: Register, sums: &HeadSums) -> (Register, Register) {
        let (largest, weights) = (w.get(sums.largest), w.get(sums.weights));
        let Some(sinks) = &self.sinks else { return (w.f32(1.0), weights) };
        let sink = sinks.load(w, head);
        let all = math::larger(w, largest, sink);
        let (less, sink_less) = (w.sub(largest, all), w.sub(sink, all));
        let (factor, sink) = (math::exp(w, less), math::exp(w, sink_less));
        let weights = w.mul(weights, factor);
        (factor, w.add(weights, sink))
    }
}
