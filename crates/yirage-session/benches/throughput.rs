//! The library beside the engine alone: tokens a second of 1, 8 and 16 requests at once.
//!
//! `cargo bench -p yirage-session --bench throughput -- MODEL.gguf`. Runs of both alternate. The library's side includes
//! texts, its thread, and a reader on a thread of its own for each request.
#![allow(clippy::print_stdout, clippy::unwrap_used)] // printing is its purpose

use std::path::Path;
use std::time::Instant;
use yirage_engine::{CacheSize, Engine, EngineOptions, Request};
use yirage_hal::{Backend, OpenOptions};
use yirage_model::Checkpoint;
use yirage_session::{Job, LoadedEngine, ModelHandle, SessionEvent};

const PAIRS: usize = 11;
const PROMPT: u32 = 32;
const NEW: u32 = 64;

fn main() {
    let path = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let path = path.unwrap_or_else(|| yirage_testkit::bedtime::f32().display().to_string());
    let loaded = || {
        let (device, _) = yirage_cpu::Cpu.open(0, &OpenOptions::default()).unwrap();
        let options = EngineOptions {
            max_seqs: 16,
            cache: CacheSize::Sequences(16),
            context: Some(128),
            ..EngineOptions::default()
        };
        LoadedEngine::load(&Checkpoint::open(Path::new(&path)).unwrap(), device, &options, &mut |_, _| {}).unwrap()
    };
    let mut engine = loaded().engine;
    let model = loaded().start().unwrap();
    println!("{path}, {PROMPT} + {NEW} tokens; the library's rate over the engine's");
    for sequences in [1, 8, 16] {
        alone(&mut engine, sequences, 0);
        shared(&model, sequences, 0);
        let pair = |turn| {
            let turn = turn as u32 + 1;
            let (engine, library) = if turn.is_multiple_of(2) {
                let engine = alone(&mut engine, sequences, turn);
                (engine, shared(&model, sequences, turn))
            } else {
                let library = shared(&model, sequences, turn);
                (alone(&mut engine, sequences, turn), library)
            };
            engine / library
        };
        let mut ratios: Vec<f64> = (0..PAIRS).map(pair).collect();
        ratios.sort_by(f64::total_cmp);
        println!("{sequences:>2}: {:.3} ({:.3} to {:.3})", ratios[PAIRS / 2], ratios[0], ratios[PAIRS - 1]);
    }
}

fn request(sequence: u32, turn: u32) -> Request {
    let first = 1000 * turn + 37 * sequence;
    Request::greedy((0..PROMPT).map(|i| 3 + (first + i * i) % 400).collect(), NEW)
}

/// Seconds that the engine takes for so many requests.
fn alone(engine: &mut Engine, sequences: u32, turn: u32) -> f64 {
    let began = Instant::now();
    for sequence in 0..sequences {
        engine.add(request(sequence, turn)).unwrap();
    }
    while !engine.is_idle() {
        engine.step().unwrap();
    }
    began.elapsed().as_secs_f64()
}

/// Seconds that the library takes.
fn shared(model: &ModelHandle, sequences: u32, turn: u32) -> f64 {
    let began = Instant::now();
    std::thread::scope(|scope| {
        for sequence in 0..sequences {
            let answer = model.submit(Job::new(request(sequence, turn))).unwrap();
            scope.spawn(move || {
                let tokens = answer.filter(|event| matches!(event, Ok(SessionEvent::Token { .. }))).count();
                assert_eq!(tokens, NEW as usize);
            });
        }
    });
    began.elapsed().as_secs_f64()
}
