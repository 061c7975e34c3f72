//! Products of one input with several weights of any formats.

use super::operand::{Env, Operand, WeightRef};
use super::program::{Binder, BoundOp, Kernel, Run};
use crate::activation::{Form, Layout, TOKEN_TILE};
use crate::isa::Isa;
use crate::linear::{self, Linear, Precision};
use crate::memory::prefetch;
use crate::pack::PackedMatrix;
use crate::walk::Work;
use std::ops::Range;
use std::sync::Arc;
use yirage_hal::HalError;
use yirage_ir::{DType, Op};

/// One weight's part.
struct Product {
    weight: Arc<WeightRef>,
    kernel: linear::Kernel,
    groups: usize,
    out: Operand,
    /// Where the input lies in the form the kernel reads, if not in the arena.
    staged: Option<usize>,
}

impl Product {
    /// The weight; binding has checked that it is one.
    fn matrix(&self) -> Option<&PackedMatrix> {
        self.weight.get().ok()?.packed()
    }
}

/// An input form to make before multiplying.
struct Staging {
    form: Form,
    groups: usize,
    offset: usize,
}

/// Products that share an input.
pub(super) struct Products {
    x: Operand,
    quantised: bool,
    staging: Vec<Staging>,
    products: Vec<Product>,
}

/// The precision at which a product of this input runs: quantised inputs decide it; float inputs of block-quantised
/// weights mean exact de-quantisation.
pub(super) fn precision(quantised: bool, block: usize, wanted: Precision) -> Precision {
    match (quantised, block) {
        (true, _) => Precision::Fast,
        (false, 1) => wanted,
        (false, _) => Precision::Exact,
    }
}

/// A product's weight, repacked.
pub(super) fn packed(operand: &Operand) -> Result<Arc<WeightRef>, HalError> {
    match operand {
        Operand::Weight(w) if w.get()?.packed().is_some() => Ok(w.clone()),
        _ => Err(HalError::Load("a product's weight is not repacked".into())),
    }
}

impl Products {
    pub(super) fn new(binder: &mut Binder, ops: Vec<BoundOp>) -> Result<Products, HalError> {
        let first = ops.first().ok_or_else(|| HalError::Load("a region without products".into()))?;
        let x = first.ins[0].clone();
        let quantised = x.ty().is_some_and(|t| t.dtype == DType::Q8A);
        if !quantised {
            x.want_floats("the input of a product")?;
        }
        let tokens = x.rows().map_or(0, |d| d.get(&binder.plan.bucket));
        let mut made = Products { x, quantised, staging: Vec::new(), products: Vec::new() };
        for bound in ops {
            let Op::Linear(op) = &bound.op else {
                return Err(HalError::Load(format!("`{}` is not a product of this kernel", bound.op.name())));
            };
            let (weight, groups) = (packed(&bound.ins[1])?, op.groups as usize);
            let matrix = weight.get()?.packed().ok_or_else(|| HalError::Load("not repacked".into()))?;
            if matrix.count() != groups {
                let count = matrix.count();
                return Err(HalError::Load(format!("a product of {groups} groups with a stack of {count} matrices")));
            }
            let wanted = precision(quantised, matrix.format().info().block, binder.precision);
            let kernel = linear::Kernel::new(binder.shared.isa, wanted, matrix.format());
            let kernel = kernel.map_err(|e| HalError::Load(e.to_string()))?;
            let staged =
                if quantised { None } else { Some(made.stage(binder, kernel.form(), groups, tokens, matrix.k())) };
            made.products.push(Product { weight: weight.clone(), kernel, groups, out: bound.outs[0].clone(), staged });
        }
        Ok(made)
    }

    /// Scratch for the input in `form`, shared by all products that read it so.
    fn stage(&mut self, binder: &mut Binder, form: Form, groups: usize, tokens: usize, k: usize) -> usize {
        if let Some(i) = self.staging.iter().position(|s| s.form == form && s.groups == groups) {
            return i;
        }
        let offset = binder.scratch.take(groups * Layout::new(form, tokens, k).bytes());
        self.staging.push(Staging { form, groups, offset });
        self.staging.len() - 1
    }

    /// Makes this worker's share of tokens in each form.
    unsafe fn fill_staging(&self, env: &Env, isa: Isa, tokens: usize, share: Range<usize>) {
        let width = self.x.width();
        for s in &self.staging {
            let layout = Layout::new(s.form, tokens, width / s.groups);
            for g in 0..s.groups {
                // SAFETY: the scratch was sized for the bucket's tokens; workers take disjoint tokens.
                unsafe {
                    let x = self.x.floats(env).add(g * layout.k()).cast_const();
                    let out = env.scratch.as_ptr().add(s.offset + g * layout.bytes());
                    layout.store(isa, x, width, share.clone(), out);
                }
            }
        }
    }

