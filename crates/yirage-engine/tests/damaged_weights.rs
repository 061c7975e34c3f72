//! Damaged, cut off and changed files of weights: every answer is the right one, or none. A program of its own:
//! `guard_mappings` is for all of a process.
#![allow(clippy::unwrap_used)] // a test may stop at anything

#[path = "suite/golden_support/mod.rs"]
mod golden_support;

use golden_support::{all_logits, options};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use tempfile::{TempDir, tempdir};
use yirage_engine::scheduler::FinishReason;
use yirage_engine::{Engine, EngineError, EngineOptions, Event, Notice, PackedOptions, Request};
use yirage_hal::{Backend, OpenOptions};
use yirage_mmap::{MapError, guard_mappings};
use yirage_model::{Checkpoint, ModelError};
use yirage_packed::PackedStore;
use yirage_plan::Precision;
use yirage_testkit::bedtime;
use yirage_testkit::rng::Rng;

const GIB: u64 = 1 << 30;
const IDS: [u32; 10] = [1, 403, 407, 261, 378, 3, 5, 9, 21, 30];

/// A model with an entry of its weights.
struct Kept {
    folder: TempDir,
    options: EngineOptions,
    entry: PathBuf,
    /// Logits without the entry.
    want: Vec<Vec<u32>>,
}

impl Kept {
    fn new() -> Kept {
        let folder = tempdir().unwrap();
        fs::copy(bedtime::q8_0(), folder.path().join("model.gguf")).unwrap();
        let store = folder.path().join("packed");
        let packed = Some(PackedOptions { folder: store.clone(), limit: GIB });
        let options = EngineOptions { packed, context: Some(256), ..options(Precision::Fast) };
        let mut kept = Kept { folder, options, entry: PathBuf::new(), want: Vec::new() };
        let mut engine = kept.load();
        kept.want = logits(&mut engine);
        engine.settle(&mut |_, _| {});
        assert_eq!(engine.notices(), []);
        kept.entry = PackedStore::new(store, GIB).list().unwrap().entries[0].path.clone();
        kept
    }

    fn checkpoint(&self) -> Checkpoint {
        Checkpoint::open(self.folder.path().join("model.gguf")).unwrap()
    }

    fn load(&self) -> Engine {
        load(&self.checkpoint(), &self.options).unwrap()
    }
}

fn load(checkpoint: &Checkpoint, options: &EngineOptions) -> Result<Engine, EngineError> {
    let device = yirage_cpu::Cpu.open(0, &OpenOptions::default()).unwrap().0;
    Engine::load(checkpoint, device, options, &mut |_, _| {})
}

/// The bits of all logits, so that what is no number is compared too.
fn logits(engine: &mut Engine) -> Vec<Vec<u32>> {
    all_logits(engine, &IDS).into_iter().map(|row| row.into_iter().map(f32::to_bits).collect()).collect()
}

/// How an entry is damaged.
#[derive(Clone, Copy, Debug)]
enum Damage {
    Bit,
    Zeros,
    NotNumbers,
    Swapped,
    CutOff,
    Longer,
    Head,
}

const DAMAGES: [Damage; 7] =
    [Damage::Bit, Damage::Zeros, Damage::NotNumbers, Damage::Swapped, Damage::CutOff, Damage::Longer, Damage::Head];

/// Damages `bytes` at random, and until they are other bytes than before.
fn damage(good: &[u8], how: Damage, rng: &mut Rng) -> Vec<u8> {
    loop {
        let mut bytes = good.to_vec();
        let length = good.len() as u64;
        let at = rng.below(length) as usize;
        let run = at..(at + 1 + rng.below(5000) as usize).min(good.len());
        match how {
            Damage::Bit => bytes[at] ^= 1 << rng.below(8),
            Damage::Zeros => bytes[run].fill(0),
            Damage::NotNumbers => bytes[run].fill(0xff),
            Damage::Swapped => {
                let other = rng.below(length - run.len() as u64) as usize;
                bytes.copy_within(run.clone(), other);
                bytes[run.clone()].copy_from_slice(&good[other..other + run.len()]);
            }
            Damage::CutOff => bytes.truncate(at),
            Damage::Longer => bytes.extend_from_slice(&good[run]),
            Damage::Head => bytes[rng.below(2000) as usize] ^= 1 << rng.below(8),
        }
        if bytes != good {
            return bytes;
        }
    }
}

