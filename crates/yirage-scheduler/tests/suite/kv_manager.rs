//! The cache bookkeeping through its public interface, one behaviour at a time. The simulation in the scheduler's unit
//! tests covers the combinations.

use yirage_scheduler::kv::{CacheGroup, GroupConfig, KvError, KvManager, NO_BLOCK, OutOfBlocks, SeqCache};
use yirage_scheduler::limits::{BLOCK, MAX_GROUPS, MAX_POOL_BLOCKS};

fn full() -> CacheGroup {
    CacheGroup::Paged { k_width: 64, v_width: 32, window: None, layers: 3 }
}

fn windowed(window: u32) -> CacheGroup {
    CacheGroup::Paged { k_width: 64, v_width: 64, window: Some(window), layers: 1 }
}

fn manager(groups: &[(CacheGroup, u32)]) -> KvManager {
    let groups: Vec<GroupConfig> =
        groups.iter().map(|(group, blocks)| GroupConfig { group: group.clone(), blocks: *blocks }).collect();
    KvManager::new(&groups, true).unwrap()
}

fn tokens(count: usize, seed: u32) -> Vec<u32> {
    (0..count as u32).map(|at| at * 7 + seed).collect()
}

/// Opens a sequence and computes all of `tokens` in one step.
fn compute(kv: &mut KvManager, tokens: &[u32], salt: &[u8]) -> SeqCache {
    let mut seq = kv.open(tokens, salt, usize::MAX);
    kv.reserve(&mut seq, tokens.len()).unwrap();
    kv.advance(&mut seq, tokens, tokens.len());
    seq
}

/// A recurrent layer begins where a full block has left its state, and needs no earlier block.
#[test]
fn recurrent_states_are_shared_at_the_ends_of_blocks() {
    let states = || CacheGroup::Recurrent { elements: 6, every: 1 };
    let mut kv = manager(&[(full(), 12), (states(), 6)]);
    let prompt = tokens(3 * BLOCK + 5, 0);
    let mut first = compute(&mut kv, &prompt, b"");
    assert_eq!((first.len(), first.live_blocks(0), first.live_blocks(1)), (prompt.len(), 4, 4));
    // A step later the states of the blocks before the latest position are no longer held, but kept for others.
    let longer = [&prompt[..], &[9]].concat();
    kv.reserve(&mut first, longer.len()).unwrap();
    kv.advance(&mut first, &longer, longer.len());
    assert_eq!((first.live_blocks(0), first.live_blocks(1), kv.cached_blocks(1)), (4, 1, 3));
    let second = kv.open(&prompt, b"", usize::MAX);
    assert_eq!(second.len(), 3 * BLOCK);
    assert_eq!(second.table(1).iter().filter(|&&block| block >= 0).count(), 1, "the state before the next position");
    kv.check([&first, &second]).unwrap();
}

/// Large states are not kept behind every block: a run of positions computes them in the blocks that are.
#[test]
fn large_recurrent_states_are_kept_behind_some_blocks() {
    let states = CacheGroup::Recurrent { elements: 6, every: 4 };
    let mut kv = manager(&[(full(), 24), (states.clone(), states.peak_blocks(usize::MAX, 10 * BLOCK, BLOCK) as u32)]);
    let prompt = tokens(9 * BLOCK + 5, 0);
    let mut seq = kv.open(&prompt, b"", usize::MAX);
    kv.reserve(&mut seq, prompt.len()).unwrap();
    let held: Vec<usize> = (0..10).filter(|&at| seq.table(1)[at] != NO_BLOCK).collect();
    assert_eq!((held, seq.live_blocks(1)), (vec![3, 7, 8, 9], 4));
    let (table, step) = (seq.table(1).to_vec(), seq.step_table(1));
    assert_eq!(step, [3, 3, 3, 3, 7, 7, 7, 7, 8, 9].map(|at: usize| table[at]));
    assert_eq!(seq.step_table(0), seq.table(0));
    kv.advance(&mut seq, &prompt, prompt.len());
    kv.check([&seq]).unwrap();
    // The end of the last full block is where an equal prompt begins, and others begin where they may.
    let mut again = kv.open(&prompt, b"", usize::MAX);
    assert_eq!(again.len(), 9 * BLOCK);
    let mut shorter = kv.open(&prompt[..7 * BLOCK], b"", usize::MAX);
    assert_eq!(shorter.len(), 4 * BLOCK);
    kv.check([&seq, &again, &shorter]).unwrap();
    [&mut seq, &mut again, &mut shorter].into_iter().for_each(|seq| kv.close(seq));
    kv.check([]).unwrap();
}

