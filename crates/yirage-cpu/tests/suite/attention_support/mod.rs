//! Sequences run through the paged cache in any schedule, and the same attention in f64.

use std::collections::BTreeMap;
use yirage_cpu::pool::ThreadPool;
use yirage_cpu_kernels::attention::{
    AttentionCall, AttentionPlan, AttentionShape, BLOCK, KvCacheView, KvType, Mask, combine, run_item,
};
use yirage_cpu_kernels::isa::Isa;
use yirage_cpu_kernels::rows::{Dst, Src};
pub(crate) use yirage_testkit::rng::Rng;

/// `n` numbers from -1 to 1.
fn floats(rng: &mut Rng, n: usize) -> Vec<f32> {
    (0..n).map(|_| rng.signed_f32()).collect()
}

/// One layer and its sequences' queries, keys and values.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) shape: AttentionShape,
    pub(crate) mask: Mask,
    pub(crate) scale: f32,
    pub(crate) softcap: f32,
    pub(crate) sinks: Option<Vec<f32>>,
    pub(crate) lengths: Vec<usize>,
    pub(crate) q: Vec<Vec<f32>>,
    pub(crate) k: Vec<Vec<f32>>,
    pub(crate) v: Vec<Vec<f32>>,
}

impl World {
    pub(crate) fn new(shape: AttentionShape, lengths: &[usize], seed: u64) -> World {
        let mut rng = Rng::new(seed);
        let mut rows = |width: usize, factor: f32| -> Vec<Vec<f32>> {
            let one = |n: &usize| floats(&mut rng, n * width).into_iter().map(|x| x * factor).collect();
            lengths.iter().map(one).collect()
        };
        let q = rows(shape.heads * shape.k_width, 3.0);
        let k = rows(shape.kv_heads * shape.k_width, 1.5);
        let v = rows(shape.kv_heads * shape.v_width, 1.3);
        let mask = Mask { causal: true, window: 0 };
        let scale = 1.0 / (shape.k_width as f32).sqrt();
        World { shape, mask, scale, softcap: 0.0, sinks: None, lengths: lengths.to_vec(), q, k, v }
    }

    /// What the cache gives back of keys or values, whole blocks of them.
    fn stored(&self, x: &[f32]) -> Vec<f64> {
        let info = self.shape.kv.format().info();
        let (mut bytes, mut back) = (vec![0; info.row_bytes(x.len())], vec![0.0; x.len()]);
        info.encode.unwrap()(x, &mut bytes);
        (info.decode)(&bytes, &mut back);
        back.into_iter().map(f64::from).collect()
    }

    /// Row of one token in f64, `[heads * v_width]`.
    pub(crate) fn reference(&self, seq: usize, pos: usize) -> Vec<f64> {
        let s = &self.shape;
        let mut out = Vec::new();
        let last = match self.mask.window {
            _ if self.mask.causal => pos + 1,
            0 => self.lengths[seq],
            window => (pos + window).min(self.lengths[seq]),
        };
        let first = if self.mask.window == 0 { 0 } else { (pos + 1).saturating_sub(self.mask.window) };
        let (kw, vw) = (s.kv_heads * s.k_width, s.kv_heads * s.v_width);
        let keys = self.stored(&self.k[seq][first * kw..last * kw]);
        let values = if s.v_in_k { Vec::new() } else { self.stored(&self.v[seq][first * vw..last * vw]) };
        for h in 0..s.heads {
            let kv = h / (s.heads / s.kv_heads);
            let q = &self.q[seq][(pos * s.heads + h) * s.k_width..][..s.k_width];
            let key = |p: usize| &keys[((p - first) * s.kv_heads + kv) * s.k_width..][..s.k_width];
            let value = |p: usize| {
                if s.v_in_k {
                    &key(p)[..s.v_width]
                } else {
                    &values[((p - first) * s.kv_heads + kv) * s.v_width..][..s.v_width]
                }
            };
            let score = |p: usize| {
                let dot: f64 = q.iter().zip(key(p)).map(|(a, b)| f64::from(*a) * b).sum();
                let (x, cap) = (dot * f64::from(self.scale), f64::from(self.softcap));
                if cap > 0.0 { cap * (x / cap).tanh() } else { x }
            };
            let scores: Vec<f64> = (first..last).map(score).collect();
            let sink = self.sinks.as_ref().map(|s| f64::from(s[h]));
            let max = scores.iter().copied().chain(sink).fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = scores.iter().copied().chain(sink).map(|s| (s - max).exp()).sum();
            for d in 0..s.v_width {
                let terms = scores.iter().enumerate();
                let y: f64 = terms.map(|(i, s)| (s - max).exp() * value(first + i)[d]).sum();
                out.push(y / sum);
            }
        }
        out
    }
}

