//! Products with the experts each token has chosen: an expert's weights meet all its tokens at once.

use super::operand::{Env, Operand, WeightRef};
use super::products::{packed, precision};
use super::program::{Binder, BoundOp, Kernel, Run};
use crate::activation::Layout;
use crate::isa::Isa;
use crate::linear::{self, Linear};
use crate::pack::{BLOCK, PackedMatrix};
use crate::walk::Work;
use std::ops::Range;
use std::sync::Arc;
use yirage_hal::HalError;
use yirage_ir::{DType, Op};

/// One stack of experts.
struct Stack {
    weight: Arc<WeightRef>,
    kernel: linear::Kernel,
    chosen: Operand,
    out: Operand,
    top_k: usize,
    shared: bool,
    /// First byte of the staged input, when the input is f32.
    staged: Option<usize>,
    /// First byte of the rows of experts that several tokens have chosen, together.
    gathered: usize,
}

/// The (token, rank) pairs that chose one expert.
struct Group {
    expert: usize,
    /// Of the pairs in order of their experts.
    pairs: Range<usize>,
}

/// Expert products that share an input.
pub(super) struct Experts {
    x: Operand,
    stacks: Vec<Stack>,
}

impl Experts {
    pub(super) fn new(binder: &mut Binder, ops: Vec<BoundOp>) -> Result<Experts, HalError> {
        let first = ops.first().ok_or_else(|| HalError::Load("a region without products".into()))?;
        let x = first.ins[0].clone();
        let quantised = x.ty().is_some_and(|t| t.dtype == DType::Q8A);
        let tokens = x.rows().map_or(0, |d| d.get(&binder.plan.bucket));
        let mut stacks = Vec::new();
        for bound in ops {
            let Op::ExpertLinear(op) = &bound.op else {
                return Err(HalError::Load(format!("`{}` is not a product with experts", bound.op.name())));
            };
            let weight = packed(&bound.ins[1])?;
            let matrix = weight.get()?.packed().ok_or_else(|| HalError::Load("not repacked".into()))?;
            let wanted = precision(quantised, matrix.format().info().block, binder.precision);
            let kernel = linear::Kernel::new(binder.shared.isa, wanted, matrix.format());
            let kernel = kernel.map_err(|e| HalError::Load(e.to_string()))?;
            let (top_k, parts) = (op.top_k as usize, if op.shared { 1 } else { op.top_k as usize });
            if quantised && parts > 1 && !matrix.k().is_multiple_of(2 * BLOCK) {
                let k = matrix.k();
                return Err(HalError::Load(format!("quantised parts of {k} elements do not lie whole in a row")));
            }
            let row = Layout::new(kernel.form(), 1, matrix.k()).bytes();
            let staged = if quantised { None } else { Some(binder.scratch.take(tokens * parts * row)) };
            let gathered = binder.scratch.take(tokens * op.top_k as usize * row);
            let (chosen, out) = (bound.ins[2].clone(), bound.outs[0].clone());
            stacks.push(Stack {
                weight: weight.clone(),
                kernel,
                chosen,
                out,
                top_k,
                shared: op.shared,
                staged,
                gathered,
            });
        }
        Ok(Experts { x, stacks })
    }

    unsafe fn stage(&self, env: &Env, isa: Isa, s: &Stack, k: usize, tokens: usize, work: Work<'_>) {
        let Some(offset) = s.staged else { return };
        let layout = Layout::new(s.kernel.form(), 1, k);
        let rows = tokens * if s.shared { 1 } else { s.top_k };
        for r in work.share(rows) {
            // SAFETY: the scratch was sized for the bucket's tokens; workers take disjoint rows.
            unsafe {
                let out = env.scratch.as_ptr().add(offset + r * layout.bytes());
                layout.store(isa, self.x.floats(env).add(r * k).cast_const(), k, 0..1, out);
            }
        }
    }

    /// Brings the rows of each expert that several tokens have chosen together, as products of several tokens want them.
    unsafe fn gather(&self, env: &Env, s: &Stack, work: Work<'_>) {
        let Some(matrix) = s.matrix() else { return };
        // SAFETY: the router wrote the choice in an earlier step.
        let chosen = unsafe { s.chosen.ints(env) };
        let (order, groups) = group(chosen, matrix.count());
        if order.len() < chosen.len() {
            let wrong = chosen.iter().position(|&e| usize::try_from(e).map_or(true, |e| e >= matrix.count()));
            let p = wrong.unwrap_or(0);
            env.fail(format!("token {} chose expert {} of {}", p / s.top_k, chosen[p], matrix.count()));
        }
        let one = Layout::new(s.kernel.form(), 1, matrix.k());
        let mine = work.share(order.len());
        for g in groups.iter().filter(|g| g.pairs.len() > 1) {
            let layout = Layout::new(one.form(), g.pairs.len(), one.k());
            let (pairs, own) = (&order[g.pairs.clone()], |at: usize| mine.contains(&(g.pairs.start + at)));
            for (token, &pair) in pairs.iter().enumerate().filter(|(at, _)| own(*at)) {
                let from = self.row(env, s, pair as usize, one.bytes());
                // SAFETY: the scratch has room for every pair; workers take disjoint ones.
                unsafe {
                    let to = env.scratch.as_ptr().add(s.gathered + g.pairs.start * one.bytes());
                    layout.copy_token(from, token, to);
                }
            }
        }
    }

