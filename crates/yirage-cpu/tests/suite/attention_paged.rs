//! Paged attention against f64, and its independence of schedule, batch, blocks, threads and level.

use crate::attention_support::*;
use yirage_cpu::pool::ThreadPool;
use yirage_cpu_kernels::attention::{AttentionError, AttentionPlan, AttentionShape, KvCacheView, KvType, Mask};
use yirage_cpu_kernels::isa::Isa;
use yirage_cpu_kernels::rows::Src;

const ALL: [KvType; 4] = [KvType::F32, KvType::F16, KvType::BF16, KvType::Q8_0];

/// The width itself, or the next that this storage can hold.
fn fits(width: usize, kv: KvType) -> usize {
    width.next_multiple_of(kv.block())
}

fn shape(heads: usize, kv_heads: usize, k_width: usize, v_width: usize, kv: KvType) -> AttentionShape {
    AttentionShape { heads, kv_heads, k_width, v_width, v_in_k: false, kv }
}

fn manner(pool: &ThreadPool) -> Manner<'_> {
    Manner { isa: Isa::detect(), pool, blocks: 1, workers: pool.count(), parts: usize::MAX }
}

/// f32 arithmetic throughout: far below the 5e-3 of half-precision kernels.
const CLOSE: f64 = 4e-6;

#[test]
fn close_to_f64_in_every_shape_and_storage() {
    let pool = ThreadPool::new(2).unwrap();
    let shapes = [(1, 1, 1, 1), (4, 2, 16, 16), (6, 1, 128, 128), (3, 3, 13, 7), (8, 2, 64, 80), (4, 1, 256, 256)];
    for (i, (h, kvh, k, v)) in shapes.into_iter().enumerate() {
        for kv in ALL {
            let world = World::new(shape(h, kvh, fits(k, kv), fits(v, kv), kv), &[70, 1, 33], i as u64);
            for steps in [whole(&world), mixed(&world, &mut Rng::new(5))] {
                let e = error(&world, &run(&world, &steps, &manner(&pool)));
                assert!(e < CLOSE, "{:?}: {e}", world.shape);
            }
        }
    }
}

#[test]
fn long_context_crosses_splits() {
    let pool = ThreadPool::new(2).unwrap();
    for kv in ALL {
        let mut world = World::new(shape(4, 1, 32, 32, kv), &[1100], 3);
        let rows = run(&world, &[vec![(0, 0..1099)], vec![(0, 1099..1100)]], &manner(&pool));
        assert!(error(&world, &rows) < CLOSE);
        world.mask.window = 300;
        let rows = run(&world, &[vec![(0, 0..1099)], vec![(0, 1099..1100)]], &manner(&pool));
        assert!(error(&world, &rows) < CLOSE);
    }
}

#[test]
fn large_scores_do_not_overflow() {
    let pool = ThreadPool::new(1).unwrap();
    let mut world = World::new(shape(2, 1, 16, 16, KvType::F32), &[300], 4);
    world.scale = 100.0;
    let e = error(&world, &run(&world, &whole(&world), &manner(&pool)));
    // Scores of some thousands carry f32 errors of some 1e-4, and so do the weights.
    assert!(e < 5e-3, "{e}");
    world.q[0].iter_mut().for_each(|q| *q *= 1e30);
    assert!(error(&world, &run(&world, &whole(&world), &manner(&pool))).is_finite());
}

fn random_world(rng: &mut Rng) -> World {
    let kv_heads = 1 + rng.index(3);
    let group = [1, 2, 3, 5, 6, 8, 9, 70][rng.index(8)];
    let (kv, widths) = (ALL[rng.index(4)], [1, 2, 7, 16, 24, 33, 64, 160]);
    let (k_width, mut v_width) = (fits(widths[rng.index(8)], kv), fits(widths[rng.index(8)], kv));
    let v_in_k = rng.index(4) == 0;
    if v_in_k {
        v_width = v_width.min(k_width) - rng.index(2).min(v_width.min(k_width) - 1);
    }
    let kv_heads = if group > 10 { 1 } else { kv_heads };
    let shape = AttentionShape { heads: kv_heads * group, kv_heads, k_width, v_width, v_in_k, kv };
    let seqs = 1 + rng.index(3);
    let lengths: Vec<usize> = (0..seqs)
        .map(|_| {
            let most = [310, 70, 70][rng.index(3)];
            1 + rng.index(most)
        })
        .collect();
    let mut world = World::new(shape, &lengths, rng.next_u64());
    world.mask.window = [0, 0, 1, 5, 32, 33, 100][rng.index(7)];
    world.softcap = [0.0, 0.0, 2.0, 30.0][rng.index(4)];
    if rng.index(3) == 0 {
        world.sinks = Some((0..shape.heads).map(|_| rng.signed_f32() * 6.0).collect());
    }
    world
}

