//! `route`: a group chooses a token's experts: scores in shared memory, and the rank of each expert by comparing all.

use super::output_words::WordRange;
use super::row_group::order_key;
use super::{NodeView, OpKernels, plain_operands};
use crate::elements::Elements;
use crate::grid::FlatGrid;
use crate::math;
use crate::node_kernel::NodeKernel;
use crate::scope::KernelScope;
use crate::strided_index::fixed;
use yirage_hal::HalError;
use yirage_ir::DType;
use yirage_ir::op::{OpDef, Route, Scoring};
use yirage_kir::{KernelMemory, KernelWriter, Register, ScalarType, Variable};
use yirage_plan::rules::OpRule;
use yirage_plan::{NumberTest, Predicate, Quantity};

pub(crate) const KERNELS: OpKernels = OpKernels { op: Route::NAME, rules, lower };

/// Threads of a group.
const THREADS: u32 = 64;

/// Experts that a group has room for.
const MOST_EXPERTS: u32 = 1024;

fn rules() -> Vec<OpRule> {
    let width = Quantity::Size { input: 0, from_last: 0 };
    let rule = OpRule::new(Route::NAME, vec![plain_operands()])
        .wanting(Predicate::Number(width, NumberTest::AtMost(MOST_EXPERTS)))
        .wanting(Predicate::Outputs(vec![DType::F32, DType::I32]));
    vec![rule]
}

fn lower(view: &NodeView<'_>) -> Result<Vec<NodeKernel>, HalError> {
    let op = view.op::<Route>()?;
    let &[rows, experts] = &view.input(0).shape[..] else {
        return Err(HalError::Load(format!("logits of {}: a matrix wanted", view.input(0))));
    };
    let experts = fixed(experts)?;
    let mut scope = view.scope("route", THREADS);
    let grid = FlatGrid::of(&[rows], 1, 1, &view.site.bucket)?;
    let count = scope.size(rows);
    let router = Router::new(&mut scope, view, op, experts);
    let w = &mut scope.w;
    let (range, one) = (WordRange::new(w, &grid, count, 1), w.u32(1));
    w.for_each(range.first, range.end, one, |w, token| router.token(w, token));
    Ok(vec![scope.finish(grid.axes(), 0)])
}

/// What a kernel reads, writes and shares.
struct Router<'a> {
    op: &'a Route,
    experts: u32,
    logits: Elements,
    bias: Option<Elements>,
    weights: Elements,
    chosen: Elements,
    /// The score of each expert.
    scores: KernelMemory,
    /// What each expert is chosen by, in the order of numbers.
    keys: KernelMemory,
    /// The score of each group, where there are several.
    groups: KernelMemory,
    /// The expert of each rank.
    ranks: KernelMemory,
    /// A number a thread.
    partial: KernelMemory,
}