#[test]
fn impossible_pools_are_refused() {
    let config = |group: CacheGroup, blocks| GroupConfig { group, blocks };
    assert_eq!(KvManager::new(&[], true).unwrap_err(), KvError::GroupCount { groups: 0 });
    let many = vec![config(full(), 1); MAX_GROUPS + 1];
    assert_eq!(KvManager::new(&many, true).unwrap_err(), KvError::GroupCount { groups: MAX_GROUPS + 1 });
    let empty = KvManager::new(&[config(full(), 0)], true).unwrap_err();
    assert_eq!(empty, KvError::PoolSize { group: 0, blocks: 0 });
    let large = KvManager::new(&[config(full(), MAX_POOL_BLOCKS + 1)], true).unwrap_err();
    assert_eq!(large, KvError::PoolSize { group: 0, blocks: u64::from(MAX_POOL_BLOCKS) + 1 });
    assert_eq!(KvManager::new(&[config(windowed(0), 4)], true).unwrap_err(), KvError::EmptyWindow { group: 0 });
}

#[test]
fn elements_per_block_count_all_layers() {
    assert_eq!(full().elements_per_block(BLOCK), (64 + 32) * 3 * BLOCK as u64);
    assert_eq!(CacheGroup::Latent { rank: 512, rope: 64, layers: 2 }.elements_per_block(BLOCK), 576 * 2 * BLOCK as u64);
    assert_eq!(CacheGroup::Recurrent { elements: 640, every: 2 }.elements_per_block(BLOCK), 640);
}

#[test]
fn blocks_are_counted_exactly() {
    let mut kv = manager(&[(full(), 10)]);
    let counts = |kv: &KvManager| (kv.free_blocks(0), kv.cached_blocks(0), kv.blocks_in_use(0));
    assert_eq!(counts(&kv), (10, 0, 0));
    let mut seq = compute(&mut kv, &tokens(3 * BLOCK + 1, 0), b"");
    assert_eq!(counts(&kv), (6, 0, 4));
    kv.check([&seq]).unwrap();
    kv.close(&mut seq);
    assert_eq!(counts(&kv), (7, 3, 0));
    kv.check([]).unwrap();
}

#[test]
fn an_allocation_that_cannot_be_served_takes_nothing() {
    let mut kv = manager(&[(full(), 10), (CacheGroup::Latent { rank: 1, rope: 1, layers: 1 }, 2)]);
    let mut seq = kv.empty();
    let error = kv.reserve(&mut seq, 3 * BLOCK).unwrap_err();
    assert_eq!(error, OutOfBlocks { group: 1, needed: 3, available: 2 });
    assert_eq!((kv.blocks_in_use(0), kv.blocks_in_use(1)), (0, 0));
    kv.check([&seq]).unwrap();
}

#[test]
fn equal_beginnings_share_full_blocks_only() {
    let mut kv = manager(&[(full(), 20)]);
    let text = tokens(2 * BLOCK + 9, 0);
    let first = compute(&mut kv, &text, b"");
    let second = compute(&mut kv, &text, b"");
    assert_eq!(first.table(0)[..2], second.table(0)[..2]);
    assert_ne!(first.table(0)[2], second.table(0)[2]);
    assert_eq!(kv.blocks_in_use(0), 4);
    kv.check([&first, &second]).unwrap();
}

#[test]
fn a_fully_cached_prompt_leaves_its_last_block_to_compute() {
    let mut kv = manager(&[(full(), 20)]);
    let text = tokens(2 * BLOCK, 0);
    let mut seq = compute(&mut kv, &text, b"");
    kv.close(&mut seq);
    assert_eq!(kv.open(&text, b"", usize::MAX).len(), BLOCK);
    let mut longer = text.clone();
    longer.push(1);
    assert_eq!(kv.open(&longer, b"", usize::MAX).len(), 2 * BLOCK);
    assert_eq!(kv.open(&longer, b"", 2 * BLOCK - 1).len(), BLOCK);
    assert_eq!(kv.open(&[], b"", usize::MAX).len(), 0);
}

