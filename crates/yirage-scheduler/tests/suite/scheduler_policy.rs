//! The scheduler through its public interface: one rule of the policy at a time.

use yirage_scheduler::kv::{CacheGroup, GroupConfig, KvManager};
use yirage_scheduler::limits::{BLOCK, MAX_CACHE_SALT_BYTES, MAX_STOP_IDS};
use yirage_scheduler::{
    AdmissionError, Batch, CommitError, ConfigError, EntryOutcome, FinishOutcome, FinishReason, LogitsWanted,
    NewSequence, Phase, Scheduler, SchedulerConfig, SeqId, SeqUpdate, StepResult,
};

fn scheduler(blocks: u32, config: SchedulerConfig) -> Scheduler {
    let group = CacheGroup::Paged { k_width: 4, v_width: 4, window: None, layers: 1 };
    Scheduler::new(config, KvManager::new(&[GroupConfig { group, blocks }], true).unwrap()).unwrap()
}

fn config() -> SchedulerConfig {
    SchedulerConfig {
        max_seqs: 4,
        token_budget: 64,
        max_rows: 64,
        prefill_chunk: 64,
        max_prefills: 4,
        max_context: 1000,
        max_waiting: 10,
    }
}

fn request(prompt: usize, max_new: u32) -> NewSequence {
    NewSequence { prompt: (0..prompt as u32).collect(), max_new_tokens: Some(max_new), ..NewSequence::default() }
}

/// Results for a batch: `token` wherever one is sampled.
fn results(batch: &Batch, token: u32) -> Vec<StepResult> {
    let outcome = |sample| if sample { EntryOutcome::Token(token) } else { EntryOutcome::Ran };
    batch.entries.iter().map(|entry| StepResult { seq: entry.seq, outcome: outcome(entry.sample) }).collect()
}

/// Runs one step in which every sampling entry samples `token`.
fn step(sched: &mut Scheduler, token: u32) -> (Batch, Vec<SeqUpdate>) {
    let batch = sched.schedule().unwrap();
    let updates = if batch.entries.is_empty() { Vec::new() } else { sched.commit(&results(&batch, token)).unwrap() };
    sched.check().unwrap();
    (batch, updates)
}

/// (sequence, first position, tokens) of each entry.
fn shape(batch: &Batch) -> Vec<(u64, u32, usize)> {
    batch.entries.iter().map(|entry| (entry.seq.0, entry.start, entry.tokens.len())).collect()
}

#[test]
fn options_are_checked_with_their_numbers() {
    let kv = || {
        let group = CacheGroup::Latent { rank: 1, rope: 1, layers: 1 };
        KvManager::new(&[GroupConfig { group, blocks: 1 }], true).unwrap()
    };
    let error = Scheduler::new(SchedulerConfig { max_seqs: 0, ..config() }, kv()).unwrap_err();
    assert!(matches!(error, ConfigError::OutOfRange { field: "max_seqs", value: 0, .. }), "{error}");
    let error = Scheduler::new(SchedulerConfig { token_budget: 3, ..config() }, kv()).unwrap_err();
    assert_eq!(error, ConfigError::BelowSeqs { field: "token_budget", value: 3, max_seqs: 4 });
    SchedulerConfig::default().validate().unwrap();
}

#[test]
fn a_prompt_runs_in_chunks_and_then_decodes() {
    let mut sched = scheduler(20, config());
    let seq = sched.add(request(150, 3)).unwrap();
    assert_eq!(sched.phase(seq), Some(Phase::Waiting));
    let mut shapes = Vec::new();
    let mut sampled = Vec::new();
    let mut last = Vec::new();
    while !sched.is_idle() {
        let (batch, updates) = step(&mut sched, 9);
        shapes.extend(shape(&batch));
        sampled.push((batch.entries[0].sample, batch.rows()));
        last = updates;
    }
    assert_eq!(shapes, [(0, 0, 64), (0, 64, 64), (0, 128, 22), (0, 150, 1), (0, 151, 1)]);
    assert_eq!(sampled, [(false, 0), (false, 0), (true, 1), (true, 1), (true, 1)]);
    let Some(SeqUpdate::Finished { reason: FinishReason::Length, usage, .. }) = last.last() else { panic!("{last:?}") };
    assert_eq!((usage.prompt_tokens, usage.new_tokens, usage.cached_tokens), (150, 3, 0));
    assert_eq!(last[0], SeqUpdate::Token { seq, token: 9, position: 152 });
}