impl<'a> Router<'a> {
    fn new(scope: &mut KernelScope<'_>, view: &NodeView<'_>, op: &'a Route, experts: u32) -> Router<'a> {
        let mut shared = |ty: ScalarType, len: u32| scope.w.shared(ty, len);
        let (scores, keys) = (shared(ScalarType::F32, experts), shared(ScalarType::U32, experts));
        let (groups, ranks) = (shared(ScalarType::F32, op.groups), shared(ScalarType::U32, op.top_k));
        let partial = shared(ScalarType::F32, THREADS);
        Router {
            op,
            experts,
            logits: scope.read(view.ins[0]),
            bias: view.ins.get(1).map(|&bias| scope.read(bias)),
            weights: scope.write(view.outs[0]),
            chosen: scope.write(view.outs[1]),
            scores,
            keys,
            groups,
            ranks,
            partial,
        }
    }

    fn token(&self, w: &mut KernelWriter, token: Register) {
        let experts = w.u32(self.experts);
        let first = w.mul(token, experts);
        self.score(w, first);
        self.each_expert(w, |w, expert| {
            let key = self.key(w, first, expert);
            w.store(self.keys, expert, key);
        });
        w.barrier();
        if self.op.groups > 1 {
            self.limit_groups(w);
        }
        self.each_expert(w, |w, expert| {
            let rank = self.rank(w, expert);
            let top = w.u32(self.op.top_k);
            let is_chosen = w.less(rank, top);
            w.when(is_chosen, |w| w.store(self.ranks, rank, expert));
        });
        w.barrier();
        self.write(w, token);
        // The next token's scores overwrite these.
        w.barrier();
    }

    fn each_expert(&self, w: &mut KernelWriter, body: impl FnOnce(&mut KernelWriter, Register)) {
        let (thread, threads, experts) = (w.thread(), w.u32(THREADS), w.u32(self.experts));
        w.for_each(thread, experts, threads, body);
    }

    /// Writes the score of each expert.
    fn score(&self, w: &mut KernelWriter, first: Register) {
        let logit = |w: &mut KernelWriter, expert: Register| {
            let at = w.add(first, expert);
            self.logits.load(w, at)
        };
        if self.op.scoring != Scoring::Softmax {
            self.each_expert(w, |w, expert| {
                let logit = logit(w, expert);
                let sigmoid = self.op.scoring == Scoring::Sigmoid;
                let score = if sigmoid { math::sigmoid(w, logit) } else { logit };
                w.store(self.scores, expert, score);
            });
            return w.barrier();
        }
        let (lowest, zero) = (w.f32(f32::NEG_INFINITY), w.f32(0.0));
        let largest = self.over_threads(
            w,
            lowest,
            |w, so_far, expert| {
                let logit = logit(w, expert);
                math::larger(w, so_far, logit)
            },
            math::larger,
        );
        let sum = self.over_threads(
            w,
            zero,
            |w, so_far, expert| {
                let logit = logit(w, expert);
                let less = w.sub(logit, largest);
                let weight = math::exp(w, less);
                w.store(self.scores, expert, weight);
                w.add(so_far, weight)
            },
            KernelWriter::add,
        );
        self.each_expert(w, |w, expert| {
            let weight = w.load(self.scores, expert);
            let score = w.div(weight, sum);
            w.store(self.scores, expert, score);
        });
        w.barrier();
    }

    /// Each thread's experts joined in ascending order, and then the threads' results in theirs; in every thread.
    fn over_threads(
        &self,
        w: &mut KernelWriter,
        identity: Register,
        add: impl FnOnce(&mut KernelWriter, Register, Register) -> Register,
        join: impl FnOnce(&mut KernelWriter, Register, Register) -> Register,
    ) -> Register {
        let (thread, zero, one, threads) = (w.thread(), w.u32(0), w.u32(1), w.u32(THREADS));
        let own: Variable = w.variable(identity);
        self.each_expert(w, |w, expert| {
            let so_far = w.get(own);
            let next = add(w, so_far, expert);
            w.set(own, next);
        });
        let mine = w.get(own);
        w.store(self.partial, thread, mine);
        w.barrier();
        w.set(own, identity);
        w.for_each(zero, threads, one, |w, other| {
            let (so_far, other) = (w.get(own), w.load(self.partial, other));
            let next = join(w, so_far, other);
            w.set(own, next);
        });
        w.barrier();
        w.get(own)
    }

    /// What an expert is chosen by. Scores grow with logits, which are exact: where nothing is added they are compared.
    fn key(&self, w: &mut KernelWriter, first: Register, expert: Register) -> Register {
        let value = match self.bias {
            None => {
                let at = w.add(first, expert);
                self.logits.load(w, at)
            }
            Some(_) => self.biased(w, expert),
        };
        order_key(w, value)
    }

    /// An expert's score with its bias.
    fn biased(&self, w: &mut KernelWriter, expert: Register) -> Register {
        let score = w.load(self.scores, expert);
        let Some(bias) = &self.bias else { return score };
        let bias = bias.load(w, expert);
        w.add(score, bias)
    }

    /// Takes their chance from experts outside the best groups.
    fn limit_groups(&self, w: &mut KernelWriter) {
        let (thread, zero, one, threads) = (w.thread(), w.u32(0), w.u32(1), w.u32(THREADS));
        let (groups, size) = (w.u32(self.op.groups), w.u32(self.experts / self.op.groups));
        w.for_each(thread, groups, threads, |w, group| {
            let value = self.two_best(w, group);
            w.store(self.groups, group, value);
        });
        w.barrier();
        w.for_each(thread, groups, threads, |w, group| {
            let own = w.load(self.groups, group);
            let (own, rank) = (order_key(w, own), w.variable(zero));
            w.for_each(zero, groups, one, |w, other| {
                let value = w.load(self.groups, other);
                let value = order_key(w, value);
                count_better(w, rank, [own, group], [value, other]);
            });
            let (rank, top) = (w.get(rank), w.u32(self.op.top_groups));
            let is_out = w.less_equal(top, rank);
            w.when(is_out, |w| {
                let (nothing, from) = (w.f32(f32::NEG_INFINITY), w.mul(group, size));
                let (nothing, to) = (order_key(w, nothing), w.add(from, size));
                w.for_each(from, to, one, |w, expert| w.store(self.keys, expert, nothing));
            });
        });
        w.barrier();
    }

    /// The sum of a group's two best scores.
    fn two_best(&self, w: &mut KernelWriter, group: Register) -> Register {
        let size = self.experts / self.op.groups;
        let (length, one, lowest) = (w.u32(size), w.u32(1), w.f32(f32::NEG_INFINITY));
        let from = w.mul(group, length);
        let to = w.add(from, length);
        let (best, second) = (w.variable(lowest), w.variable(lowest));
        w.for_each(from, to, one, |w, expert| {
            let (value, largest) = (self.biased(w, expert), w.get(best));
            let is_best = w.less(largest, value);
            w.either(
                is_best,
                |w| {
                    w.set(second, largest);
                    w.set(best, value);
                },
                |w| {
                    let so_far = w.get(second);
                    let next = math::larger(w, so_far, value);
                    w.set(second, next);
                },
            );
        });
        let (best, second) = (w.get(best), w.get(second));
        if size > 1 { w.add(best, second) } else { best }
    }

    /// How many experts are chosen before one.
    fn rank(&self, w: &mut KernelWriter, expert: Register) -> Register {
        let (zero, one, experts) = (w.u32(0), w.u32(1), w.u32(self.experts));
        let (own, rank) = (w.load(self.keys, expert), w.variable(zero));
        w.for_each(zero, experts, one, |w, other| {
            let key = w.load(self.keys, other);
            count_better(w, rank, [own, expert], [key, other]);
        });
        w.get(rank)
    }

    /// Writes the chosen experts and their weights.
    fn write(&self, w: &mut KernelWriter, token: Register) {
        let (thread, threads, top, zero, one) = (w.thread(), w.u32(THREADS), w.u32(self.op.top_k), w.u32(0), w.u32(1));
        let over_chosen = self.op.scoring == Scoring::SoftmaxTopK;
        let nothing = w.f32(0.0);
        let largest = w.load(self.ranks, zero);
        let largest = w.load(self.scores, largest);
        let weight = |w: &mut KernelWriter, rank: Register| {
            let expert = w.load(self.ranks, rank);
            let score = w.load(self.scores, expert);
            if !over_chosen {
                return (expert, score);
            }
            let less = w.sub(score, largest);
            (expert, math::exp(w, less))
        };
        let sum = w.variable(nothing);
        if self.op.normalize || over_chosen {
            w.for_each(zero, top, one, |w, rank| {
                let (so_far, (_, own)) = (w.get(sum), weight(w, rank));
                let next = w.add(so_far, own);
                w.set(sum, next);
            });
        }
        let sum = w.get(sum);
        let first = w.mul(token, top);
        w.for_each(thread, top, threads, |w, rank| {
            let ((expert, own), at) = (weight(w, rank), w.add(first, rank));
            let own = if self.op.normalize || over_chosen { w.div(own, sum) } else { own };
            let scale = w.f32(self.op.scale.0);
            let own = w.mul(own, scale);
            self.weights.store(w, at, own);
            self.chosen.store(w, at, expert);
        });
    }
}

/// Counts an element that is better than one's own: of equal keys the lower number is.
fn count_better(w: &mut KernelWriter, count: Variable, own: [Register; 2], other: [Register; 2]) {
    let (better, equal, early) = (w.less(own[0], other[0]), w.equal(own[0], other[0]), w.less(other[1], own[1]));
    let tie = w.and(equal, early);
    let before = w.or(better, tie);
    let before = w.convert(ScalarType::U32, before);
    let so_far = w.get(count);
    let next = w.add(so_far, before);
    w.set(count, next);
}
