//! Random faults in the libraries: a run ends in the right tokens or in a typed error, nothing hangs, and all memory comes back.
//!
//! `YIRAGE_FAULT_SCHEDULES` says how many schedules there are.

use crate::fake::FakeMachine;
use crate::support::codes;
use std::collections::BTreeMap;
use std::sync::Arc;
use yirage_engine::sampling::SampleError;
use yirage_engine::scheduler::FinishReason;
use yirage_engine::{Engine, EngineError, EngineOptions, Event, Request};
use yirage_hal::{Backend, Device, HalError, OpenOptions};
use yirage_model::Checkpoint;
use yirage_npu::{NpuBackend, NpuVendor};
use yirage_testkit::rng::Rng;
use yirage_testkit::tiny;

for_every_maker! {
    every_schedule_ends_well,
}

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
    engine.add(Request::greedy(vec![1, 2, 3], TOKENS)).unwrap();
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

/// Calls of a run, with about as many as it makes of each.
fn calls(vendor: NpuVendor) -> [(&'static str, u64); 10] {
    match vendor {
        NpuVendor::Ascend => [
            ("aclrtMalloc", 60),
            ("aclrtMallocHost", 20),
            ("aclrtMemcpyAsync", 120),
            ("aclrtRecordEvent", 60),
            ("aclrtQueryEventStatus", 200),
            ("aclCreateTensor", 6000),
            ("aclnnMatmul", 100),
            ("aclnnMulGetWorkspaceSize", 300),
            ("operator", 1500),
            ("copy", 120),
        ],
        NpuVendor::Cambricon => [
            ("cnrtMalloc", 60),
            ("cnrtHostMalloc", 20),
            ("cnrtMemcpyAsync_V2", 120),
            ("cnrtPlaceNotifier", 60),
            ("cnrtQueryNotifier", 200),
            ("cnnlSetTensorDescriptorEx_v2", 8000),
            ("cnnlBatchMatMulEx", 100),
            ("cnnlGetOpTensorWorkspaceSize_v2", 400),
            ("operator", 2500),
            ("copy", 120),
        ],
    }
}

fn every_schedule_ends_well(vendor: NpuVendor) {
    let schedules = std::env::var("YIRAGE_FAULT_SCHEDULES").map_or(300, |n| n.parse().unwrap());
    let checkpoint = Checkpoint::open(tiny::model(tiny::NAMES[0])).unwrap();
    let machine = FakeMachine::new(vendor, &[]);
    let backend = NpuBackend::new(vendor, machine.surroundings());
    let open = || backend.open(0, &OpenOptions::default()).unwrap().0;
    let right = run(&checkpoint, open()).unwrap();
    assert_eq!(right.len(), TOKENS as usize);
    let mut rng = Rng::new(17);
    let mut ends: BTreeMap<String, usize> = BTreeMap::new();
    for schedule in 0..schedules {
        let device = open();
        let (call, most) = calls(vendor)[rng.below(10) as usize];
        let (nth, code) = (1 + rng.below(most) as i32, codes(vendor)[rng.below(3) as usize]);
        machine.fail(call, nth, code);
        let end = run(&checkpoint, device);
        machine.fail(call, 0, 0);
        if let Ok(tokens) = &end {
            assert_eq!(*tokens, right, "schedule {schedule}: {call} {nth} {code}");
        }
        *ends.entry(end.map_or_else(|why| why, |_| "the right tokens".into())).or_default() += 1;
        let stats = machine.stats();
        let held = [stats.bytes, stats.buffers, stats.host_buffers, stats.contexts, stats.streams, stats.events];
        assert_eq!(held, [0; 6], "schedule {schedule}: {call} {nth} {code}: {stats:?}");
        assert_eq!(
            [stats.tensors, stats.descriptions, stats.violations],
            [0; 3],
            "schedule {schedule}: {call}: {stats:?}"
        );
    }
    println!("{schedules} schedules: {ends:?}");
    assert!(ends.len() >= 4, "{ends:?}");
}