#[test]
fn slots_and_tables_name_the_same_places() {
    let mut sched = scheduler(20, config());
    sched.add(request(50, 1)).unwrap();
    let batch = sched.schedule().unwrap();
    let entry = &batch.entries[0];
    for (position, &slot) in entry.slots[0].iter().enumerate() {
        let block = entry.tables[0][position / BLOCK];
        assert_eq!(slot as usize, block as usize * BLOCK + position % BLOCK);
    }
    assert_eq!(entry.tables[0].len(), 2);
}

#[test]
fn a_prefill_chunk_shares_the_step_with_decodes_which_stand_first() {
    let mut sched = scheduler(20, config());
    sched.add(request(10, 20)).unwrap();
    step(&mut sched, 1);
    sched.add(request(100, 1)).unwrap();
    let (batch, _) = step(&mut sched, 1);
    assert_eq!(shape(&batch), [(0, 10, 1), (1, 0, 63)]);
    assert_eq!(batch.entries[0].phase, Phase::Decode);
    assert_eq!(batch.entries[1].phase, Phase::Prefill);
}

#[test]
fn the_number_of_prefill_chunks_in_a_step_is_an_option() {
    let mut sched = scheduler(20, SchedulerConfig { max_prefills: 1, ..config() });
    sched.add(request(10, 5)).unwrap();
    sched.add(request(10, 5)).unwrap();
    assert_eq!(shape(&step(&mut sched, 1).0), [(0, 0, 10)]);
    assert_eq!(shape(&step(&mut sched, 1).0), [(0, 10, 1), (1, 0, 10)]);
}

#[test]
fn the_newest_sequence_pays_when_blocks_run_out_and_resumes_with_its_tokens() {
    let mut sched = scheduler(4, config());
    let old = sched.add(request(60, 40)).unwrap();
    let new =
        sched.add(NewSequence { prompt: vec![5; 60], max_new_tokens: Some(40), ..NewSequence::default() }).unwrap();
    let mut tokens = [0, 0];
    let mut preempted_at = None;
    for _ in 0..300 {
        let (batch, updates) = step(&mut sched, 1);
        if sched.phase(new) == Some(Phase::Preempted) && preempted_at.is_none() {
            preempted_at = Some(tokens);
            assert_eq!(batch.entries.len(), 1);
        }
        for update in updates {
            match update {
                SeqUpdate::Token { seq, position, .. } => {
                    assert_eq!(position, 60 + tokens[seq.0 as usize]);
                    tokens[seq.0 as usize] += 1;
                }
                SeqUpdate::Finished { seq, usage, .. } => assert_eq!(usage.preemptions, u32::from(seq == new)),
            }
        }
    }
    assert!(preempted_at.is_some_and(|at| at[1] > 0 && at[1] < 40), "{preempted_at:?}");
    assert_eq!(tokens, [40, 40]);
    assert_eq!((sched.phase(old), sched.stats().preemptions), (None, 1));
    assert_eq!(sched.kv().blocks_in_use(0), 0);
}

#[test]
fn a_second_request_reuses_the_first_ones_prompt() {
    let mut sched = scheduler(20, config());
    for expected in [0, 64] {
        sched.add(request(70, 1)).unwrap();
        let mut updates = Vec::new();
        while !sched.is_idle() {
            updates = step(&mut sched, 1).1;
        }
        let Some(SeqUpdate::Finished { usage, .. }) = updates.last() else { panic!("{updates:?}") };
        assert_eq!(usage.cached_tokens, expected);
    }
}

