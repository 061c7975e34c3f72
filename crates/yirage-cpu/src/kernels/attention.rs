//! Attention over the paged cache, or over the step's own keys and values.

use super::operand_constraints::{cache, floats, host_integers};
use super::{BoundKernel, Kernel, not_for, single};
use crate::attention_plans::{AttentionPlanId, AttentionPlanKey, TableInput};
use crate::bind::{
    Binder, CacheShape, CpuRunContext, FloatRow, FloatRows, KvCacheOperand, OutputRows, ScratchBuffer, Site,
};
use crate::shared::MemoryPurpose;
use crate::storage::CpuKvCache;
use crate::walk::StageWork;
use yirage_cpu_kernels::attention::{self, AttentionCall, AttentionPlan, AttentionShape, BLOCK, Mask};
use yirage_hal::HalError;
use yirage_ir::{DType, Dim, Format, Op, Type};
use yirage_plan::rules::OpRule;
use yirage_plan::{Partitioning, Stage, StageCondition};

impl Kernel {
    pub(super) const ATTENTION: Kernel = Kernel {
        name: "cpu/attention@1",
        regions: &[],
        rules,
        stages: &[
            Stage { partitioning: Partitioning::Static, when: StageCondition::NoKvCache },
            Stage::always(Partitioning::WorkQueue),
            Stage::always(Partitioning::Static),
        ],
        scratch: true,
        bind,
    };
}

/// Over a cache, or over the step's own keys and values; the last input, the sinks, may be missing.
fn rules() -> Vec<OpRule> {
    let (host, given) = (host_integers, || OpRule::new("attention", vec![floats(), floats(), floats()]));
    let cached = OpRule::new("attention", vec![floats(), cache(), host(), host(), host(), floats()]);
    let mut own = given().when("cached", false);
    own.inputs.extend([host(), host(), floats()]);
    vec![cached.when("cached", true), own]
}

/// Most floats of partial results: work on longer contexts is shared in larger pieces.
const MAX_PARTS: usize = 16 << 20;

/// The step's own keys and values, and the cache they are written to for the step.
struct UncachedKv {
    k: FloatRows,
    v: FloatRows,
    kv_cache: CpuKvCache,
    temporary: attention::KvCacheView,
}

/// Where keys and values come from.
enum KvSource {
    Cached(KvCacheOperand),
    Uncached(Box<UncachedKv>),
}

/// One layer's attention.
struct Attention {
    shape: AttentionShape,
    scale: f32,
    softcap: f32,
    q: FloatRows,
    keys: KvSource,
    sinks: Option<FloatRow>,
    out: OutputRows<f32>,
    cut: AttentionPlanId,
    /// The partial results, and the workers' own scratch.
    parts: ScratchBuffer,
    own: ScratchBuffer,
}

fn bind(binder: &mut Binder<'_>, n: usize) -> Result<Box<dyn BoundKernel>, HalError> {
    let sites = binder.sites(n)?;
    let [site] = single(sites, Kernel::ATTENTION.name)?;
    let Op::Attention(op) = site.op() else { return Err(not_for(Kernel::ATTENTION.name, &site)) };
    let q = site.float_rows(0)?;
    let keys = if op.cached {
        KvSource::Cached(cached(&site, op)?)
    } else {
        KvSource::Uncached(Box::new(uncached_kv(binder, &site, op)?))
    };
    let (cache, at) = match &keys {
        KvSource::Cached(cache) => (cache.blocks(), 2),
        KvSource::Uncached(given) => (given.temporary, 3),
    };
    let table =
        if op.cached { Some(TableInput { input: site.step_input(4)?, width: site.last_dim(4)? }) } else { None };
    let (shape, workers) = (*cache.shape(), binder.shared.pool.count());
    let positions = table.map_or(q.most(binder.bucket()), |t| t.width.get(binder.bucket()).saturating_mul(BLOCK));
    let parts = shape.parts_floats(positions, workers).min(MAX_PARTS);
    let kind = AttentionPlanKey {
        shape,
        mask: Mask { causal: op.causal, window: op.window as usize },
        positions: site.step_input(at)?,
        seqs: site.step_input(at + 1)?,
        table,
        blocks: cache.blocks(),
        parts,
    };
    Ok(Box::new(Attention {
        shape,
        scale: op.scale.0,
        softcap: op.softcap.0,
        q,
        keys,
        sinks: if site.inputs() > 5 { Some(site.float_row(5)?) } else { None },
        out: site.out(0)?,
        cut: binder.attention_plans.add(kind),
        parts: binder.scratch.take(parts.saturating_mul(size_of::<f32>()))?,
        own: binder.scratch.take(workers.saturating_mul(own_bytes(&shape)))?,
    }))
}

