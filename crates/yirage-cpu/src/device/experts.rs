//! Products with the experts each token has chosen.

use super::operand::{Env, Operand, WeightRef};
use super::products::{packed, precision};
use super::program::{Binder, BoundOp, Kernel, Run};
use crate::activation::Layout;
use crate::isa::Isa;
use crate::linear::{self, Linear};
use crate::pack::BLOCK;
use crate::walk::Work;
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
            let (chosen, out) = (bound.ins[2].clone(), bound.outs[0].clone());
            stacks.push(Stack { weight: weight.clone(), kernel, chosen, out, top_k, shared: op.shared, staged });
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

    unsafe fn multiply(&self, env: &Env, s: &Stack, tokens: usize, work: Work<'_>) {
        let Some(matrix) = s.weight.get().ok().and_then(|w| w.packed()) else { return };
        // SAFETY: the router wrote the choice in an earlier phase.
        let chosen = unsafe { s.chosen.ints(env) };
        let layout = Layout::new(s.kernel.form(), 1, matrix.k());
        let panels = work.share(matrix.panels());
        // Tokens of one expert follow each other, so that its weights are read from memory once.
        let mut pairs: Vec<usize> = (0..tokens * s.top_k).collect();
        pairs.sort_by_key(|&p| (chosen[p], p));
        for p in pairs {
            let Some(expert) = usize::try_from(chosen[p]).ok().filter(|&e| e < matrix.count()) else {
                env.fail(format!("token {} chose expert {} of {}", p / s.top_k, chosen[p], matrix.count()));
                continue;
            };
            // A shared input has a row a token; else each (token, rank) has its own.
            let row = if s.shared { p / s.top_k } else { p };
            let activations = match s.staged {
                Some(offset) => env.scratch.as_ptr().wrapping_add(offset + row * layout.bytes()).cast_const(),
                None => self.x.floats(env).cast::<u8>().wrapping_add(row * layout.bytes()).cast_const(),
            };
            let out = s.out.floats(env).wrapping_add(p * matrix.rows());
            let job = Linear {
                kernel: &s.kernel,
                weights: matrix,
                matrix: expert,
                layout,
                activations,
                out,
                ldo: matrix.rows(),
                accumulate: false,
            };
            // SAFETY: activations are whole since an earlier stage or step; workers take disjoint panels.
            unsafe { linear::linear(&job, panels.clone()) };
        }
    }
}

impl Kernel for Experts {
    unsafe fn run(&self, stage: u32, run: &Run<'_>, work: Work<'_>) {
        let env = &run.env;
        let tokens = self.x.rows().map_or(0, |d| d.get(env.dims));
        for s in &self.stacks {
            let k = s.weight.get().ok().and_then(|w| w.packed()).map_or(0, |m| m.k());
            // SAFETY: the caller's contract; in the second stage the input is staged.
            unsafe {
                match stage {
                    0 => self.stage(env, run.isa, s, k, tokens, work),
                    _ => self.multiply(env, s, tokens, work),
                }
            }
        }
    }
}
