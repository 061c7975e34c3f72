//! The Rust examples of the documents: docs/rust.md and the comments of all crates show exactly what stands in the
//! tests here between `// shown` and `// end`, but for white space.
#![allow(clippy::print_stdout, clippy::print_stderr)] // an example prints

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

/// The page's model.
const MODEL: &str = "../yirage-model/tests/golden/tiny/gguf/llama/model.gguf";

#[test]
fn tokens_after_a_prompt() -> Result<(), Box<dyn Error>> {
    // shown
    use yirage_engine::{Engine, EngineOptions, Event, Request};
    use yirage_hal::{Backend, OpenOptions};
    use yirage_model::Checkpoint;

    let checkpoint = Checkpoint::open(std::path::Path::new("../yirage-model/tests/golden/tiny/gguf/llama/model.gguf"))?;
    let (device, notes) = yirage_cpu::Cpu.open(0, &OpenOptions::default())?;
    notes.iter().for_each(|note| eprintln!("{note}"));
    let mut engine = Engine::load(&checkpoint, device, &EngineOptions::default(), &mut |done, all| {
        assert!(done <= all); // bytes of weights: for a progress bar
    })?;

    let seq = engine.add(Request::greedy(vec![1, 5, 9], 4))?;
    let mut tokens = Vec::new();
    while !engine.is_idle() {
        for event in engine.step()? {
            match event {
                Event::Token { token, .. } => tokens.push(token),
                Event::Finished { seq: ended, reason, usage, .. } => {
                    assert_eq!(ended, seq);
                    println!("{reason:?} after {} tokens", usage.prompt_tokens + tokens.len());
                }
                _ => {}
            }
        }
    }
    assert_eq!(tokens.len(), 4);
    // end
    Ok(())
}

#[test]
fn many_requests() -> Result<(), Box<dyn Error>> {
    use yirage_engine::sampling::SamplingParams;
    use yirage_engine::scheduler::{FinishReason, LogitsWanted};
    use yirage_engine::{CacheSize, Engine, EngineOptions, Event, Request};
    use yirage_hal::{Backend, OpenOptions};
    let checkpoint = yirage_model::Checkpoint::open(std::path::Path::new(MODEL))?;
    let (device, _) = yirage_cpu::Cpu.open(0, &OpenOptions::default())?;
    // shown
    let cache = CacheSize::Sequences(4);
    let options = EngineOptions { max_seqs: 4, cache, context: Some(64), ..EngineOptions::default() };
    let mut engine = Engine::load(&checkpoint, device, &options, &mut |_, _| {})?;

    let sampled = Request {
        sampling: SamplingParams { temperature: 0.8, top_p: 0.9, seed: 7, ..SamplingParams::default() },
        stop_ids: vec![2],
        ..Request::greedy(vec![1, 5, 9], 16)
    };
    let scored = Request { logits: Some(LogitsWanted::All), ..Request::greedy(vec![1, 5, 9, 4], 0) };
    let cancelled = engine.add(Request::greedy(vec![3, 3, 3], 16))?;
    engine.add(sampled)?;
    engine.add(scored)?;

    let mut rows = 0;
    engine.step()?.iter().for_each(|e| rows += usize::from(matches!(e, Event::Logits { .. })));
    engine.finish(cancelled, FinishReason::Cancelled);
    while !engine.is_idle() {
        engine.step()?.iter().for_each(|e| rows += usize::from(matches!(e, Event::Logits { .. })));
    }
    assert_eq!(rows, 4, "one row of logits for each position of the request that wanted them");
    // end
    Ok(())
}

#[test]
fn what_goes_wrong() -> Result<(), Box<dyn Error>> {
    use yirage_engine::{Engine, EngineError, EngineOptions, Request};
    use yirage_hal::{Backend, OpenOptions};
    let checkpoint = yirage_model::Checkpoint::open(std::path::Path::new(MODEL))?;
    let (device, _) = yirage_cpu::Cpu.open(0, &OpenOptions::default())?;
    let mut engine = Engine::load(&checkpoint, device, &EngineOptions::default(), &mut |_, _| {})?;
    // shown
    let vocabulary = engine.facts().vocabulary;
    let refused = engine.add(Request::greedy(vec![1, vocabulary], 4));
    assert!(matches!(refused, Err(EngineError::UnknownToken { at: 1, .. })));
    // end
    Ok(())
}

#[test]
fn what_a_request_may_ask_for() -> Result<(), Box<dyn Error>> {
    use yirage_engine::sampling::{Constraint, TokenMask};
    use yirage_engine::{Engine, EngineOptions, Event, Request};
    use yirage_hal::{Backend, OpenOptions};
    let checkpoint = yirage_model::Checkpoint::open(std::path::Path::new(MODEL))?;
    let (device, _) = yirage_cpu::Cpu.open(0, &OpenOptions::default())?;
    let options = EngineOptions { context: Some(64), ..EngineOptions::default() };
    let mut engine = Engine::load(&checkpoint, device, &options, &mut |_, _| {})?;
    // shown
    struct Digits {
        allowed: Vec<u32>,
    }

    impl Constraint for Digits {
        fn fill(&mut self, allowed: &mut TokenMask) {
            self.allowed.iter().for_each(|&token| allowed.allow(token));
        }
        // A grammar follows the sequence here, and forgets guesses that came to nothing.
        fn accept(&mut self, _token: u32) {}
        fn roll_back(&mut self, _tokens: usize) {}
    }

    let digits =
        engine.add_constrained(Request::greedy(vec![1, 5, 9], 4), Box::new(Digits { allowed: vec![20, 21] }))?;
    let urgent = engine.add(Request {
        priority: -1,
        key: 7,
        min_new_tokens: 2,
        stop_ids: vec![2],
        bad_words: vec![vec![30, 31]],
        prompt_logprobs: Some(1),
        cache_salt: b"tenant 7".to_vec(),
        ..Request::greedy(vec![1, 5, 9], 4)
    })?;

    let (mut of_digits, mut of_prompt) = (Vec::new(), 0);
    while !engine.is_idle() {
        for event in engine.step()? {
            match event {
                Event::Token { seq, token, .. } if seq == digits => of_digits.push(token),
                Event::PromptLogprobs { seq, .. } if seq == urgent => of_prompt += 1,
                _ => {}
            }
        }
    }
    assert!(of_digits.len() == 4 && of_digits.iter().all(|token| [20, 21].contains(token)));
    assert_eq!(of_prompt, 2, "each token of the prompt but the first");
    // end
    Ok(())
}

