//! Beginnings in files: an answer that goes on from one has the bytes of one that was never interrupted, on every device; of
//! a file that is spoilt nothing stays.

use crate::support::{Open, hear, loaded, on_cpu, on_sim, options};
use std::path::Path;
use yirage_engine::{EngineError, EngineOptions, PrefixError, Request};
use yirage_ir::Format;
use yirage_model::Checkpoint;
use yirage_session::{Job, LoadedEngine, ModelFingerprint, ModelHandle, PrefixFileFault, SessionError, SessionEvent};
use yirage_testkit::{bedtime, tiny};

fn fingerprint() -> ModelFingerprint {
    ModelFingerprint::of(&Checkpoint::open(bedtime::f32()).unwrap()).unwrap()
}

fn prompt() -> Vec<u32> {
    (0..100).map(|i| 3 + i * 7 % 400).collect()
}

/// What follows a prompt, and how much of it was not computed.
fn answer(model: &ModelHandle, prompt: &[u32]) -> (Vec<u32>, usize) {
    let (mut tokens, mut cached) = (Vec::new(), 0);
    for event in model.submit(Job::new(Request::greedy(prompt.to_vec(), 20))).unwrap() {
        match event.unwrap() {
            SessionEvent::Token { token, .. } => tokens.push(token),
            SessionEvent::Finished(end) => cached = end.usage.cached_tokens,
            _ => {}
        }
    }
    (tokens, cached)
}

fn start(open: &Open, options: &EngineOptions) -> ModelHandle {
    loaded(open(), options).start().unwrap()
}

fn goes_on(open: &Open, options: &EngineOptions, file: &Path) {
    let first = start(open, options);
    let (told, _) = answer(&first, &prompt());
    let tokens = [prompt(), told.clone()].concat();
    let saved = first.save_prefix(file, fingerprint(), tokens.clone(), Vec::new()).unwrap();
    assert_eq!(saved.positions, 96, "the last token of an answer is not computed, and blocks are whole");
    let (on, _) = answer(&first, &tokens);
    drop(first);
    let later = start(open, options);
    let (restored, of_file) = later.restore_prefix(file, fingerprint()).unwrap();
    assert_eq!((restored, &of_file[..]), (saved, &tokens[..96]));
    assert_eq!(answer(&later, &prompt()), (told, 96));
    assert_eq!(answer(&later, &tokens).0, on);
    let engine = later.stop().unwrap().engine;
    assert!(engine.is_idle());
}

#[test]
fn an_answer_goes_on_as_if_it_had_never_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("prefix.kv");
    for kv in [Format::F32, Format::BF16] {
        goes_on(&on_cpu(), &EngineOptions { kv: Some(kv), ..options() }, &file);
    }
    goes_on(&on_sim(), &options(), &file);
}

/// Windows, latent caches and recurrent states are caches like others.
#[test]
fn every_kind_of_cache_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    for name in tiny::NAMES {
        let path = tiny::model(name);
        let checkpoint = Checkpoint::open(&path).unwrap();
        let model = ModelFingerprint::of(&checkpoint).unwrap();
        let file = folder.path().join(format!("{name}.kv"));
        let options = EngineOptions { max_seqs: 2, ..EngineOptions::default() };
        let start = || LoadedEngine::load(&checkpoint, on_cpu()(), &options, &mut |_, _| {}).unwrap().start().unwrap();
        let first = start();
        let most = first.facts().vocabulary.min(200);
        let prompt: Vec<u32> = (0..70.min(first.facts().context - 21)).map(|i| 1 + i * 5 % (most - 1)).collect();
        let (told, _) = answer(&first, &prompt);
        let saved = first.save_prefix(&file, model, prompt.clone(), Vec::new()).unwrap();
        drop(first);
        if saved.positions == 0 {
            assert!(prompt.len() < 32, "{name}: nothing is kept of {} tokens", prompt.len());
            continue;
        }
        let later = start();
        later.restore_prefix(&file, model).unwrap();
        assert_eq!(answer(&later, &prompt), (told, saved.positions), "{name}");
    }
}

#[test]
fn of_a_spoilt_file_nothing_stays() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("prefix.kv");
    let model = start(&on_cpu(), &options());
    answer(&model, &prompt());
    model.save_prefix(&file, fingerprint(), prompt(), Vec::new()).unwrap();
    let whole = std::fs::read(&file).unwrap();
    let later = start(&on_cpu(), &options());
    for at in (0..whole.len()).step_by(whole.len() / 97) {
        let mut spoilt = whole.clone();
        spoilt[at] ^= 0x10;
        std::fs::write(&file, &spoilt).unwrap();
        assert!(later.restore_prefix(&file, fingerprint()).is_err(), "byte {at}");
        std::fs::write(&file, &whole[..at]).unwrap();
        assert!(later.restore_prefix(&file, fingerprint()).is_err(), "{at} bytes");
    }
    assert_eq!(answer(&later, &prompt()).1, 0);
}

#[test]
fn what_cannot_be_taken_back_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("prefix.kv");
    let model = start(&on_cpu(), &options());
    answer(&model, &prompt());
    model.save_prefix(&file, fingerprint(), prompt(), Vec::new()).unwrap();
    let other = ModelFingerprint::of(&Checkpoint::open(bedtime::q8_0()).unwrap()).unwrap();
    let foreign = model.restore_prefix(&file, other).unwrap_err();
    assert!(
        matches!(&foreign, SessionError::PrefixFile(e) if matches!(e.what, PrefixFileFault::Foreign { .. })),
        "{foreign}"
    );
    let short = start(&on_cpu(), &EngineOptions { context: Some(64), ..options() });
    let long = short.restore_prefix(&file, fingerprint()).unwrap_err();
    let SessionError::Engine(EngineError::Prefix(PrefixError::TooLong { tokens: 96, most: 64 })) = long else {
        panic!("{long}")
    };
    let without = start(&on_cpu(), &EngineOptions { prefix_cache: false, ..options() });
    let none = without.restore_prefix(&file, fingerprint()).unwrap_err();
    assert!(matches!(none, SessionError::Engine(EngineError::Prefix(PrefixError::NoCache))), "{none}");
    assert_eq!(model.save_prefix(&file, fingerprint(), vec![9; 50], Vec::new()).unwrap().positions, 0);
    let salted = model.save_prefix(&file, fingerprint(), prompt(), vec![1]).unwrap();
    assert_eq!(salted.positions, 0, "what a salt keeps apart is not found without it");
    assert!(hear(model.submit(Job::new(Request::greedy(prompt(), 4))).unwrap()).tokens.len() == 4);
    // A file that cannot have its name leaves nothing under another one.
    let taken = folder.path().join("taken");
    std::fs::create_dir(&taken).unwrap();
    let unnamed = model.save_prefix(&taken, fingerprint(), prompt(), Vec::new()).unwrap_err();
    assert!(matches!(unnamed, SessionError::PrefixFile(_)), "{unnamed}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "the file and the folder");
}