#[test]
fn a_request_that_can_never_run_is_refused_with_numbers() {
    let mut sched = scheduler(4, config());
    assert_eq!(sched.add(request(0, 1)).unwrap_err(), AdmissionError::EmptyPrompt);
    let error = sched.add(request(900, 101)).unwrap_err();
    assert_eq!(error, AdmissionError::ExceedsContext { prompt: 900, max_new: 101, total: 1001, max_context: 1000 });
    assert!(error.to_string().contains("1000 by 1;"), "{error}");
    let error = sched.add(request(100, 30)).unwrap_err();
    assert_eq!(error, AdmissionError::NeverFits { positions: 129, capacity: 128 });
    assert!(error.to_string().contains("129") && error.to_string().contains("128"), "{error}");
    assert!(error.to_string().contains("1 fewer"), "{error}");
    sched.add(request(100, 29)).unwrap();
    let stop_ids = vec![0; MAX_STOP_IDS + 1];
    let error = sched.add(NewSequence { stop_ids, ..request(1, 1) }).unwrap_err();
    assert_eq!(error, AdmissionError::TooManyStopIds { stop_ids: MAX_STOP_IDS + 1 });
    let cache_salt = vec![0; MAX_CACHE_SALT_BYTES + 1];
    let error = sched.add(NewSequence { cache_salt, ..request(1, 1) }).unwrap_err();
    assert_eq!(error, AdmissionError::SaltTooLong { bytes: MAX_CACHE_SALT_BYTES + 1, most: MAX_CACHE_SALT_BYTES });
    let huge = NewSequence { max_new_tokens: Some(u32::MAX), ..request(1, 0) };
    assert!(matches!(sched.add(huge), Err(AdmissionError::ExceedsContext { .. })));
    let prompt_alone = NewSequence { max_new_tokens: None, ..request(129, 0) };
    assert!(matches!(sched.add(prompt_alone), Err(AdmissionError::NeverFits { .. })));
}

#[test]
fn an_open_ended_request_stops_at_what_the_cache_holds() {
    let mut sched = scheduler(2, config());
    sched.add(NewSequence { max_new_tokens: None, ..request(60, 0) }).unwrap();
    let mut count = 0;
    while !sched.is_idle() {
        count += step(&mut sched, 1).1.iter().filter(|update| matches!(update, SeqUpdate::Token { .. })).count();
    }
    assert_eq!(count, 5, "64 cached positions and the last token, which needs none");
}

#[test]
fn the_queue_is_bounded() {
    let mut sched = scheduler(20, SchedulerConfig { max_waiting: 2, ..config() });
    sched.add(request(1, 1)).unwrap();
    sched.add(request(1, 1)).unwrap();
    assert_eq!(sched.add(request(1, 1)).unwrap_err(), AdmissionError::QueueFull { waiting: 2 });
    step(&mut sched, 0);
    sched.add(request(1, 1)).unwrap();
}

#[test]
fn a_stop_id_ends_the_sequence_but_not_inside_the_prompt() {
    let mut sched = scheduler(20, config());
    sched.add(NewSequence { stop_ids: vec![8, 3], ..request(10, 10) }).unwrap();
    assert_eq!(step(&mut sched, 1).1.len(), 1);
    let (_, updates) = step(&mut sched, 3);
    assert!(matches!(updates[1], SeqUpdate::Finished { reason: FinishReason::StopId(3), .. }), "{updates:?}");
    assert!(sched.is_idle());
}

#[test]
fn zero_new_tokens_only_compute_the_prompt() {
    let mut sched = scheduler(20, config());
    sched.add(NewSequence { logits: LogitsWanted::All, ..request(100, 0) }).unwrap();
    let (first, updates) = step(&mut sched, 0);
    assert_eq!((first.rows(), updates.len()), (64, 0));
    let (second, updates) = step(&mut sched, 0);
    assert_eq!(second.rows(), 36);
    assert!(matches!(updates[..], [SeqUpdate::Finished { reason: FinishReason::Length, .. }]), "{updates:?}");
}

