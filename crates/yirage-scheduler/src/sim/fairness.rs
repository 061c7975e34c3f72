//! Who comes first, by priority and by key, and how much prompts take of a step: one rule at a time.

use super::super::{Batch, EntryOutcome, NewSequence, Phase, Scheduler, SchedulerConfig, SeqId, SeqUpdate, StepResult};
use crate::kv::{CacheGroup, GroupConfig, KvManager};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;

fn scheduler(blocks: u32, max_seqs: u32) -> Scheduler {
    let group = CacheGroup::Paged { k_width: 4, v_width: 4, window: None, layers: 1 };
    let config = SchedulerConfig { max_seqs, max_waiting: 5000, ..SchedulerConfig::default() };
    Scheduler::new(config, KvManager::new(&[GroupConfig { group, blocks }], false).unwrap()).unwrap()
}

fn request(prompt: usize, max_new: u32) -> NewSequence {
    NewSequence { prompt: vec![5; prompt], max_new_tokens: Some(max_new), ..NewSequence::default() }
}

/// Runs one step, which samples token 1 wherever one is sampled.
fn step(sched: &mut Scheduler) -> (Batch, Vec<SeqUpdate>) {
    let batch = sched.schedule().unwrap();
    let outcome = |sample| if sample { EntryOutcome::Token(1) } else { EntryOutcome::Ran };
    let result = |sample, seq| StepResult { seq, outcome: outcome(sample) };
    let results: Vec<_> = batch.entries.iter().map(|entry| result(entry.sample, entry.seq)).collect();
    let updates = if results.is_empty() { Vec::new() } else { sched.commit(&results).unwrap() };
    sched.check().unwrap();
    (batch, updates)
}

/// Runs everything; the sequences in the order of their ends.
fn ends(sched: &mut Scheduler) -> Vec<SeqId> {
    let mut ends = Vec::new();
    while !sched.is_idle() {
        let over = |update| if let SeqUpdate::Finished { seq, .. } = update { Some(seq) } else { None };
        ends.extend(step(sched).1.into_iter().filter_map(over));
    }
    ends
}

#[test]
fn less_comes_first_and_equals_in_the_order_of_arrival() {
    let mut sched = scheduler(20, 1);
    let priorities = [3, i32::MAX, -1, 3, i32::MIN, -1];
    let mut add = |priority| sched.add(NewSequence { priority, ..request(4, 2) }).unwrap();
    let ids = priorities.map(&mut add);
    assert_eq!(ends(&mut sched), [4, 2, 5, 0, 3, 1].map(|at: usize| ids[at]));
}

#[test]
fn who_is_least_urgent_pays_when_blocks_run_out_even_if_it_is_the_oldest() {
    let mut sched = scheduler(4, 4);
    let old = sched.add(NewSequence { priority: 1, ..request(60, 40) }).unwrap();
    step(&mut sched);
    let urgent = sched.add(NewSequence { priority: 0, ..request(60, 40) }).unwrap();
    assert_eq!(ends(&mut sched), [urgent, old]);
    assert_eq!(sched.stats().preemptions, 1);
}

#[test]
fn somebody_urgent_does_not_wait_for_the_rest_of_a_long_prompt() {
    let mut sched = scheduler(400, 4);
    sched.add(NewSequence { priority: 1, ..request(4000, 1) }).unwrap();
    step(&mut sched);
    let urgent = sched.add(NewSequence { priority: 0, ..request(10, 1) }).unwrap();
    let (batch, updates) = step(&mut sched);
    assert_eq!(batch.entries[0].seq, urgent);
    assert!(updates.iter().any(|update| matches!(update, SeqUpdate::Finished { seq, .. } if *seq == urgent)));
    assert_eq!(batch.tokens(), 512, "the long prompt has the rest of the step");
}

