//! Products with a model's weights, timed in one way or another.

use super::probe::last_cache;
use crate::machine::ProcessorId;
use crate::shared::CpuContext;
use crate::storage::{CpuWeight, MatmulWeight};
use crate::walk::WorkList;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use yirage_cpu_kernels::activation::{ActivationBufferLayout, ActivationEncoding, TOKEN_TILE};
use yirage_cpu_kernels::isa::Isa;
use yirage_cpu_kernels::linear::{self, Linear, MatmulVariant, VariantChoice, work_items};
use yirage_cpu_kernels::memory::{HugeBuf, SharedBuf};
use yirage_cpu_kernels::pack::PANEL_ROWS;
use yirage_hal::{HalError, Length, Question, VariantTimer, WeightHandle};
use yirage_plan::Precision;

/// Bytes of weights that a reading with few tokens goes through: more than most last-level caches hold.
const FEW_BYTES: usize = 128 << 20;
/// The same where a last-level cache holds more; it then serves other machines as well, which hold most of it.
const FEW_BYTES_MOST: usize = 192 << 20;
/// The same with a full tile of tokens, which takes longer for each byte.
const LONE_BYTES: usize = 64 << 20;
/// The same with more.
const MANY_BYTES: usize = 24 << 20;

/// What is asked of a level.
pub(super) fn questions(isa: Isa) -> Vec<Question> {
    let question = |choice: VariantChoice| {
        let answers = choice.answers.iter().map(|a| (*a).to_owned()).collect();
        Question { tokens: choice.tokens, step: choice.step, answers }
    };
    MatmulVariant::choices(isa).into_iter().map(question).collect()
}

/// What the fastest way depends on beside the weights.
pub(super) fn facts(shared: &CpuContext, processor: &str) -> String {
    let identity = ProcessorId::here().map_or_else(String::new, |id| {
        format!(" ({} family {:#x} model {:#x})", id.vendor.escape_default(), id.family, id.model)
    });
    let (isa, workers, build) = (shared.isa, shared.pool.count(), env!("YIRAGE_CPU_BUILD"));
    format!(
        "{processor}{identity}, {isa}, {workers} workers, kernels {build}, choices {}",
        MatmulVariant::NAMES.join(" ")
    )
}

/// A matrix of which the first panels are used.
struct TrialMatrix {
    weight: Arc<MatmulWeight>,
    matrix: usize,
    panels: usize,
    /// Which activations it reads.
    activations: usize,
}

/// Activations in a form.
struct TrialActivations {
    layout: ActivationBufferLayout,
    bytes: HugeBuf,
}

/// The products, one after the other, as a step has them.
pub(super) struct MatmulTrial {
    shared: Arc<CpuContext>,
    precision: Precision,
    matrices: Vec<TrialMatrix>,
    stored: Vec<TrialActivations>,
    out: SharedBuf,
    /// Numbers from row to row of the result.
    width: usize,
}

impl MatmulTrial {
    /// Of some of these weights.
    pub(super) fn new(
        shared: &Arc<CpuContext>,
        weights: &[WeightHandle],
        precision: Precision,
        (tokens, length): (usize, Length),
    ) -> Result<MatmulTrial, HalError> {
        let matrices = match length {
            Length::Full => chosen(weights, usize::MAX),
            Length::Short if tokens > TOKEN_TILE => chosen(weights, MANY_BYTES),
            Length::Short if tokens == TOKEN_TILE => chosen(weights, LONE_BYTES),
            Length::Short => {
                let cache = last_cache().unwrap_or(FEW_BYTES);
                chosen(weights, cache.clamp(FEW_BYTES, FEW_BYTES_MOST))
            }
        };
        if matrices.is_empty() {
            let why = "no weight of the model is a matrix of products".into();
            return Err(HalError::Unsupported { what: "measuring kernels".into(), why });
        }
        let width = matrices.iter().map(|m| m.2).max().unwrap_or(0) * PANEL_ROWS;
        let out = zeroed(tokens.saturating_mul(width).saturating_mul(size_of::<f32>()))?.shared();
        let mut made =
            MatmulTrial { shared: shared.clone(), precision, matrices: Vec::new(), stored: Vec::new(), out, width };
        for (weight, matrix, panels) in matrices {
            let activations = made.store(&weight, tokens)?;
            made.matrices.push(TrialMatrix { weight, matrix, panels, activations });
        }
        Ok(made)
    }

    fn kernel(&self, weight: &MatmulWeight, variant: MatmulVariant) -> Result<linear::Dispatch, HalError> {
        let format = weight.packed().format();
        let kernel = linear::Dispatch::new(self.shared.isa, variant, self.precision, format);
        kernel.map_err(|e| HalError::Device(e.to_string()))
    }