    /// The stored row of a pair: a shared input has one a token, else each pair has its own.
    fn row(&self, env: &Env, s: &Stack, pair: usize, bytes: usize) -> *const u8 {
        let row = if s.shared { pair / s.top_k } else { pair };
        match s.staged {
            Some(offset) => env.scratch.as_ptr().wrapping_add(offset + row * bytes).cast_const(),
            None => self.x.floats(env).cast::<u8>().wrapping_add(row * bytes).cast_const(),
        }
    }

    /// One expert's product with all rows that chose it.
    unsafe fn multiply(&self, env: &Env, s: &Stack, order: &[u32], g: &Group, panels: Range<usize>) {
        let Some(matrix) = s.matrix() else { return };
        let one = Layout::new(s.kernel.form(), 1, matrix.k());
        let pairs = &order[g.pairs.clone()];
        let activations = match pairs {
            [pair] => self.row(env, s, *pair as usize, one.bytes()),
            _ => env.scratch.as_ptr().wrapping_add(s.gathered + g.pairs.start * one.bytes()).cast_const(),
        };
        let job = Linear {
            kernel: &s.kernel,
            weights: matrix,
            matrix: g.expert,
            layout: Layout::new(one.form(), pairs.len(), one.k()),
            activations,
            out: s.out.floats(env),
            ldo: matrix.rows(),
            rows: Some(pairs),
            accumulate: false,
        };
        // SAFETY: activations are whole since an earlier stage or step; workers take disjoint panels.
        unsafe { linear::linear(&job, panels) };
    }

    /// Pieces of all stacks: some panels of one expert each.
    unsafe fn multiply_all(&self, env: &Env, work: Work<'_>) {
        let of = |s| {
            let s: &Stack = s;
            let m = s.matrix()?;
            // SAFETY: the router wrote the choice in an earlier step.
            let (order, groups) = group(unsafe { s.chosen.ints(env) }, m.count());
            let step = (linear::GROUP_BYTES / m.panel_bytes().max(1)).clamp(1, m.panels().max(1));
            Some((s, order, groups, step, m.panels()))
        };
        let stacks: Vec<_> = self.stacks.iter().filter_map(of).collect();
        let counts: Vec<usize> =
            stacks.iter().map(|(_, _, g, step, panels)| g.len() * panels.div_ceil(*step)).collect();
        work.drain(counts.iter().sum(), |some| {
            for piece in some {
                let (mut i, mut at) = (0, piece);
                while at >= counts[i] {
                    at -= counts[i];
                    i += 1;
                }
                let (s, order, groups, step, panels) = &stacks[i];
                let each = panels.div_ceil(*step);
                let first = at % each * step;
                // SAFETY: the caller's contract; pieces are disjoint panels or experts.
                unsafe { self.multiply(env, s, order, &groups[at / each], first..(first + step).min(*panels)) };
            }
        });
    }
}

impl Stack {
    /// The weight; binding has checked that it is one.
    fn matrix(&self) -> Option<&PackedMatrix> {
        self.weight.get().ok()?.packed()
    }
}

/// Pairs in order of the experts they chose, and for each expert that is chosen where its pairs stand. Pairs with an
/// expert that does not exist are left out.
fn group(chosen: &[i32], experts: usize) -> (Vec<u32>, Vec<Group>) {
    let expert = |p: u32| usize::try_from(chosen[p as usize]).unwrap_or(usize::MAX);
    let mut order: Vec<u32> = (0..chosen.len() as u32).filter(|&p| expert(p) < experts).collect();
    order.sort_by_key(|&p| (expert(p), p));
    let mut groups: Vec<Group> = Vec::new();
    for (at, &p) in order.iter().enumerate() {
        match groups.last_mut().filter(|g| g.expert == expert(p)) {
            Some(g) => g.pairs.end = at + 1,
            None => groups.push(Group { expert: expert(p), pairs: at..at + 1 }),
        }
    }
    (order, groups)
}

impl Kernel for Experts {
    unsafe fn run(&self, stage: u32, run: &Run<'_>, work: Work<'_>) {
        let env = &run.env;
        let tokens = self.x.rows().map_or(0, |d| d.get(env.dims));
        if stage == 2 {
            // SAFETY: the caller's contract; rows are staged and gathered.
            return unsafe { self.multiply_all(env, work) };
        }
        for s in &self.stacks {
            let k = s.matrix().map_or(0, PackedMatrix::k);
            // SAFETY: the caller's contract; in the second stage the input is staged.
            unsafe {
                match stage {
                    0 => self.stage(env, run.isa, s, k, tokens, work),
                    _ => self.gather(env, s, work),
                }
            }
        }
    }
}