#[test]
fn random_worlds_are_exact_and_the_same_in_every_manner() {
    let pools: Vec<ThreadPool> = [1, 2, 3, 8].into_iter().map(|n| ThreadPool::new(n).unwrap()).collect();
    let mut rng = Rng::new(2026);
    for round in 0..60 {
        let world = random_world(&mut rng);
        let one = run(&world, &whole(&world), &manner(&pools[0]));
        let e = error(&world, &one);
        assert!(e < CLOSE, "round {round}: {e} in {:?} {:?} cap {}", world.shape, world.mask, world.softcap);
        for _ in 0..3 {
            let pool = &pools[rng.index(4)];
            let isa = levels()[rng.index(levels().len())];
            let parts = [0, 5000, usize::MAX][rng.index(3)];
            let workers = [1, 2, 8][rng.index(3)];
            let how = Manner { isa, pool, blocks: rng.next_u64(), workers, parts };
            let what = format!("round {round} at {isa}, {} threads, cut for {workers}, {parts} floats", pool.count());
            assert_same(&one, &run(&world, &mixed(&world, &mut rng), &how), &what);
        }
    }
}

#[test]
fn one_token_at_a_time_is_the_whole_prompt() {
    let pool = ThreadPool::new(2).unwrap();
    for kv in ALL {
        for window in [0, 40] {
            let mut world = World::new(shape(6, 2, fits(24, kv), fits(24, kv), kv), &[290, 65], 9);
            world.mask.window = window;
            let one = run(&world, &whole(&world), &manner(&pool));
            assert_same(&one, &run(&world, &singly(&world), &manner(&pool)), &format!("{kv:?} window {window}"));
        }
    }
}

#[test]
fn a_sequence_does_not_feel_its_neighbours() {
    let pool = ThreadPool::new(2).unwrap();
    for kv in [KvType::BF16, KvType::Q8_0] {
        let world = World::new(shape(4, 2, 32, 32, kv), &[120, 50, 300], 10);
        let together = run(&world, &mixed(&world, &mut Rng::new(3)), &manner(&pool));
        for seq in 0..3 {
            let alone = run(&world, &[vec![(seq, 0..world.lengths[seq])]], &manner(&pool));
            let same: std::collections::BTreeMap<_, _> =
                together.iter().filter(|(p, _)| p.0 == seq).map(|(p, r)| (*p, r.clone())).collect();
            assert_same(&alone, &same, &format!("{kv:?} sequence {seq}"));
        }
    }
}

#[test]
fn levels_agree_to_the_bit() {
    let pool = ThreadPool::new(2).unwrap();
    for kv in ALL {
        let mut world = World::new(shape(7, 1, fits(40, kv), fits(24, kv), kv), &[270], 11);
        world.softcap = 20.0;
        world.sinks = Some(vec![0.5; 7]);
        let plain = run(&world, &whole(&world), &Manner { isa: Isa::Scalar, ..manner(&pool) });
        for isa in levels() {
            assert_same(&plain, &run(&world, &whole(&world), &Manner { isa, ..manner(&pool) }), isa.name());
        }
    }
}

#[test]
fn latent_values_are_their_keys() {
    let pool = ThreadPool::new(2).unwrap();
    for kv in ALL {
        let k_width = fits(72, kv);
        let latent = AttentionShape { v_in_k: true, ..shape(16, 1, k_width, 64, kv) };
        let mut world = World::new(latent, &[150], 12);
        let rows = run(&world, &mixed(&world, &mut Rng::new(1)), &manner(&pool));
        assert!(error(&world, &rows) < CLOSE);
        // The same with the values stored once more.
        world.shape.v_in_k = false;
        world.v[0] = world.k[0].chunks(k_width).flat_map(|k| k[..64].to_vec()).collect();
        let twice = run(&world, &whole(&world), &manner(&pool));
        if kv == KvType::Q8_0 {
            // Scales of values go into the weights, those of keys into the values: the same but for roundings.
            assert!(error(&world, &twice) < CLOSE);
        } else {
            assert_same(&rows, &twice, "stored twice");
        }
    }
}