    unsafe fn multiply(&self, env: &Env, p: &Product, matrix: &PackedMatrix, panels: Range<usize>, tokens: usize) {
        let form = if self.quantised { Form::Q8 } else { p.kernel.form() };
        let layout = Layout::new(form, tokens, matrix.k());
        for g in 0..p.groups {
            let activations = match p.staged {
                None => self.x.floats(env).cast::<u8>().cast_const(),
                Some(i) => env.scratch.as_ptr().wrapping_add(self.staging[i].offset + g * layout.bytes()).cast_const(),
            };
            let job = Linear {
                kernel: &p.kernel,
                weights: matrix,
                matrix: g,
                layout,
                activations,
                out: p.out.floats(env).wrapping_add(g * matrix.rows()),
                ldo: p.out.width(),
                rows: None,
                accumulate: false,
            };
            // SAFETY: activations are whole since an earlier stage or step; workers take disjoint panels.
            unsafe { linear::linear(&job, panels.clone()) };
        }
    }
}

/// Bytes of weights that a worker takes at once, for few tokens: memory is read at full speed from there on.
const FEW_TOKENS_BYTES: usize = 64 << 10;

/// Bytes of weights that a waiting worker fetches before it may use them: a part of a second-level cache.
const WARM_BYTES: usize = 128 << 10;
/// Of these at each look at what it waits for.
const WARM_STEP: usize = 256;

/// A product with its matrix, and how its panels are cut into pieces.
#[derive(Clone, Copy)]
struct Cut<'a> {
    product: &'a Product,
    matrix: &'a PackedMatrix,
    /// Panels of a piece.
    step: usize,
    /// Pieces.
    count: usize,
}

impl Products {
    /// All products, cut for `workers`. Many tokens go over as many panels together as stay in the cache.
    fn cut(&self, tokens: usize, workers: usize) -> impl Iterator<Item = Cut<'_>> + Clone {
        let panels: usize = self.products.iter().filter_map(Product::matrix).map(PackedMatrix::panels).sum();
        let most = (panels / (2 * workers)).max(1);
        let bytes = if tokens > TOKEN_TILE { linear::GROUP_BYTES } else { FEW_TOKENS_BYTES };
        self.products.iter().filter_map(move |product| {
            let matrix = product.matrix()?;
            let step = (bytes / matrix.panel_bytes().max(1)).clamp(1, most);
            Some(Cut { product, matrix, step, count: matrix.panels().div_ceil(step) })
        })
    }
}

/// The panels of each matrix that `pieces` of all pieces are.
fn panels<'a>(
    cut: impl Iterator<Item = Cut<'a>>,
    pieces: Range<usize>,
) -> impl Iterator<Item = (Cut<'a>, Range<usize>)> {
    let mut before = 0;
    cut.filter_map(move |c| {
        let of = |edge: usize| (edge.saturating_sub(before).min(c.count) * c.step).min(c.matrix.panels());
        let panels = of(pieces.start)..of(pieces.end);
        before += c.count;
        (!panels.is_empty()).then_some((c, panels))
    })
}

impl Kernel for Products {
    unsafe fn run(&self, stage: u32, run: &Run<'_>, work: Work<'_>) {
        let env = &run.env;
        let tokens = self.x.rows().map_or(0, |d| d.get(env.dims));
        if stage == 0 {
            // SAFETY: the caller's contract; workers take disjoint tokens.
            return unsafe { self.fill_staging(env, run.isa, tokens, work.share(tokens)) };
        }
        let cut = self.cut(tokens, work.workers);
        let total = cut.clone().map(|c| c.count).sum();
        work.drain(total, |some| {
            for (c, panels) in panels(cut.clone(), some) {
                // SAFETY: pieces of different workers are disjoint, and so are their panels.
                unsafe { self.multiply(env, c.product, c.matrix, panels, tokens) };
            }
        });
    }

    /// Fetches the weights that this worker begins with. At few tokens memory is what a step waits for, and it is idle
    /// while another worker is busy with a row.
    fn waiting(&self, stage: u32, run: &Run<'_>, work: Work<'_>, look: u32) {
        let tokens = self.x.rows().map_or(0, |d| d.get(run.env.dims));
        let mut at = look as usize * WARM_STEP;
        if stage == 0 || tokens > TOKEN_TILE || at >= WARM_BYTES {
            return;
        }
        let cut = self.cut(tokens, work.workers);
        let total = cut.clone().map(|c| c.count).sum();
        for (c, panels) in panels(cut, work.first(total)) {
            let bytes = panels.len() * c.matrix.panel_bytes();
            if at < bytes {
                return prefetch(c.matrix.panel(0, panels.start).wrapping_add(at), WARM_STEP.min(bytes - at));
            }
            at -= bytes;
        }
    }
}