#[test]
fn sampling() -> Result<(), Box<dyn Error>> {
    // shown
    use yirage_engine::sampling::{Sampler, SamplingParams, TokenCounts};
    use yirage_hal::{Backend, OpenOptions, reference::Reference};

    let (device, _) = Reference::new().open(0, &OpenOptions::default())?;
    let params = SamplingParams { top_p: 0.9, seed: 42, ..SamplingParams::default() }.checked(4)?;
    let row = [0.1, 2.0, -1.0, 1.5];
    let counts = TokenCounts::new(&[3, 0]);
    let sampled = Sampler::new(device, 1).sample(&row, &params, &counts, None, 17)?;
    assert!([1, 3, 0].contains(&sampled.token));
    // end
    Ok(())
}

#[test]
fn stop_strings() -> Result<(), Box<dyn Error>> {
    // shown
    use yirage_engine::text::{StopHit, StopMatcher};

    let mut stop = StopMatcher::new(&["\n\nUser:"], &[2])?;
    assert_eq!(stop.push(10, "Hello.\n").text, "Hello.");
    assert_eq!(stop.push(11, "\nUser").text, "");
    let end = stop.push(12, ": Hi");
    assert_eq!((end.text.as_str(), end.hit), ("", Some(StopHit::Text(0))));
    // end
    Ok(())
}

#[test]
fn scheduler() -> Result<(), Box<dyn Error>> {
    // shown
    use yirage_scheduler::kv::{CacheGroup, GroupConfig, KvManager};
    use yirage_scheduler::{EntryOutcome, NewSequence, Scheduler, SchedulerConfig, SeqUpdate, StepResult};

    let group = CacheGroup::Paged { k_width: 64, v_width: 64, window: None, layers: 2 };
    let kv = KvManager::new(&[GroupConfig { group, blocks: 8 }], true)?;
    let mut scheduler = Scheduler::new(SchedulerConfig::default(), kv)?;
    scheduler.add(NewSequence { prompt: vec![1, 2, 3], max_new_tokens: Some(2), ..NewSequence::default() })?;
    let mut output = Vec::new();
    while !scheduler.is_idle() {
        let batch = scheduler.schedule()?;
        // A runner would compute the batch here and sample from its rows; this one always samples token 7.
        let result = |sample| if sample { EntryOutcome::Token(7) } else { EntryOutcome::Ran };
        let results: Vec<StepResult> =
            batch.entries.iter().map(|entry| StepResult { seq: entry.seq, outcome: result(entry.sample) }).collect();
        for update in scheduler.commit(&results)? {
            if let SeqUpdate::Token { token, .. } = update {
                output.push(token);
            }
        }
    }
    assert_eq!(output, [7, 7]);
    // end
    Ok(())
}

#[test]
fn every_example_of_the_documents_stands_here() {
    let here = include_str!("doc_examples.rs");
    let tested: Vec<String> =
        here.split("    // shown\n").skip(1).map(|rest| words(until(rest, "    // end\n"))).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut documents = vec![root.join("docs/rust.md")];
    sources(&root.join("crates"), &mut documents);
    let mut seen = 0;
    for document in documents {
        for example in examples(&fs::read_to_string(&document).unwrap()) {
            let tested = tested.contains(&words(&example));
            assert!(tested, "{} has an example that is no test here:\n{example}", document.display());
            seen += 1;
        }
    }
    assert_eq!(seen, tested.len(), "an example here is in no document");
}

fn until<'a>(text: &'a str, end: &str) -> &'a str {
    text.split_once(end).map_or("", |(inside, _)| inside)
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Blocks of Rust in a page or in comments of a source.
fn examples(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut inside: Option<Option<String>> = None;
    for line in text.lines() {
        let line = line.trim_start();
        let line = line.strip_prefix("//!").or_else(|| line.strip_prefix("///")).unwrap_or(line);
        match (line.trim().strip_prefix("```"), inside.as_mut()) {
            (Some(""), Some(_)) => found.extend(inside.take().flatten()),
            (Some("" | "rust"), None) => inside = Some(Some(String::new())),
            (Some(_), None) => inside = Some(None),
            (_, Some(Some(block))) => {
                block.push_str(line);
                block.push('\n');
            }
            _ => {}
        }
    }
    found
}

/// Rust files in the `src` folders below a folder, but for those of crates that run their examples by themselves.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    if fs::read_to_string(folder.join("Cargo.toml")).is_ok_and(|manifest| !manifest.contains("doctest = false")) {
        return;
    }
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") && path.iter().any(|part| part == "src") {
            found.push(path);
        }
    }
}