#[test]
fn a_thousand_requests_of_one_key_do_not_starve_another() {
    let mut sched = scheduler(400, 4);
    for _ in 0..1000 {
        sched.add(NewSequence { key: 1, ..request(30, 10) }).unwrap();
    }
    (0..50).for_each(|_| drop(step(&mut sched)));
    let other = sched.add(NewSequence { key: 2, ..request(30, 10) }).unwrap();
    let mut waited = 0;
    while sched.phase(other) == Some(Phase::Waiting) {
        step(&mut sched);
        waited += 1;
    }
    assert!(waited <= 11, "{waited} steps; a seat is free after those of one request");
    let more = sched.add(NewSequence { key: 2, ..request(30, 10) }).unwrap();
    let ends = ends(&mut sched);
    let place = |seq| ends.iter().position(|&end| end == seq).unwrap();
    assert!(place(other) < 8 && place(more) < 16, "{} {}", place(other), place(more));
}

/// Keys whose requests never run out are served equally much, however long their requests are: they are apart by what
/// they have running.
#[test]
fn keys_that_always_wait_are_served_alike() {
    let lengths = [(1, 400, 5), (2, 10, 60), (3, 90, 1)];
    let mut sched = scheduler(400, 3);
    let mut key_of = BTreeMap::new();
    for _ in 0..300 {
        for (key, prompt, new) in lengths {
            key_of.insert(sched.add(NewSequence { key, ..request(prompt, new) }).unwrap(), key);
        }
    }
    let mut served = BTreeMap::from(lengths.map(|(key, ..)| (key, 0)));
    for _ in 0..1500 {
        for entry in step(&mut sched).0.entries {
            *served.get_mut(&key_of[&entry.seq]).unwrap() += entry.tokens.len();
        }
        let (least, most) = (served.values().min().unwrap(), served.values().max().unwrap());
        assert!(most - least <= 3 * 405, "{served:?}");
    }
    assert!(served.values().all(|&tokens| tokens > 4_000), "{served:?}");
}

#[test]
fn a_key_that_comes_late_is_not_served_before_all_others_forever() {
    let mut sched = scheduler(400, 1);
    for _ in 0..40 {
        sched.add(NewSequence { key: 1, ..request(30, 10) }).unwrap();
    }
    (0..200).for_each(|_| drop(step(&mut sched)));
    let late: Vec<SeqId> = (0..20).map(|_| sched.add(NewSequence { key: 2, ..request(30, 10) }).unwrap()).collect();
    let ends = ends(&mut sched);
    let of_late = ends[..10].iter().filter(|seq| late.contains(seq)).count();
    assert!((4..=6).contains(&of_late), "{of_late} of the next ten");
}

#[test]
fn prompts_take_as_much_of_a_step_that_decodes_as_they_may() {
    let mut sched = scheduler(400, 4);
    sched.limit_prefill(NonZeroUsize::new(7));
    sched.add(request(100, 200)).unwrap();
    let tokens = |batch: &Batch, phase| {
        batch.entries.iter().filter(|entry| entry.phase == phase).map(|entry| entry.tokens.len()).sum::<usize>()
    };
    let (batch, _) = step(&mut sched);
    assert_eq!(tokens(&batch, Phase::Prefill), 100, "nobody waits for a token");
    sched.add(request(30, 50)).unwrap();
    sched.add(request(30, 50)).unwrap();
    let steps: Vec<Batch> = (0..10).map(|_| step(&mut sched).0).collect();
    assert!(steps.iter().all(|batch| tokens(batch, Phase::Decode) >= 1), "the stream goes on");
    let prompts: Vec<usize> = steps.iter().map(|batch| tokens(batch, Phase::Prefill)).collect();
    assert_eq!(prompts, [7, 7, 7, 7, 7, 7, 7, 7, 4, 0]);
    sched.limit_prefill(None);
    sched.add(request(300, 5)).unwrap();
    assert_eq!(tokens(&step(&mut sched).0, Phase::Prefill), 300);
}
