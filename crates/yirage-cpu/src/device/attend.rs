//! Attention over the paged cache, or over the step's own keys and values.

use super::cpu::Purpose;
use super::operand::{Env, Operand, StateRef, WeightRef};
use super::program::{Binder, BoundOp, Kernel, Run};
use super::state::CpuState;
use crate::attention::{self, BLOCK, Call, Mask, Plan, Shape};
use crate::walk::Work;
use std::sync::Arc;
use yirage_hal::HalError;
use yirage_ir::op::Attention;
use yirage_ir::{DType, Dims, Format, Op, Type};

/// Most floats of partial results: work on longer contexts is shared in larger pieces.
const MAX_PARTS: usize = 16 << 20;

/// The cuts of a step's batch, one for each distinct kind of layer, made once a step.
#[derive(Default)]
pub(super) struct Plans {
    entries: Vec<(PlanKey, Plan)>,
}

#[derive(Clone, PartialEq)]
struct PlanKey {
    shape: Shape,
    mask: Mask,
    positions: usize,
    seqs: usize,
    /// Slot of the block table, or none without a cache.
    table: Option<usize>,
    blocks: usize,
    parts: usize,
}

impl Plans {
    fn add(&mut self, key: PlanKey) -> usize {
        let found = self.entries.iter().position(|(k, _)| *k == key);
        found.unwrap_or_else(|| {
            self.entries.push((key, Plan::default()));
            self.entries.len() - 1
        })
    }

    /// Cuts the batch of a step.
    pub(super) fn prepare(&mut self, dims: &Dims, slots: &[&[i32]], workers: usize) -> Result<(), HalError> {
        for (key, plan) in &mut self.entries {
            let (positions, seqs) = (slots[key.positions], slots[key.seqs]);
            let made = match key.table {
                Some(table) => {
                    let (table, width) = (slots[table], dims.blocks as usize);
                    let (shape, mask, blocks, parts) = (&key.shape, key.mask, key.blocks, key.parts);
                    plan.cached(shape, mask, positions, seqs, table, width, blocks, workers, parts)
                }
                None => plan.dense(&key.shape, key.mask, positions, seqs, workers, key.parts),
            };
            made.map_err(|e| HalError::Step(e.to_string()))?;
        }
        Ok(())
    }

    fn get(&self, index: usize) -> &Plan {
        &self.entries[index].1
    }
}

/// The step's own keys and values, and the cache they are written to for the step.
struct Given {
    k: Operand,
    v: Operand,
    temporary: CpuState,
}

/// Where keys and values come from.
enum Keys {
    Cached(Arc<StateRef>),
    Given(Box<Given>),
}

/// One layer's attention.
pub(super) struct Attend {
    op: Attention,
    shape: Shape,
    q: Operand,
    keys: Keys,
    sinks: Option<Arc<WeightRef>>,
    out: Operand,
    plan: usize,
    /// First byte of the partial results, and of the workers' own scratch.
    parts: usize,
    own: usize,
}

impl Attend {
    pub(super) fn new(binder: &mut Binder, mut ops: Vec<BoundOp>) -> Result<Attend, HalError> {
        let bound = ops.pop().ok_or_else(|| HalError::Load("no op to attend with".into()))?;
        let Op::Attention(op) = bound.op else { return Err(HalError::Load("not attention".into())) };
        let ins = bound.ins;
        let keys = Attend::keys(binder, &op, &ins)?;
        let (kv, blocks) = match &keys {
            Keys::Cached(s) => (s.get()?.stored().kv, s.get()?.blocks()),
            Keys::Given(given) => (given.temporary.stored().kv, given.temporary.blocks()),
        };
        let shape = Shape {
            heads: op.heads as usize,
            kv_heads: op.kv_heads as usize,
            k_width: op.k_width as usize,
            v_width: op.v_width as usize,
            v_in_k: op.v_in_k,
            kv,
        };
        let workers = binder.shared.pool.count();
        let (at, bucket) = (if op.cached { 2 } else { 3 }, binder.plan.bucket);
        let positions = if op.cached { bucket.blocks as usize * BLOCK } else { bucket.tokens as usize };
        let parts = shape.parts_floats(positions, workers).min(MAX_PARTS);
        let key = PlanKey {
            shape,
            mask: Mask { causal: op.causal, window: op.window as usize },
            positions: slot(&ins[at])?,
            seqs: slot(&ins[at + 1])?,
            table: if op.cached { Some(slot(&ins[4])?) } else { None },
            blocks,
            parts,
        };
        Ok(Attend {
            shape,
            q: ins[0].clone(),
            keys,
            sinks: ins.get(5).map(|s| s.weight_rows("sinks")).transpose()?,
            out: bound.outs[0].clone(),
            plan: binder.plans.add(key),
            parts: binder.scratch.take(parts * 4),
            own: binder.scratch.take(workers * own_bytes(&shape)),
            op,
        })
    }

