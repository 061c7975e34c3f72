//! Speed of attention: decode as a share of a plain read of the same keys and values, prefill in GFLOP/s, and the
//! price of a phase change of the pool.
//!
//! `cargo bench -p yirage-cpu --bench attention -- [isa] [threads] [storage]`. Best of several runs of baseline and
//! kernel in turn, because the machine is shared; the caches of several layers together do not fit any processor cache.
#![allow(clippy::print_stdout)] // printing is its purpose

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use yirage_cpu::pool::ThreadPool;
use yirage_cpu_kernels::attention::{
    AttentionCall, AttentionPlan, AttentionShape, BLOCK, KvCacheView, KvType, Mask, combine, run_item,
};
use yirage_cpu_kernels::isa::Isa;
use yirage_cpu_kernels::memory::HugeBuf;
use yirage_cpu_kernels::rows::{Dst, Src};

/// Bytes of keys and values of one pass.
const PASS: usize = 192 << 20;
const RUNS: usize = 5;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let isa = args.first().map_or(Ok(Isa::detect()), |a| Isa::parse(a)).unwrap_or_else(|e| panic!("{e}"));
    let threads = args.get(1).and_then(|a| a.parse().ok()).unwrap_or(2);
    let pool = ThreadPool::new(threads).unwrap_or_else(|e| panic!("{e}"));
    let start = Instant::now();
    pool.run(|ctx| (0..100_000).for_each(|_| ctx.barrier()));
    println!("{isa}, {threads} threads; phase change {:.0} ns", start.elapsed().as_secs_f64() * 1e4);
    println!(
        "storage heads  width | decode at depth: us a layer, GB/s, share of a read (twice) | prefill of 512: ms, GFLOP/s"
    );
    for kv in [KvType::BF16, KvType::Q8_0, KvType::F16, KvType::F32] {
        let name = format!("{kv:?}").to_lowercase();
        if args.get(2).is_some_and(|wanted| *wanted != name) {
            continue;
        }
        for (heads, kv_heads, width) in [(12, 2, 128), (4, 1, 256), (32, 8, 64), (16, 16, 128)] {
            let shape = AttentionShape { heads, kv_heads, k_width: width, v_width: width, v_in_k: false, kv };
            print!("{name}\t{heads}/{kv_heads}\t{width} |");
            for depth in [2048, 8192] {
                let (time, rate, share) = decode(isa, &pool, shape, depth);
                print!("\t{depth}: {:.1}\t{rate:.1}\t{share:.2} |", time * 1e6);
            }
            let (ms, flops) = prefill(isa, &pool, shape, 512);
            println!("\t{ms:.2}\t{flops:.0}");
        }
    }
}

/// Seconds; with one thread those of the processor, so that other programs' load does not count.
fn seconds(pool: &ThreadPool) -> f64 {
    let clock = if pool.count() == 1 { libc::CLOCK_PROCESS_CPUTIME_ID } else { libc::CLOCK_MONOTONIC };
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec.
    unsafe { libc::clock_gettime(clock, &mut t) };
    t.tv_sec as f64 + t.tv_nsec as f64 * 1e-9
}

/// One layer's memory, filled with small numbers.
fn filled(bytes: usize) -> HugeBuf {
    let mut memory = HugeBuf::zeroed(bytes).unwrap_or_else(|e| panic!("{e}"));
    // 0x2c3c is small and positive as f16, bf16 and in both halves of an f32.
    memory.as_mut_slice().chunks_exact_mut(2).for_each(|c| c.copy_from_slice(&[0x3c, 0x2c]));
    memory
}

fn attend(isa: Isa, pool: &ThreadPool, call: &AttentionCall<'_>, scratch: &[Scratch]) {
    pool.run(|ctx| {
        // SAFETY: each worker uses its own scratch, items and joins; everything was sized by the plan.
        unsafe {
            let own = std::slice::from_raw_parts_mut(scratch[ctx.index].0, scratch[ctx.index].1);
            call.plan.worker_items(ctx.index, ctx.count).for_each(|item| run_item(isa, call, item, own));
            ctx.barrier();
            (ctx.index..call.plan.joins()).step_by(ctx.count).for_each(|join| combine(isa, call, join, own));
        }
    });
}

struct Scratch(*mut f32, usize);
// SAFETY: each worker uses its own.
unsafe impl Sync for Scratch {}

