//! Random faults: a run ends in the right tokens or in a typed error, nothing hangs, and all memory comes back.
//!
//! `YIRAGE_FAULT_SCHEDULES` says how many schedules there are.
#![allow(clippy::print_stdout)] // says what it ran

use std::collections::BTreeMap;
use std::sync::Arc;
use yirage_engine::sampling::SampleError;
use yirage_engine::scheduler::FinishReason;
use yirage_engine::{Engine, EngineError, EngineOptions, Event, Request};
use yirage_hal::{Backend, Device, HalError, OpenOptions};
use yirage_model::Checkpoint;
use yirage_sim::{Faults, Settings, Sim};
use yirage_testkit::rng::Rng;
use yirage_testkit::tiny;

const PROMPT: [u32; 3] = [1, 2, 3];
const TOKENS: u32 = 3;

/// What a device's error is, in words.
fn kind(error: &HalError) -> String {
    match error {
        HalError::OutOfMemory { .. } => "no memory".into(),
        HalError::Lost(_) => "lost".into(),
        HalError::Device(_) => "failed".into(),
        other => panic!("{other:?}"),
    }
}

/// What a run came to: tokens, or the reason why there are none.
fn run(checkpoint: &Checkpoint, device: Arc<dyn Device>) -> Result<Vec<u32>, String> {
    let options = EngineOptions { context: Some(32), chunk: 8, max_seqs: 1, ..EngineOptions::default() };
    let mut engine = Engine::load(checkpoint, device, &options, &mut |_, _| {}).map_err(|e| match e {
        EngineError::Device(e) | EngineError::Sample(SampleError::Device(e)) => kind(&e),
        EngineError::WouldNotFit { .. } => "would not fit".into(),
        other => panic!("{other:?}"),
    })?;
    engine.add(Request::greedy(PROMPT.to_vec(), TOKENS)).unwrap();
    let mut tokens = Vec::new();
    for _ in 0..50 {
        for event in engine.step().unwrap() {
            match event {
                Event::Token { token, .. } => tokens.push(token),
                Event::Finished { reason: FinishReason::Error(_), .. } => return Err("a failing step".into()),
                Event::Finished { .. } => return Ok(tokens),
                _ => {}
            }
        }
    }
    panic!("no end in sight");
}

#[test]
fn every_schedule_ends_well() {
    let schedules = std::env::var("YIRAGE_FAULT_SCHEDULES").map_or(1000, |n| n.parse().unwrap());
    let checkpoint = Checkpoint::open(tiny::model(tiny::NAMES[0])).unwrap();
    let open = |sim: &Sim| sim.open(0, &OpenOptions::default()).unwrap().0;
    let right = run(&checkpoint, open(&Sim::default())).unwrap();
    assert_eq!(right.len(), TOKENS as usize);
    let mut rng = Rng::new(17);
    let mut ends: BTreeMap<String, usize> = BTreeMap::new();
    for schedule in 0..schedules {
        // A recorded step is one command.
        let records = rng.below(2) == 0;
        let commands = if records { 200 } else { 600 };
        let mut fault = |most: u64| (rng.below(3) == 0).then(|| rng.below(most));
        let faults = Faults { alloc: fault(60), submit: fault(commands), kernel: fault(250), lost: fault(commands) };
        let ranks = 1 + u32::from(rng.below(4) == 0);
        let memory = if rng.below(8) == 0 { rng.below(1 << 20) } else { 1 << 30 };
        let sim = Sim::with(Settings { memory, faults, ranks, captures_graphs: records, ..Settings::default() });
        let end = run(&checkpoint, open(&sim));
        if let Ok(tokens) = &end {
            assert_eq!(*tokens, right, "schedule {schedule}: {faults:?}");
        }
        *ends.entry(end.map_or_else(|why| why, |_| "the right tokens".into())).or_default() += 1;
        for held in sim.memory_stats() {
            assert_eq!((held.bytes, held.frees), (0, held.allocations), "schedule {schedule}: {faults:?}");
        }
    }
    println!("{schedules} schedules: {ends:?}");
    assert!(ends.len() >= 4, "{ends:?}");
}

#[test]
fn other_devices_go_on() {
    let checkpoint = Checkpoint::open(tiny::model(tiny::NAMES[0])).unwrap();
    let lost = Faults { lost: Some(100), ..Faults::default() };
    let (failing, sound) =
        (Sim::with(Settings { faults: lost, captures_graphs: false, ..Settings::default() }), Sim::default());
    let open = |sim: &Sim| sim.open(0, &OpenOptions::default()).unwrap().0;
    assert!(run(&checkpoint, open(&failing)).is_err());
    assert!(run(&checkpoint, open(&sound)).is_ok());
}