    fn keys(binder: &Binder, op: &Attention, ins: &[Operand]) -> Result<Keys, HalError> {
        if op.cached {
            let Operand::State(state) = &ins[1] else {
                return Err(HalError::Load("attention does not read a state".into()));
            };
            state.get()?;
            return Ok(Keys::Cached(state.clone()));
        }
        let bucket = binder.plan.bucket;
        let block = Type::new(DType::Stored(Format::F32), [BLOCK as u32, op.kv_heads, op.k_width + op.v_width]);
        // Each sequence may leave one block unfilled, and there are at most as many sequences as tokens.
        let blocks = bucket.tokens as usize / BLOCK + bucket.tokens.min(bucket.seqs.max(1)) as usize + 1;
        let temporary = CpuState::new(binder.shared, &block, op.k_width, blocks, Purpose::Arena)?;
        Ok(Keys::Given(Box::new(Given { k: ins[1].clone(), v: ins[2].clone(), temporary })))
    }

    /// Writes the step's own keys and values to the temporary cache.
    unsafe fn fill(&self, env: &Env, plan: &Plan, work: Work<'_>) {
        let Keys::Given(given) = &self.keys else { return };
        let Given { k, v, temporary } = &**given;
        let tokens = self.q.rows().map_or(0, |d| d.get(env.dims));
        let share = work.share(tokens);
        let cache = temporary.cache(self.shape).map_err(|e| e.to_string());
        // SAFETY: workers write different tokens' slots; nobody reads before the next stage.
        let done = cache
            .and_then(|c| unsafe { c.append(share, k.src(env), v.src(env), plan.slots()).map_err(|e| e.to_string()) });
        if let Err(why) = done {
            env.fail(why);
        }
    }
}

/// Bytes of one worker's own scratch.
fn own_bytes(shape: &Shape) -> usize {
    (shape.worker_scratch_floats() * 4).next_multiple_of(64)
}

fn slot(operand: &Operand) -> Result<usize, HalError> {
    match operand {
        Operand::Slot { index, .. } => Ok(*index),
        _ => Err(HalError::Load("positions, sequences and tables of attention must be slots".into())),
    }
}

impl Kernel for Attend {
    unsafe fn run(&self, stage: u32, run: &Run<'_>, work: Work<'_>) {
        let (env, isa, plan) = (&run.env, run.isa, run.plans.get(self.plan));
        // SAFETY: the caller's contract; scratch was taken for all workers.
        unsafe {
            if stage == 0 {
                return self.fill(env, plan, work);
            }
            let cache = match &self.keys {
                Keys::Cached(s) => s.get().and_then(|s| s.cache(self.shape)),
                Keys::Given(given) => given.temporary.cache(self.shape),
            };
            let cache = match cache {
                Ok(cache) => cache,
                Err(e) => return env.fail(e),
            };
            let call = Call {
                plan,
                cache,
                q: self.q.src(env),
                out: self.out.dst(env),
                scale: self.op.scale.0,
                softcap: self.op.softcap.0,
                sinks: self.sinks.as_ref().map(|s| s.plain()),
                parts: env.scratch.as_ptr().add(self.parts).cast(),
            };
            let bytes = own_bytes(&self.shape);
            let own = env.scratch.as_ptr().add(self.own + work.worker * bytes).cast::<f32>();
            let own = std::slice::from_raw_parts_mut(own, bytes / 4);
            if stage == 1 {
                work.drain(plan.items(), |items| items.for_each(|item| attention::run_item(isa, &call, item, own)));
            } else {
                work.share(plan.joins()).for_each(|join| attention::combine(isa, &call, join, own));
            }
        }
    }
}
