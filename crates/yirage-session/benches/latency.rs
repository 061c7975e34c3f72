//! A long prompt that arrives among streams: how long they wait for their next token, and what the bound costs.
//!
//! `cargo bench -p yirage-session --bench latency -- MODEL.gguf [MAX_STEP_MS]`. Eight streams decode; a prompt of 4,000 tokens
//! arrives. With the bound and without it in turn.
#![allow(clippy::print_stdout, clippy::unwrap_used)] // printing is its purpose

use std::path::Path;
use std::time::{Duration, Instant};
use yirage_engine::{CacheSize, EngineOptions, Request};
use yirage_hal::{Backend, OpenOptions};
use yirage_model::Checkpoint;
use yirage_session::{Job, LoadedEngine, ModelHandle, SessionEvent};

const STREAMS: u32 = 8;
const LONG: u32 = 4000;
const NEW: u32 = 300;
const ROUNDS: u32 = 5;

/// What a round gave.
struct Round {
    /// Milliseconds between tokens of a stream while the prompt was read, in order.
    gaps: Vec<f64>,
    /// Tokens a second of everything, those of prompts among them.
    rate: f64,
    /// Seconds until the prompt's first token.
    first: f64,
}

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with('-'));
    let path = arguments.next().unwrap();
    let most = Duration::from_millis(arguments.next().map_or(100, |ms| ms.parse().unwrap()));
    let model = |max_step| {
        let (device, _) = yirage_cpu::Cpu.open(0, &OpenOptions::default()).unwrap();
        let cache = CacheSize::Sequences(3);
        let options = EngineOptions { max_seqs: 12, cache, context: Some(4608), max_step, ..EngineOptions::default() };
        let checkpoint = Checkpoint::open(Path::new(&path)).unwrap();
        LoadedEngine::load(&checkpoint, device, &options, &mut |_, _| {}).unwrap().start().unwrap()
    };
    let (whole, bounded) = (model(None), model(Some(most)));
    println!("{path}: {STREAMS} streams, a prompt of {LONG} tokens among them; bound {} ms", most.as_millis());
    println!("| bound | gap, median | 99 % | longest | tokens/s | prompt's first token, s |");
    println!("|---|---|---|---|---|---|");
    let mut rates = Vec::new();
    for turn in 0..=ROUNDS {
        let (free, held) = (round(&whole, turn), round(&bounded, turn));
        // The first round touches memory for the first time, and costs are not known in it.
        if turn > 0 {
            for (name, round) in [("none", &free), ("held", &held)] {
                let at = |share: f64| round.gaps[((round.gaps.len() - 1) as f64 * share) as usize];
                let (median, late, longest) = (at(0.5), at(0.99), at(1.0));
                println!(
                    "| {name} | {median:.0} | {late:.0} | {longest:.0} | {:.0} | {:.1} |",
                    round.rate, round.first
                );
            }
            rates.push(held.rate / free.rate);
        }
    }
    rates.sort_by(f64::total_cmp);
    println!("throughput with the bound over that without: {:.2}", rates[rates.len() / 2]);
}

fn prompt(length: u32, stream: u32) -> Vec<u32> {
    (0..length).map(|i| 1000 + (i * 7919 + stream * 104_729) % 20_000).collect()
}

fn round(model: &ModelHandle, turn: u32) -> Round {
    let began = Instant::now();
    let (gaps, first) = std::thread::scope(|scope| {
        let streams: Vec<_> = (0..STREAMS)
            .map(|stream| {
                let answer = model.submit(Job::new(Request::greedy(prompt(32, 100 * turn + stream), NEW))).unwrap();
                scope.spawn(move || arrivals(answer))
            })
            .collect();
        std::thread::sleep(Duration::from_secs(2));
        let asked = Instant::now();
        let long = model.submit(Job::new(Request::greedy(prompt(LONG, 100 * turn + 50), 1))).unwrap();
        let answered = arrivals(long).first().copied().unwrap();
        let arrivals: Vec<Vec<Instant>> = streams.into_iter().map(|stream| stream.join().unwrap()).collect();
        let during = |pair: &&[Instant]| pair[1] > asked && pair[0] < answered;
        let gap = |pair: &[Instant]| (pair[1] - pair[0]).as_secs_f64() * 1e3;
        let gaps: Vec<f64> = arrivals.iter().flat_map(|at| at.windows(2).filter(during).map(gap)).collect();
        (gaps, (answered - asked).as_secs_f64())
    });
    let mut gaps = gaps;
    gaps.sort_by(f64::total_cmp);
    let tokens = STREAMS * (NEW + 32) + LONG;
    Round { gaps, rate: f64::from(tokens) / began.elapsed().as_secs_f64(), first }
}

/// When each token came.
fn arrivals(answer: yirage_session::AnswerEventStream) -> Vec<Instant> {
    let token = |event: Result<SessionEvent, _>| matches!(event, Ok(SessionEvent::Token { .. })).then(Instant::now);
    answer.filter_map(token).collect()
}