#[test]
fn long_decode_is_shared_by_all_workers() {
    let s = shape(12, 2, 128, 128, KvType::BF16);
    for depth in [40, 300, 2047, 30_000] {
        let tables: Vec<i32> = (0..1000).collect();
        let mut plan = AttentionPlan::default();
        let mask = Mask { causal: true, window: 0 };
        let parts = s.parts_floats(32_000, 2);
        plan.cached(&s, mask, &[depth], &[0], &tables, 1000, 1000, 2, parts).unwrap();
        let (a, b) = (plan.worker_items(0, 2), plan.worker_items(1, 2));
        assert!(a.start == 0 && a.end == b.start && b.end == plan.items(), "{depth}: {a:?} {b:?}");
        assert!(!a.is_empty() && !b.is_empty(), "depth {depth}: {a:?} {b:?} of {}", plan.items());
        assert!(a.len().abs_diff(b.len()) <= 1, "depth {depth}: {a:?} {b:?}");
    }
}

#[test]
fn what_does_not_fit_is_told() {
    let s = shape(4, 2, 8, 8, KvType::F32);
    let mask = Mask { causal: true, window: 0 };
    let mut plan = AttentionPlan::default();
    let tables = [3, -1, 9, 0];
    let mut cut = |positions: &[i32], seqs: &[i32]| plan.cached(&s, mask, positions, seqs, &tables, 2, 5, 2, 100);
    assert_eq!(cut(&[0], &[0, 1]), Err(AttentionError::Length { what: "seqs", got: 2, wanted: 1 }));
    assert_eq!(cut(&[0], &[2]), Err(AttentionError::Seq { token: 0, seq: 2, seqs: 2 }));
    assert_eq!(cut(&[0], &[-1]), Err(AttentionError::Seq { token: 0, seq: -1, seqs: 2 }));
    assert_eq!(cut(&[-5], &[0]), Err(AttentionError::Position { token: 0, pos: -5, limit: 64 }));
    assert_eq!(cut(&[64], &[0]), Err(AttentionError::Position { token: 0, pos: 64, limit: 64 }));
    assert_eq!(cut(&[40], &[0]), Err(AttentionError::Block { seq: 0, index: 1, block: -1, blocks: 5 }));
    assert_eq!(cut(&[3], &[1]), Err(AttentionError::Block { seq: 1, index: 0, block: 9, blocks: 5 }));
    assert_eq!(cut(&[31], &[0]), Ok(()));
    assert_eq!(cut(&[], &[]), Ok(()));
    for bad in [
        shape(3, 2, 8, 8, KvType::F32),
        shape(4, 2, 0, 8, KvType::F32),
        AttentionShape { v_in_k: true, ..shape(2, 1, 4, 8, KvType::F16) },
    ] {
        assert!(matches!(bad.check(), Err(AttentionError::Shape(_))), "{bad:?}");
    }
}

#[test]
fn int8_takes_whole_blocks_and_34_bytes_for_each() {
    let s = shape(4, 2, 64, 96, KvType::Q8_0);
    assert_eq!(s.block_bytes(), 32 * 2 * (64 + 96) / 32 * 34);
    assert_eq!(AttentionShape { kv: KvType::BF16, ..s }.block_bytes() * 17, s.block_bytes() * 32);
    for bad in [shape(4, 2, 48, 64, KvType::Q8_0), shape(4, 2, 64, 80, KvType::Q8_0)] {
        let e = bad.check().unwrap_err();
        assert_eq!(e, AttentionError::Blocks { shape: bad, block: 32 });
        assert!(e.to_string().ends_with("multiples of; store them as bf16"), "{e}");
    }
    let latent = AttentionShape { v_in_k: true, ..shape(4, 1, 96, 40, KvType::Q8_0) };
    assert_eq!(latent.check().unwrap().block_bytes(), 32 * 96 / 32 * 34);
}

#[test]
fn slots_outside_are_refused_and_negative_ones_skipped() {
    let s = shape(1, 1, 2, 2, KvType::F32);
    let mut memory = vec![0u64; s.block_bytes() / 8];
    // SAFETY: the memory has one block.
    let cache = unsafe { KvCacheView::new(s, memory.as_mut_ptr().cast(), 1) }.unwrap();
    let x = [1.0f32; 4];
    let rows = Src::new(x.as_ptr(), 2);
    // SAFETY: two rows exist; one thread.
    unsafe {
        assert_eq!(cache.append(0..2, rows, rows, &[-1, 31]), Ok(()));
        assert_eq!(
            cache.append(0..2, rows, rows, &[0, 32]),
            Err(AttentionError::Slot { token: 1, slot: 32, slots: 32 })
        );
        assert!(matches!(cache.append(0..2, rows, rows, &[0]), Err(AttentionError::Length { .. })));
    }
    assert_eq!(memory.iter().filter(|&&w| w != 0).count(), 6, "slots 0 and 31: two keys and one pair of values each");
}