#[test]
fn equal_blocks_after_different_beginnings_are_different() {
    let mut kv = manager(&[(full(), 20)]);
    let common = tokens(BLOCK, 5);
    let text = |first: u32| [tokens(BLOCK, first), common.clone(), vec![1]].concat();
    let first = compute(&mut kv, &text(1), b"");
    assert_eq!(kv.open(&text(2), b"", usize::MAX).len(), 0);
    assert_eq!(kv.open(&common, b"", usize::MAX).len(), 0);
    assert_eq!(kv.open(&text(1), b"", usize::MAX).len(), 2 * BLOCK);
    drop(first);
}

#[test]
fn salts_separate_requests() {
    let mut kv = manager(&[(full(), 20)]);
    let text = tokens(2 * BLOCK, 0);
    let seq = compute(&mut kv, &text, b"a");
    assert_eq!(kv.open(&text, b"", usize::MAX).len(), 0);
    assert_eq!(kv.open(&text, b"b", usize::MAX).len(), 0);
    assert_eq!(kv.open(&text, b"a", usize::MAX).len(), BLOCK);
    drop(seq);
}

#[test]
fn without_prefix_cache_nothing_is_kept() {
    let mut kv = KvManager::new(&[GroupConfig { group: full(), blocks: 8 }], false).unwrap();
    let text = tokens(3 * BLOCK, 0);
    let mut seq = compute(&mut kv, &text, b"");
    kv.close(&mut seq);
    assert_eq!((kv.free_blocks(0), kv.cached_blocks(0)), (8, 0));
    assert_eq!(kv.open(&text, b"", usize::MAX).len(), 0);
}

#[test]
fn a_window_keeps_exactly_what_the_next_query_sees() {
    for window in [1, 2, 31, 32, 33, 40, 64, 65] {
        let mut kv = manager(&[(windowed(window), 20)]);
        let text = tokens(200, 0);
        let mut seq = kv.empty();
        for next in 0..text.len() {
            kv.reserve(&mut seq, next + 1).unwrap();
            let first = (next + 1).saturating_sub(window as usize) / BLOCK;
            for (at, &block) in seq.table(0).iter().enumerate() {
                assert_eq!(block == NO_BLOCK, at < first, "window {window}, query {next}, block {at}");
            }
            assert_eq!(seq.live_blocks(0), next / BLOCK + 1 - first);
            kv.advance(&mut seq, &text, next + 1);
            kv.check([&seq]).unwrap();
        }
        kv.close(&mut seq);
        assert_eq!(kv.blocks_in_use(0), 0);
    }
}

#[test]
fn peak_blocks_bounds_what_a_chunked_run_holds() {
    for window in [1u32, 5, 32, 33, 100] {
        for chunk in [1usize, 7, 32, 50, 200] {
            let group = windowed(window);
            let bound = group.peak_blocks(400, chunk, BLOCK);
            let mut kv = manager(&[(group, bound as u32)]);
            let text = tokens(400, 0);
            let mut seq = kv.empty();
            while seq.len() < text.len() {
                let upto = (seq.len() + chunk).min(text.len());
                kv.reserve(&mut seq, upto).unwrap_or_else(|error| panic!("window {window}, chunk {chunk}: {error}"));
                kv.advance(&mut seq, &text, upto);
            }
        }
    }
}

#[test]
fn a_hit_counts_only_where_the_window_group_still_has_its_blocks() {
    let mut kv = manager(&[(full(), 40), (windowed(40), 3)]);
    let text = tokens(10 * BLOCK, 0);
    let mut seq = kv.empty();
    while seq.len() < text.len() {
        let upto = seq.len() + 1;
        kv.reserve(&mut seq, upto).unwrap();
        kv.advance(&mut seq, &text, upto);
    }
    kv.close(&mut seq);
    // The window pool has three blocks, so it remembers only the last blocks of the text; the full group has all.
    let mut longer = text.clone();
    longer.push(0);
    let hit = kv.open(&longer, b"", usize::MAX);
    assert_eq!(hit.len(), 10 * BLOCK);
    assert_eq!(hit.table(1)[..8], [NO_BLOCK; 8]);
    assert!(hit.table(1)[8..].iter().all(|&block| block >= 0), "{:?}", hit.table(1));
    kv.check([&hit]).unwrap();
    // In the middle of the text the window's blocks are gone, so nothing is served although the full group has it.
    let middle = kv.open(&text[..5 * BLOCK + 1], b"", usize::MAX);
    assert_eq!(middle.len(), 0);
}