/// Tokens `from..to` of a sequence in one step.
pub(crate) type Chunk = (usize, std::ops::Range<usize>);

/// How a run is done; none of it may change a result.
pub(crate) struct Manner<'a> {
    pub(crate) isa: Isa,
    pub(crate) pool: &'a ThreadPool,
    /// Seed of the order of physical blocks.
    pub(crate) blocks: u64,
    /// Workers that the plan is cut for, and floats of partial results.
    pub(crate) workers: usize,
    pub(crate) parts: usize,
}

/// Runs a schedule over a cache whose unwritten and freed places hold NaN. Rows by (sequence, position).
pub(crate) fn run(world: &World, steps: &[Vec<Chunk>], manner: &Manner<'_>) -> BTreeMap<(usize, usize), Vec<f32>> {
    let s = &world.shape;
    let max_blocks = world.lengths.iter().map(|n| n.div_ceil(BLOCK)).max().unwrap_or(0) + 1;
    let blocks = world.lengths.len() * max_blocks + 3;
    let mut order: Vec<i32> = (0..blocks as i32).collect();
    let mut rng = Rng::new(manner.blocks);
    (1..blocks).rev().for_each(|i| order.swap(i, rng.index(i + 1)));
    let mut tables = vec![-1i32; world.lengths.len() * max_blocks];
    let mut memory = vec![u64::MAX; blocks * s.block_bytes() / 8];
    // SAFETY: the memory outlives the cache's use below and has its size.
    let cache = unsafe { KvCacheView::new(*s, memory.as_mut_ptr().cast(), blocks) }.unwrap();
    let mut rows = BTreeMap::new();
    let mut plan = AttentionPlan::default();
    for step in steps {
        for (seq, range) in step {
            for block in range.start / BLOCK..range.end.div_ceil(BLOCK) {
                let entry = &mut tables[seq * max_blocks + block];
                if *entry < 0 {
                    *entry = order.pop().unwrap();
                }
            }
        }
        let tokens: Vec<(usize, usize)> = step.iter().flat_map(|(s, r)| r.clone().map(|p| (*s, p))).collect();
        let positions: Vec<i32> = tokens.iter().map(|t| t.1 as i32).collect();
        let seqs: Vec<i32> = tokens.iter().map(|t| t.0 as i32).collect();
        plan.cached(s, world.mask, &positions, &seqs, &tables, max_blocks, blocks, manner.workers, manner.parts)
            .unwrap();
        let slot = |&(seq, pos): &(usize, usize)| tables[seq * max_blocks + pos / BLOCK] * 32 + (pos % BLOCK) as i32;
        let slots: Vec<i32> = tokens.iter().map(slot).collect();
        for ((seq, pos), row) in tokens.iter().zip(step_rows(world, &tokens, &slots, &plan, cache, manner)) {
            rows.insert((*seq, *pos), row);
        }
        free(world, step, &mut tables, max_blocks, &cache);
    }
    drop(memory);
    rows
}

/// Blocks that fell out of every window: gone from the table, their memory NaN again.
fn free(world: &World, step: &[Chunk], tables: &mut [i32], max_blocks: usize, cache: &KvCacheView) {
    if world.mask.window == 0 {
        return;
    }
    for (seq, range) in step {
        let first = (range.end + 1).saturating_sub(world.mask.window);
        for block in 0..first / BLOCK {
            let entry = std::mem::replace(&mut tables[seq * max_blocks + block], -1);
            if entry >= 0 {
                let slots: Vec<i32> = (entry * 32..entry * 32 + 32).collect();
                // Infinite scales make every code of a block NaN; a NaN among others has the code 0.
                let poison = if world.shape.kv == KvType::Q8_0 { f32::INFINITY } else { f32::NAN };
                let nan = vec![poison; world.shape.kv_heads * world.shape.k_width.max(world.shape.v_width)];
                let nan = Src::new(nan.as_ptr(), 0);
                // SAFETY: stride 0 reads the one row; no other thread runs.
                unsafe { cache.append(0..32, nan, nan, &slots) }.unwrap();
            }
        }
    }
}