    /// The number of activations that a matrix can read.
    fn store(&mut self, weight: &MatmulWeight, tokens: usize) -> Result<usize, HalError> {
        let form: ActivationEncoding = self.kernel(weight, self.shared.variant)?.form();
        // For every way that may be asked for.
        let layout = ActivationBufferLayout::new(form, tokens, weight.packed().k()).with_pairs(true);
        if let Some(there) = self.stored.iter().position(|s| s.layout == layout) {
            return Ok(there);
        }
        let x: Vec<f32> = (0..tokens * layout.k()).map(|i| (i * 37 % 101) as f32 / 50.0 - 1.0).collect();
        let mut bytes = zeroed(layout.bytes())?;
        // SAFETY: `x` and `bytes` have the layout's sizes, and one thread writes.
        unsafe { layout.store(self.shared.isa, x.as_ptr(), layout.k(), 0..tokens, bytes.as_mut_ptr()) };
        self.stored.push(TrialActivations { layout, bytes });
        Ok(self.stored.len() - 1)
    }

    /// One product's panels times all tokens.
    ///
    /// # Safety
    /// The panels are among the matrix's, and no other worker has them.
    unsafe fn multiply(&self, of: &TrialMatrix, kernel: &linear::Dispatch, part: &work_items::MatmulWorkItem) {
        let stored = &self.stored[of.activations];
        let job = Linear {
            kernel,
            weights: of.weight.packed(),
            matrix: of.matrix,
            layout: stored.layout,
            activations: stored.bytes.as_ptr(),
            out: self.out.first().cast(),
            ldo: self.width,
            rows: None,
        };
        // SAFETY: `MatmulTrial::store` wrote the activations, `MatmulTrial::new` made room for the widest result, and the panels
        // are the caller's.
        unsafe { linear::linear(&job, part.panels.clone(), part.tokens.clone()) }
    }
}

impl VariantTimer for MatmulTrial {
    fn seconds(&mut self, variant: &str) -> Result<f64, HalError> {
        let variant = self.shared.parse_variant(Some(variant))?;
        let kernels = self.matrices.iter().map(|m| self.kernel(&m.weight, variant)).collect::<Result<Vec<_>, _>>()?;
        let lists: Vec<WorkList> = self.matrices.iter().map(|_| WorkList::new()).collect();
        let nanos = AtomicU64::new(0);
        let this = &*self;
        let run = this.shared.pool.try_run(|ctx| {
            ctx.barrier();
            let began = Instant::now();
            for ((of, kernel), list) in this.matrices.iter().zip(&kernels).zip(&lists) {
                let tokens = this.stored[of.activations].layout.tokens();
                let one = work_items::Panels { count: of.panels, bytes: of.weight.packed().panel_bytes() };
                let cut = work_items::cut(std::iter::once(one), &variant, tokens, ctx.count);
                let total = work_items::total(cut.clone());
                let multiply = |some: Range<usize>| {
                    for part in work_items::parts(cut.clone(), some) {
                        // SAFETY: `chosen` gives panels that exist, and pieces of different workers are disjoint.
                        unsafe { this.multiply(of, kernel, &part) }
                    }
                };
                if work_items::is_even(&variant, tokens) {
                    multiply(work_items::even(cut.clone(), ctx.index, ctx.count));
                } else {
                    multiply(WorkList::first(total, ctx.index, ctx.count));
                    while let Some(some) = list.take(1, total, ctx.count) {
                        multiply(some);
                    }
                }
                ctx.barrier();
            }
            if ctx.index == 0 {
                nanos.store(began.elapsed().as_nanos() as u64, Ordering::Relaxed);
            }
        });
        run.map_err(|e| HalError::Device(e.to_string()))?;
        Ok(nanos.into_inner().max(1) as f64 / 1e9)
    }
}

/// Matrices of about `most` bytes together from all over the model, each with the panels of it that are used: of one that is
/// larger than a quarter of them the first.
fn chosen(weights: &[WeightHandle], most: usize) -> Vec<(Arc<MatmulWeight>, usize, usize)> {
    let packed = |handle: &WeightHandle| match handle.0.downcast_ref::<CpuWeight>() {
        Some(CpuWeight::Packed(matrix)) => Some(matrix.clone()),
        _ => None,
    };
    let all: Vec<Arc<MatmulWeight>> = weights.iter().filter_map(packed).collect();
    let used = |m: &MatmulWeight| m.packed().panels().min((most / 4 / m.packed().panel_bytes().max(1)).max(1));
    let bytes = |m: &MatmulWeight| used(m) * m.packed().panel_bytes();
    let total: usize = all.iter().map(|m| m.packed().count() * bytes(m)).sum();
    let (mut seen, mut taken, mut out) = (0usize, 0usize, Vec::new());
    for weight in &all {
        for matrix in 0..weight.packed().count() {
            seen += bytes(weight);
            // Spread evenly: what was taken keeps pace with what was seen.
            if taken as f64 * total as f64 <= seen as f64 * most as f64 && bytes(weight) > 0 {
                out.push((weight.clone(), matrix, used(weight)));
                taken += bytes(weight);
            }
        }
    }
    out
}

fn zeroed(bytes: usize) -> Result<HugeBuf, HalError> {
    HugeBuf::zeroed(bytes).map_err(|e| HalError::OutOfMemory {
        pool: "trial",
        wanted: bytes as u64,
        detail: e.to_string(),
    })
}