#[test]
fn cancelling_works_at_any_moment() {
    let mut sched = scheduler(20, config());
    let waiting = sched.add(request(10, 10)).unwrap();
    assert!(matches!(
        sched.cancel(waiting),
        FinishOutcome::Now(SeqUpdate::Finished { reason: FinishReason::Cancelled, .. })
    ));
    let running = sched.add(request(10, 10)).unwrap();
    let batch = sched.schedule().unwrap();
    assert_eq!(sched.cancel(running), FinishOutcome::AtCommit);
    assert_eq!(sched.finish(running, FinishReason::StopText), FinishOutcome::AtCommit);
    assert!(sched.kv().blocks_in_use(0) > 0, "the device may still write them");
    let updates = sched.commit(&results(&batch, 1)).unwrap();
    assert!(matches!(updates[..], [SeqUpdate::Finished { reason: FinishReason::Cancelled, .. }]), "{updates:?}");
    assert_eq!((sched.cancel(running), sched.cancel(SeqId(99))), (FinishOutcome::Unknown, FinishOutcome::Unknown));
    let between = sched.add(request(10, 10)).unwrap();
    step(&mut sched, 1);
    assert!(matches!(sched.finish(between, FinishReason::StopText), FinishOutcome::Now(_)));
    assert!(sched.is_idle() && sched.kv().blocks_in_use(0) == 0);
}

#[test]
fn results_must_be_those_of_the_step() {
    let mut sched = scheduler(20, config());
    assert_eq!(sched.commit(&[]).unwrap_err(), CommitError::NothingInFlight { results: 0 });
    assert_eq!(sched.schedule().unwrap().entries.len(), 0);
    sched.add(request(3, 2)).unwrap();
    let batch = sched.schedule().unwrap();
    assert_eq!(sched.schedule().unwrap_err().step, batch.step);
    let good = results(&batch, 1);
    assert!(matches!(sched.commit(&[]), Err(CommitError::Count { entries: 1, results: 0, .. })));
    let other = [StepResult { seq: SeqId(7), outcome: EntryOutcome::Token(1) }];
    assert!(matches!(sched.commit(&other), Err(CommitError::Order { got: SeqId(7), .. })));
    let none = [StepResult { seq: good[0].seq, outcome: EntryOutcome::Ran }];
    assert!(matches!(sched.commit(&none), Err(CommitError::Shape { .. })));
    assert_eq!(sched.commit(&good).unwrap().len(), 1);
}

#[test]
fn a_failed_entry_or_step_ends_its_sequences_only() {
    let mut sched = scheduler(20, SchedulerConfig { max_seqs: 2, ..config() });
    for _ in 0..3 {
        sched.add(request(3, 4)).unwrap();
    }
    let batch = sched.schedule().unwrap();
    let mut results = results(&batch, 1);
    results[0].outcome = EntryOutcome::Failed(FinishReason::Error("row 0 holds a NaN".to_owned()));
    let updates = sched.commit(&results).unwrap();
    assert!(matches!(&updates[0], SeqUpdate::Finished { reason: FinishReason::Error(why), .. } if why.contains("NaN")));
    assert!(matches!(updates[1], SeqUpdate::Token { seq: SeqId(1), .. }));
    assert_eq!(sched.schedule().unwrap().entries.len(), 2);
    assert_eq!(sched.fail_step("device lost").len(), 2);
    assert!(sched.is_idle());
    sched.check().unwrap();
}

#[test]
fn who_is_admitted_for_the_first_time_is_told_once() {
    let mut sched = scheduler(20, SchedulerConfig { max_seqs: 1, ..config() });
    let (first, second) = (sched.add(request(10, 2)).unwrap(), sched.add(request(10, 1)).unwrap());
    assert!(sched.take_admitted().is_empty());
    step(&mut sched, 1);
    assert_eq!(sched.take_admitted(), [first]);
    step(&mut sched, 1);
    assert!(sched.take_admitted().is_empty(), "one seat, and it is taken");
    step(&mut sched, 1);
    assert_eq!((sched.take_admitted(), sched.is_idle()), (vec![second], true));
}

#[test]
fn who_comes_back_behind_a_preemption_is_not_admitted_anew() {
    let mut sched = scheduler(5, config());
    let other = NewSequence { prompt: (100..160).collect(), ..request(60, 30) };
    let seqs = [sched.add(request(60, 30)).unwrap(), sched.add(other).unwrap()];
    let mut admitted = Vec::new();
    while !sched.is_idle() {
        step(&mut sched, 1);
        admitted.extend(sched.take_admitted());
    }
    assert!(sched.stats().preemptions > 0, "nobody lost its blocks");
    assert_eq!(admitted, seqs);
}
