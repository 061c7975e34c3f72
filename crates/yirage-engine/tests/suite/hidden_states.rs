//! Hidden states as a second output: the model's own head makes the logits of them.
#![allow(clippy::print_stdout)]

use std::path::{Path, PathBuf};
use yirage_cpu::Cpu;
use yirage_engine::scheduler::LogitsWanted;
use yirage_engine::{Engine, EngineOptions, Event, Request};
use yirage_hal::{Backend, OpenOptions};
use yirage_model::Checkpoint;
use yirage_model::checkpoint::StoredType;
use yirage_plan::Precision;

fn models() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../yirage-model/tests/golden/tiny/safetensors");
    let mut list: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    list.sort();
    list
}

/// The matrix of the head, from the file; none if the architecture calls it otherwise.
fn head(checkpoint: &Checkpoint) -> Option<Vec<f32>> {
    let names = ["lm_head.weight", "model.embed_tokens.weight", "transformer.wte.weight"];
    let tensor = names.iter().find_map(|name| checkpoint.tensor(name))?;
    let StoredType::Format(format) = tensor.dtype else { return None };
    let mut values = vec![0.0; tensor.elements()];
    (format.info().decode)(checkpoint.bytes(tensor), &mut values);
    Some(values)
}

/// Logits and hidden states of every position of `prompt`.
fn run(engine: &mut Engine, prompt: &[u32], hidden: bool) -> (Vec<Vec<f32>>, Vec<Vec<f32>>) {
    let (logits, hidden) = (Some(LogitsWanted::All), hidden.then_some(LogitsWanted::All));
    engine.add(Request { logits, hidden, ..Request::greedy(prompt.to_vec(), 0) }).unwrap();
    let (mut rows, mut states) = (Vec::new(), Vec::new());
    while !engine.is_idle() {
        for event in engine.step().unwrap() {
            match event {
                Event::Logits { logits, .. } => rows.push(logits),
                Event::Hidden { position, state, .. } => {
                    assert_eq!(position, states.len());
                    states.push(state);
                }
                _ => {}
            }
        }
    }
    (rows, states)
}

#[test]
fn logits_are_the_head_times_the_hidden_states() {
    let mut compared = 0;
    for path in models() {
        let checkpoint = Checkpoint::open(&path).unwrap();
        let Some(head) = head(&checkpoint) else { continue };
        let config = std::fs::read_to_string(path.join("config.json")).unwrap_or_default();
        let capped = config.contains("final_logit_softcapping");
        let load = |hidden: bool| {
            let options = EngineOptions { precision: Precision::Exact, chunk: 16, hidden, ..EngineOptions::default() };
            let (device, _) = Cpu.open(0, &OpenOptions { threads: Some(2), ..OpenOptions::default() }).unwrap();
            Engine::load(&checkpoint, device, &options, &mut |_, _| {}).unwrap()
        };
        let prompt = [1, 5, 9, 2, 7];
        let (rows, states) = run(&mut load(true), &prompt, true);
        let (without, none) = run(&mut load(false), &prompt, false);
        assert_eq!((&rows, none.len(), states.len()), (&without, 0, prompt.len()), "{}", path.display());
        if capped {
            continue;
        }
        let width = states[0].len();
        for (row, state) in rows.iter().zip(&states) {
            assert_eq!(head.len(), row.len() * width, "{}", path.display());
            for (logit, weights) in row.iter().zip(head.chunks(width)) {
                let terms = || weights.iter().zip(state).map(|(w, x)| f64::from(*w) * f64::from(*x));
                let bound = 1e-6 * terms().map(f64::abs).sum::<f64>() + 1e-7;
                let want: f64 = terms().sum();
                assert!((f64::from(*logit) - want).abs() <= bound, "{}: {logit}, {want} wanted", path.display());
            }
        }
        compared += 1;
    }
    println!("{compared} models");
    assert!(compared >= 15, "{compared} models have a head of a known name");
}