/// Appends and attends one step with all workers of the pool.
pub(crate) fn step_rows(
    world: &World,
    tokens: &[(usize, usize)],
    slots: &[i32],
    plan: &AttentionPlan,
    cache: KvCacheView,
    manner: &Manner<'_>,
) -> Vec<Vec<f32>> {
    let s = &world.shape;
    let gather = |from: &[Vec<f32>], width: usize| -> Vec<f32> {
        tokens.iter().flat_map(|&(seq, p)| from[seq][p * width..(p + 1) * width].to_vec()).collect()
    };
    let (qw, kw, vw, ow) = (s.heads * s.k_width, s.kv_heads * s.k_width, s.kv_heads * s.v_width, s.heads * s.v_width);
    let (q, k, v) = (gather(&world.q, qw), gather(&world.k, kw), gather(&world.v, vw));
    let mut out = vec![f32::NAN; tokens.len() * ow];
    let mut parts = vec![f32::NAN; plan.parts_floats()];
    assert!(parts.len() <= manner.parts);
    let (q, k, v) = (Src::new(q.as_ptr(), qw), Src::new(k.as_ptr(), kw), Src::new(v.as_ptr(), vw));
    let call = AttentionCall {
        plan,
        cache,
        q,
        out: Dst::new(out.as_mut_ptr(), ow),
        scale: world.scale,
        softcap: world.softcap,
        sinks: world.sinks.as_deref(),
        parts: parts.as_mut_ptr(),
    };
    let count = tokens.len();
    manner.pool.run(|ctx| {
        let mut scratch = vec![f32::NAN; s.worker_scratch_floats()];
        let call = &call;
        let share = count * ctx.index / ctx.count..count * (ctx.index + 1) / ctx.count;
        // SAFETY: rows exist for all tokens; tokens, items and joins are each done by one worker, with barriers between.
        unsafe {
            call.cache.append(share.clone(), k, v, &slots[share]).unwrap();
            ctx.barrier();
            for item in plan.worker_items(ctx.index, ctx.count) {
                run_item(manner.isa, call, item, &mut scratch);
            }
            ctx.barrier();
            for join in (ctx.index..plan.joins()).step_by(ctx.count) {
                combine(manner.isa, call, join, &mut scratch);
            }
        }
    });
    out.chunks_exact(ow).map(<[f32]>::to_vec).collect()
}

/// Largest distance from the reference over all rows.
pub(crate) fn error(world: &World, rows: &BTreeMap<(usize, usize), Vec<f32>>) -> f64 {
    let mut worst = 0f64;
    for (&(seq, pos), row) in rows {
        for (y, r) in row.iter().zip(world.reference(seq, pos)) {
            let e = (f64::from(*y) - r).abs();
            worst = if e.is_nan() { f64::INFINITY } else { worst.max(e) };
        }
    }
    worst
}

/// Every sequence whole, all in one step.
pub(crate) fn whole(world: &World) -> Vec<Vec<Chunk>> {
    vec![world.lengths.iter().enumerate().map(|(s, &n)| (s, 0..n)).collect()]
}

/// One token a step, one sequence after the other.
pub(crate) fn singly(world: &World) -> Vec<Vec<Chunk>> {
    world.lengths.iter().enumerate().flat_map(|(s, &n)| (0..n).map(move |p| vec![(s, p..p + 1)])).collect()
}

/// Random chunks of random sequences, mixed.
pub(crate) fn mixed(world: &World, rng: &mut Rng) -> Vec<Vec<Chunk>> {
    let mut at = vec![0; world.lengths.len()];
    let mut steps = Vec::new();
    while at.iter().zip(&world.lengths).any(|(a, n)| a < n) {
        let mut step = Vec::new();
        for (seq, at) in at.iter_mut().enumerate() {
            let left = world.lengths[seq] - *at;
            let wish = [0, 1, 1, 3, 17, 40, 100][rng.index(7)];
            let n = left.min(wish);
            if n > 0 {
                step.push((seq, *at..*at + n));
                *at += n;
            }
        }
        let turn = rng.index(step.len().max(1));
        step.rotate_left(turn);
        if !step.is_empty() {
            steps.push(step);
        }
    }
    steps
}

/// The levels of this machine.
pub(crate) fn levels() -> Vec<Isa> {
    Isa::ALL.iter().copied().filter(|i| i.available()).collect()
}

/// Bitwise equality, with the place of the first difference.
pub(crate) fn assert_same(a: &BTreeMap<(usize, usize), Vec<f32>>, b: &BTreeMap<(usize, usize), Vec<f32>>, what: &str) {
    assert_eq!(a.len(), b.len(), "{what}: rows");
    for (place, x) in a {
        for (i, (x, y)) in x.iter().zip(&b[place]).enumerate() {
            assert!(x.to_bits() == y.to_bits(), "{what}: (sequence, position) {place:?}, element {i}: {x} and {y}");
        }
    }
}