#[test]
fn the_block_unused_for_longest_is_evicted_first_and_ends_before_beginnings() {
    let mut kv = manager(&[(full(), 4)]);
    let (old, new) = (tokens(2 * BLOCK + 1, 1), tokens(BLOCK + 1, 2));
    for text in [&old, &new] {
        let mut seq = compute(&mut kv, text, b"");
        kv.close(&mut seq);
    }
    assert_eq!((kv.free_blocks(0), kv.cached_blocks(0)), (1, 3));
    let mut seq = kv.empty();
    kv.reserve(&mut seq, 2 * BLOCK).unwrap();
    assert_eq!(kv.open(&old, b"", usize::MAX).len(), BLOCK);
    assert_eq!(kv.open(&new, b"", usize::MAX).len(), BLOCK);
}

#[test]
fn the_checker_sees_a_lost_sequence() {
    let mut kv = manager(&[(full(), 8)]);
    let seq = compute(&mut kv, &tokens(40, 0), b"");
    let violation = kv.check([]).unwrap_err();
    assert!(violation.to_string().contains("reference count 1, but 0 tables"), "{violation}");
    assert!(kv.check([&seq, &seq]).is_err());
    kv.check([&seq]).unwrap();
}

#[test]
fn max_positions_is_what_a_lone_sequence_can_reach() {
    assert_eq!(manager(&[(full(), 8)]).max_positions(64), 8 * BLOCK);
    assert_eq!(manager(&[(full(), 8), (windowed(33), 4)]).max_positions(1), 8 * BLOCK);
    assert_eq!(manager(&[(windowed(33), 4)]).max_positions(33), usize::MAX);
    assert_eq!(manager(&[(windowed(33), 2)]).max_positions(64), 2 * BLOCK);
}

#[test]
fn what_no_sequence_holds_is_forgotten() {
    let mut kv = manager(&[(full(), 8), (windowed(40), 8)]);
    let (ended, running) = (tokens(3 * BLOCK, 1), tokens(2 * BLOCK, 2));
    let mut first = compute(&mut kv, &ended, &[]);
    let second = compute(&mut kv, &running, &[]);
    kv.close(&mut first);
    assert!(kv.cached_blocks(0) > 0);
    kv.forget();
    kv.check([&second]).unwrap();
    assert_eq!((kv.cached_blocks(0), kv.cached_blocks(1)), (0, 0));
    assert_eq!(kv.open(&ended, &[], usize::MAX).len(), 0);
    let shared = kv.open(&tokens(2 * BLOCK + 1, 2), &[], usize::MAX);
    assert_eq!(shared.len(), 2 * BLOCK, "what a sequence holds is still found");
    kv.check([&second, &shared]).unwrap();
}

/// What was computed elsewhere is found only once it is published; of an attempt that ends before nothing stays.
#[test]
fn a_beginning_that_is_adopted_is_found_once_it_is_published() {
    let states = CacheGroup::Recurrent { elements: 6, every: 1 };
    let groups = [(full(), 8), (windowed(40), 8), (states, 8)];
    let (mut kv, beginning) = (manager(&groups), tokens(4 * BLOCK, 5));
    let longer = [&beginning[..], &[1]].concat();
    let mut given_up = kv.adopt(&beginning, b"s").unwrap();
    assert_eq!([0, 1, 2].map(|group| given_up.live_blocks(group)), [4, 2, 1]);
    kv.close(&mut given_up);
    assert_eq!((kv.open(&longer, b"s", usize::MAX).len(), kv.free_blocks(0)), (0, 8));
    let mut seq = kv.adopt(&beginning, b"s").unwrap();
    kv.advance(&mut seq, &beginning, beginning.len());
    kv.check([&seq]).unwrap();
    kv.close(&mut seq);
    let (found, other) = (kv.open(&longer, b"s", usize::MAX), kv.open(&longer, b"t", usize::MAX));
    assert_eq!((found.len(), other.len()), (4 * BLOCK, 0));
    kv.check([&found, &other]).unwrap();
    let full = OutOfBlocks { group: 0, needed: 9, available: 4 };
    assert_eq!(kv.adopt(&tokens(9 * BLOCK, 6), b"").unwrap_err(), full);
    kv.check([&found, &other]).unwrap();
}