fn cache_shape(op: &yirage_ir::op::Attention) -> CacheShape {
    CacheShape {
        heads: op.heads as usize,
        kv_heads: op.kv_heads as usize,
        k_width: op.k_width as usize,
        v_width: op.v_width as usize,
        v_in_k: op.v_in_k,
    }
}

fn cached(site: &Site, op: &yirage_ir::op::Attention) -> Result<KvCacheOperand, HalError> {
    site.cache(1, cache_shape(op))
}

fn uncached_kv(binder: &Binder<'_>, site: &Site, op: &yirage_ir::op::Attention) -> Result<UncachedKv, HalError> {
    let (k, v) = (site.float_rows(1)?, site.float_rows(2)?);
    let width = op.k_width.saturating_add(op.v_width);
    let block = Type::new(DType::Stored(Format::F32), [Dim::Const(BLOCK as u32), op.kv_heads.into(), width.into()]);
    // Each sequence may leave one block unfilled, and there are at most as many sequences as tokens.
    let (tokens, seqs) = (k.most(binder.bucket()), binder.bucket().seqs.max(1) as usize);
    let blocks = tokens / BLOCK + tokens.min(seqs) + 1;
    let state = CpuKvCache::new(binder.shared, &block, op.k_width, blocks, MemoryPurpose::Arena)?;
    let CacheShape { heads, kv_heads, k_width, v_width, v_in_k } = cache_shape(op);
    let kv = state.storage().map_err(HalError::Load)?;
    let shape = AttentionShape { heads, kv_heads, k_width, v_width, v_in_k, kv };
    let temporary = state.cache(shape).map_err(HalError::Load)?;
    Ok(UncachedKv { k, v, kv_cache: state, temporary })
}

/// Bytes of one worker's own scratch.
fn own_bytes(shape: &AttentionShape) -> usize {
    (shape.worker_scratch_floats() * size_of::<f32>()).next_multiple_of(64)
}

impl Attention {
    /// Writes the step's own keys and values to the temporary cache.
    ///
    /// # Safety
    /// Keys and values are whole.
    unsafe fn fill(&self, run: &CpuRunContext<'_>, plan: &AttentionPlan, work: StageWork<'_>) {
        let KvSource::Uncached(given) = &self.keys else { return };
        debug_assert_eq!(given.kv_cache.blocks(), given.temporary.blocks());
        let share = work.partition(run.size(given.k.rows()));
        let slots = &plan.slots()[share.clone()];
        // SAFETY: `Site` bound rows that lie whole in their memory; `AttentionPlans::prepare` gave each token a slot of its own, and
        // nobody reads before the next stage.
        if let Err(why) = unsafe { given.temporary.append(share, given.k.src(run), given.v.src(run), slots) } {
            run.fail(why);
        }
    }
}

impl BoundKernel for Attention {
    unsafe fn run(&self, stage: u32, run: &CpuRunContext<'_>, work: StageWork<'_>) {
        let (isa, plan) = (run.isa, run.attention_plans.get(self.cut));
        if stage == 0 {
            // SAFETY: what `BoundKernel::run` is promised; `yirage_plan::VerifiedPlan` proves it of programs.
            return unsafe { self.fill(run, plan, work) };
        }
        let bytes = own_bytes(&self.shape);
        // SAFETY: what `BoundKernel::run` is promised; `bind` took scratch for the partial results and for each
        // worker, and `AttentionPlans::prepare` made the plan for these rows and a cache of this size.
        unsafe {
            let call = AttentionCall {
                plan,
                cache: match &self.keys {
                    KvSource::Cached(cache) => cache.blocks(),
                    KvSource::Uncached(given) => given.temporary,
                },
                q: self.q.src(run),
                out: self.out.dst(run),
                scale: self.scale,
                softcap: self.softcap,
                sinks: self.sinks.as_ref().map(|sinks| sinks.all(run)),
                parts: self.parts.at(run, 0).cast(),
            };
            let own = self.own.at(run, work.worker * bytes).cast::<f32>();
            let own = std::slice::from_raw_parts_mut(own, bytes / size_of::<f32>());
            if stage == 1 {
                work.for_each_item(plan.items(), |items| {
                    items.for_each(|item| attention::run_item(isa, &call, item, own))
                });
            } else {
                work.partition(plan.joins()).for_each(|join| attention::combine(isa, &call, join, own));
            }
        }
    }
}