#[test]
fn every_damaged_entry_is_found_told_and_made_anew() {
    let kept = Kept::new();
    let good = fs::read(&kept.entry).unwrap();
    let mut rng = Rng::new(15);
    for turn in 0..70 {
        let how = DAMAGES[turn % DAMAGES.len()];
        fs::write(&kept.entry, damage(&good, how, &mut rng)).unwrap();
        let mut engine = kept.load();
        assert_eq!(engine.facts().packed_weights, None, "{turn}: {how:?}");
        assert!(logits(&mut engine) == kept.want, "{turn}: {how:?}: another answer");
        engine.settle(&mut |_, _| {});
        let notices = engine.notices();
        let told = |why: &str| why.contains(&kept.entry.display().to_string());
        assert!(matches!(&notices[..], [Notice::Refused(why)] if told(why)), "{turn}: {how:?}: {notices:?}");
        assert!(fs::read(&kept.entry).unwrap() == good, "{turn}: {how:?}: another entry");
    }
    let mut engine = kept.load();
    assert!(engine.facts().packed_weights.is_some() && logits(&mut engine) == kept.want);
}

/// The reason for which a request's answer ended.
fn end(engine: &mut Engine, new: u32) -> FinishReason {
    engine.add(Request::greedy(IDS.to_vec(), new)).unwrap();
    loop {
        for event in engine.step().unwrap() {
            if let Event::Finished { reason, .. } = event {
                return reason;
            }
        }
    }
}

#[cfg(unix)]
#[test]
fn an_entry_that_changes_in_use_ends_the_answer() {
    guard_mappings().unwrap();
    let write = |path: &Path, bytes: &[u8]| {
        let file = File::options().write(true).open(path).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, bytes, 9000).unwrap();
    };
    type Change = fn(&Path);
    let cut: [(&str, Change); 2] = [
        ("cut off", |path| File::options().write(true).open(path).unwrap().set_len(5000).unwrap()),
        ("emptied", |path| drop(File::create(path).unwrap())),
    ];
    for (what, change) in cut {
        let kept = Kept::new();
        let mut engine = kept.load();
        assert!(matches!(end(&mut engine, 3), FinishReason::Length));
        change(&kept.entry);
        for _ in 0..2 {
            let FinishReason::Error(why) = end(&mut engine, 3) else { panic!("{what}: it answered") };
            assert!(why.contains(&kept.entry.display().to_string()) && why.contains("start again"), "{what}: {why}");
        }
        let mut again = kept.load();
        assert!(logits(&mut again) == kept.want, "{what}");
    }
    let kept = Kept::new();
    let good = fs::read(&kept.entry).unwrap();
    let mut engine = kept.load();
    write(&kept.entry, &[0x7f; 64]);
    let FinishReason::Error(why) = end(&mut engine, 3) else { panic!("it answered") };
    assert!(why.contains("damaged on disk"), "{why}");
    // Whole again, or gone: what is mapped is what was written.
    write(&kept.entry, &good[9000..9064]);
    assert!(matches!(end(&mut engine, 3), FinishReason::Length));
    fs::remove_file(&kept.entry).unwrap();
    assert!(logits(&mut engine) == kept.want);
}

#[cfg(unix)]
#[test]
fn a_model_that_is_cut_off_while_it_is_loaded_is_an_error() {
    guard_mappings().unwrap();
    let kept = Kept::new();
    let options = EngineOptions { packed: None, ..kept.options.clone() };
    let checkpoint = kept.checkpoint();
    let path = kept.folder.path().join("model.gguf");
    File::options().write(true).open(&path).unwrap().set_len(100_000).unwrap();
    let error = load(&checkpoint, &options).err().unwrap();
    assert!(
        matches!(&error, EngineError::Model(ModelError::Map(MapError::Lost { path: lost })) if *lost == path),
        "{error}"
    );
}
