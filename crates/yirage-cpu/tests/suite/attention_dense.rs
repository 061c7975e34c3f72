//! Attention over the step's own keys and values, in both directions or causal.

use crate::attention_support::*;
use yirage_cpu::pool::ThreadPool;
use yirage_cpu_kernels::attention::{AttentionError, AttentionPlan, AttentionShape, KvCacheView, KvType, Mask};
use yirage_cpu_kernels::isa::Isa;

fn rows(world: &World, tokens: &[(usize, usize)], pool: &ThreadPool) -> Vec<Vec<f32>> {
    let positions: Vec<i32> = tokens.iter().map(|t| t.1 as i32 + 7).collect();
    let seqs: Vec<i32> = tokens.iter().map(|t| t.0 as i32 * 5 - 1).collect();
    let mut plan = AttentionPlan::default();
    plan.dense(&world.shape, world.mask, &positions, &seqs, pool.count(), usize::MAX).unwrap();
    let mut memory = vec![u64::MAX; plan.blocks() * world.shape.block_bytes() / 8];
    // SAFETY: the memory has the plan's blocks and outlives the step.
    let cache = unsafe { KvCacheView::new(world.shape, memory.as_mut_ptr().cast(), plan.blocks()) }.unwrap();
    let how = Manner { isa: Isa::detect(), pool, blocks: 0, workers: pool.count(), parts: usize::MAX };
    step_rows(world, tokens, plan.slots(), &plan, cache, &how)
}

#[test]
fn close_to_f64_and_independent_of_order() {
    let pool = ThreadPool::new(2).unwrap();
    let shape = AttentionShape { heads: 6, kv_heads: 2, k_width: 20, v_width: 12, v_in_k: false, kv: KvType::F32 };
    for causal in [false, true] {
        for window in [0, 9, 64] {
            let mut world = World::new(shape, &[300, 1, 45], 21);
            world.mask = Mask { causal, window };
            let one_by_one: Vec<(usize, usize)> =
                (0..3).flat_map(|s| (0..world.lengths[s]).map(move |p| (s, p))).collect();
            let mut shuffled = one_by_one.clone();
            shuffled.sort_by_key(|&(s, p)| (p, s));
            let (a, b) = (rows(&world, &one_by_one, &pool), rows(&world, &shuffled, &pool));
            let collect = |t: &[(usize, usize)], r: Vec<Vec<f32>>| t.iter().copied().zip(r).collect();
            let (a, b) = (collect(&one_by_one, a), collect(&shuffled, b));
            let e = error(&world, &a);
            assert!(e < 4e-6, "causal {causal} window {window}: {e}");
            assert_same(&a, &b, "order of tokens");
        }
    }
}

#[test]
fn gaps_are_refused() {
    let shape = AttentionShape { heads: 1, kv_heads: 1, k_width: 4, v_width: 4, v_in_k: false, kv: KvType::F32 };
    let mask = Mask { causal: false, window: 0 };
    let mut plan = AttentionPlan::default();
    let mut cut = |p: &[i32], s: &[i32]| plan.dense(&shape, mask, p, s, 1, 0);
    assert_eq!(cut(&[0, 2], &[0, 0]), Err(AttentionError::Gap { seq: 0, pos: 2, wanted: 1 }));
    assert_eq!(cut(&[5, 5, 6], &[0, 1, 0]), Ok(()));
    assert_eq!(cut(&[], &[]), Ok(()));
    assert_eq!(cut(&[0], &[]), Err(AttentionError::Length { what: "seqs", got: 0, wanted: 1 }));
}