fn with_call(
    shape: AttentionShape,
    plan: &AttentionPlan,
    tokens: usize,
    memory: &[HugeBuf],
    blocks: usize,
    f: &mut dyn FnMut(&[AttentionCall<'_>]),
) {
    let (qw, ow) = (shape.heads * shape.k_width, shape.heads * shape.v_width);
    let q: Vec<f32> = (0..tokens * qw).map(|i| (i % 17) as f32 * 0.1 - 0.8).collect();
    let (mut out, mut parts) = (vec![0f32; tokens * ow], vec![0f32; plan.parts_floats()]);
    let calls: Vec<AttentionCall<'_>> = memory
        .iter()
        .map(|m| AttentionCall {
            plan,
            // SAFETY: the memory was sized for the blocks and is only read.
            cache: unsafe { KvCacheView::new(shape, m.as_slice().as_ptr().cast_mut(), blocks) }
                .unwrap_or_else(|e| panic!("{e}")),
            q: Src::new(q.as_ptr(), qw),
            out: Dst::new(out.as_mut_ptr(), ow),
            scale: 0.1,
            softcap: 0.0,
            sinks: None,
            parts: parts.as_mut_ptr(),
        })
        .collect();
    f(&calls);
}

/// Seconds of a layer, GB/s of keys and values, and the share of a plain read.
fn decode(isa: Isa, pool: &ThreadPool, shape: AttentionShape, depth: usize) -> (f64, f64, f64) {
    let blocks = depth / BLOCK;
    let layer = blocks * shape.block_bytes();
    let layers = (PASS / layer).max(1);
    let memory: Vec<HugeBuf> = (0..layers).map(|_| filled(layer)).collect();
    let tables: Vec<i32> = (0..blocks as i32).collect();
    let mask = Mask { causal: true, window: 0 };
    let mut plan = AttentionPlan::default();
    let (at, parts) = ([depth as i32 - 1], shape.parts_floats(depth, pool.count()));
    plan.cached(&shape, mask, &at, &[0], &tables, blocks, blocks, pool.count(), parts)
        .unwrap_or_else(|e| panic!("{e}"));
    let mut own: Vec<Vec<f32>> = (0..pool.count()).map(|_| vec![0f32; shape.worker_scratch_floats()]).collect();
    let scratch: Vec<Scratch> = own.iter_mut().map(|o| Scratch(o.as_mut_ptr(), o.len())).collect();
    let (mut best, mut best_read) = (f64::MAX, f64::MAX);
    with_call(shape, &plan, 1, &memory, blocks, &mut |calls| {
        for _ in 0..RUNS {
            let start = seconds(pool);
            memory.iter().for_each(|m| read(pool, m.as_slice()));
            best_read = best_read.min(seconds(pool) - start);
            let start = seconds(pool);
            calls.iter().for_each(|call| attend(isa, pool, call, &scratch));
            best = best.min(seconds(pool) - start);
        }
    });
    (best / layers as f64, (layers * layer) as f64 / best * 1e-9, best_read / best)
}

fn read(pool: &ThreadPool, bytes: &[u8]) {
    static SEEN: AtomicU64 = AtomicU64::new(0);
    pool.run(|ctx| {
        let share = &bytes[bytes.len() * ctx.index / ctx.count / 512 * 512..bytes.len() * (ctx.index + 1) / ctx.count];
        let mut acc = [0u64; 16];
        for chunk in share.chunks_exact(128) {
            for (a, w) in acc.iter_mut().zip(chunk.chunks_exact(8)) {
                *a |= u64::from_ne_bytes([w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7]]);
            }
        }
        SEEN.fetch_or(acc.iter().fold(0, |a, b| a | b), Ordering::Relaxed);
    });
}

/// Milliseconds of one layer, and GFLOP/s of the visible half.
fn prefill(isa: Isa, pool: &ThreadPool, shape: AttentionShape, tokens: usize) -> (f64, f64) {
    let blocks = tokens / BLOCK;
    let memory = [filled(blocks * shape.block_bytes())];
    let tables: Vec<i32> = (0..blocks as i32).collect();
    let positions: Vec<i32> = (0..tokens as i32).collect();
    let mask = Mask { causal: true, window: 0 };
    let mut plan = AttentionPlan::default();
    let (seqs, parts) = (vec![0; tokens], shape.parts_floats(tokens, pool.count()));
    plan.cached(&shape, mask, &positions, &seqs, &tables, blocks, blocks, pool.count(), parts)
        .unwrap_or_else(|e| panic!("{e}"));
    let mut own: Vec<Vec<f32>> = (0..pool.count()).map(|_| vec![0f32; shape.worker_scratch_floats()]).collect();
    let scratch: Vec<Scratch> = own.iter_mut().map(|o| Scratch(o.as_mut_ptr(), o.len())).collect();
    let mut best = f64::MAX;
    with_call(shape, &plan, tokens, &memory, blocks, &mut |calls| {
        for _ in 0..RUNS {
            let start = seconds(pool);
            attend(isa, pool, &calls[0], &scratch);
            best = best.min(seconds(pool) - start);
        }
    });
    let flops = 2.0 * (tokens * tokens) as f64 * (shape.heads * shape.k_width) as f64;
    (best * 1e3, flops / best * 1e-9)
}
