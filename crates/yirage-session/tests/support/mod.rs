//! Models and jobs for the tests of this crate.
#![allow(dead_code, unreachable_pub)] // each test file uses its part

use std::sync::Arc;
use std::time::Duration;
use yirage_engine::sampling::SamplingParams;
use yirage_engine::{EngineOptions, Request, Speculation, SpeculationControl};
use yirage_hal::{Backend, Device, OpenOptions};
use yirage_model::Checkpoint;
use yirage_session::{Answer, Event, Job, Loaded, Model};
use yirage_sim::{Settings, Sim};
use yirage_testkit::bedtime;
use yirage_testkit::rng::Rng;

/// Opens a device.
pub type Open = Box<dyn Fn() -> Arc<dyn Device>>;

pub fn on_cpu() -> Open {
    Box::new(|| yirage_cpu::Cpu.open(0, &OpenOptions { threads: Some(2), ..OpenOptions::default() }).unwrap().0)
}

pub fn on_sim() -> Open {
    let sim = Sim::with(Settings { seed: 9, delay: Duration::from_micros(20), ..Settings::default() });
    Box::new(move || sim.open(0, &OpenOptions::default()).unwrap().0)
}

pub fn options() -> EngineOptions {
    EngineOptions { context: Some(256), max_seqs: 3, ..EngineOptions::default() }
}

pub fn model(open: &Open, options: &EngineOptions) -> Model {
    let checkpoint = Checkpoint::open(bedtime::f32()).unwrap();
    Loaded::load(&checkpoint, open(), options, &mut |_, _| {}).unwrap().start().unwrap()
}

/// Guesses whenever there is one.
pub fn guessing() -> Speculation {
    Speculation { most: 5, lookup: true, control: SpeculationControl::Most }
}

/// Jobs of many kinds.
pub fn jobs(rng: &mut Rng, count: u64) -> Vec<Job> {
    let job = |i: u64| {
        let prompt = (0..1 + rng.below(40)).map(|_| 3 + rng.below(300) as u32).collect();
        let drawn = SamplingParams { temperature: 0.9, top_k: 20, seed: i, ..SamplingParams::default() };
        let sampling = match rng.below(4) {
            0 => SamplingParams::greedy(),
            1 => SamplingParams { logprobs: Some(2), ..drawn },
            2 => SamplingParams { repetition_penalty: 1.2, ..drawn },
            _ => drawn,
        };
        let stops = if rng.below(3) == 0 { vec![" the".into(), ". ".into()] } else { Vec::new() };
        let stop_ids = if rng.below(3) == 0 { vec![3 + rng.below(300) as u32] } else { Vec::new() };
        let request = Request { sampling, stop_ids, ..Request::greedy(prompt, 1 + rng.below(40) as u32) };
        Job { request, stops }
    };
    (0..count).map(job).collect()
}

pub fn copy(job: &Job) -> Job {
    Job { request: job.request.clone(), stops: job.stops.clone() }
}

/// What a caller heard of an answer.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Heard {
    pub tokens: Vec<u32>,
    pub logprobs: Vec<String>,
    pub text: String,
    pub end: String,
}

pub fn hear(answer: Answer) -> Heard {
    let mut heard = Heard::default();
    for event in answer {
        match event.unwrap() {
            Event::Token { token, logprobs, .. } => {
                assert!(heard.end.is_empty(), "a token behind the end");
                heard.tokens.push(token);
                heard.logprobs.extend(logprobs.map(|of| format!("{of:?}")));
            }
            Event::Text(text) => heard.text.push_str(&text),
            Event::Finished(end) => heard.end = format!("{:?}", end.reason),
            _ => {}
        }
    }
    assert!(!heard.end.is_empty(), "an answer without an end");
    heard
}
