//! Weights kept on disk: the second start maps them and computes the same bytes; whatever is wrong with an entry, the
//! model runs all the same, from its files, and the owner is told.
#![allow(clippy::print_stdout)] // says what it ran

use crate::golden_support::{self, all_logits, options};
use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use tempfile::{TempDir, tempdir};
use yirage_engine::{Engine, EngineOptions, Notice, PackedOptions, Request};
use yirage_hal::reference::Reference;
use yirage_hal::{Backend, OpenOptions};
use yirage_model::Checkpoint;
use yirage_packed::{PackedStore, StoredEntry, verify};
use yirage_plan::Precision;
use yirage_testkit::scratch::ScratchFolder;
use yirage_testkit::{absent, bedtime, tiny};

const GIB: u64 = 1 << 30;

/// A folder for entries, and options that keep weights in it.
fn keeping() -> (TempDir, EngineOptions) {
    let folder = tempdir().unwrap();
    let packed = Some(PackedOptions { folder: folder.path().join("packed"), limit: GIB });
    (folder, EngineOptions { packed, context: Some(256), ..options(Precision::Fast) })
}

fn entries(options: &EngineOptions) -> Vec<StoredEntry> {
    PackedStore::new(options.packed.as_ref().unwrap().folder.clone(), GIB).list().unwrap().entries
}

fn entry(options: &EngineOptions) -> PathBuf {
    let entries = entries(options);
    assert_eq!(entries.len(), 1);
    entries[0].path.clone()
}

fn load(model: &Path, options: &EngineOptions) -> Engine {
    golden_support::engine(model, options)
}

/// Loads, and leaves an entry.
fn keep(model: &Path, options: &EngineOptions) {
    let mut engine = load(model, options);
    let mut progress = (0, 0);
    engine.settle(&mut |done, total| progress = (done, total));
    assert_eq!(engine.notices(), [], "{}", model.display());
    assert!(progress.1 > 0);
}

/// Writes over bytes of a file.
fn overwrite(path: &Path, at: u64, bytes: &[u8]) -> File {
    let mut file = File::options().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start(at)).unwrap();
    file.write_all(bytes).unwrap();
    file
}

/// A private copy of a small model.
fn copy(of: &Path) -> (ScratchFolder, PathBuf) {
    let folder = ScratchFolder::new("kept");
    let copy = folder.copy(of);
    (folder, copy)
}

fn logits(engine: &mut Engine) -> Vec<Vec<u32>> {
    let rows = all_logits(engine, &[1, 403, 407, 261, 378, 3, 5, 9, 21, 30]);
    rows.into_iter().map(|row| row.into_iter().map(f32::to_bits).collect()).collect()
}

#[test]
fn mapped_weights_compute_the_same_bytes() {
    let models = [bedtime::f32(), bedtime::q8_0(), bedtime::safetensors()];
    for model in models.into_iter().chain(tiny::NAMES.iter().map(|name| tiny::model(name))) {
        check_mapped(&model);
    }
}

#[test]
#[ignore = "needs gemma-3-270m-q4_k_m.gguf in YIRAGE_MODELS"]
fn mapped_weights_of_a_real_model_compute_the_same_bytes() {
    check_mapped(&absent::model("gemma-3-270m-q4_k_m.gguf"));
}

fn check_mapped(model: &Path) {
    for precision in [Precision::Fast, Precision::Exact] {
        let (_folder, options) = keeping();
        let options = EngineOptions { precision, ..options };
        let mut plain = load(model, &EngineOptions { packed: None, ..options.clone() });
        let ids: Vec<u32> = (0..10).map(|i| (i * 37 + 1) % plain.facts().vocabulary).collect();
        let want = all_logits(&mut plain, &ids);
        assert_eq!(plain.facts().packed_weights, None);
        keep(model, &options);
        let mut mapped = load(model, &options);
        assert_eq!(mapped.facts().packed_weights, Some(entry(&options)), "{}", model.display());
        assert_eq!(mapped.memory().weights.used, plain.memory().weights.used);
        assert!(all_logits(&mut mapped, &ids) == want, "{}: other logits", model.display());
    }
    println!("{}", model.display());
}

#[test]
fn steps_write_the_entry_by_themselves() {
    let (_model_folder, model) = copy(&bedtime::q8_0());
    let (_folder, options) = keeping();
    let mut engine = load(&model, &options);
    assert_eq!(entries(&options).len(), 0);
    engine.add(Request::greedy(vec![1, 403], 3)).unwrap();
    engine.step().unwrap();
    while entries(&options).is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    while !engine.is_idle() {
        engine.step().unwrap();
    }
    assert_eq!(engine.notices(), []);
    assert!(verify(&entry(&options)).is_ok());
    // An engine that runs no step and is not told to leaves nothing.
    fs::remove_file(entry(&options)).unwrap();
    drop(load(&model, &options));
    assert_eq!(entries(&options).len(), 0);
}

#[test]
fn another_state_of_the_file_or_layout_is_another_entry() {
    let (_model_folder, model) = copy(&bedtime::q8_0());
    let (_folder, options) = keeping();
    keep(&model, &options);
    // What does not change a weight shares the entry: precision, context, batch.
    for same in [
        EngineOptions { context: Some(100), ..options.clone() },
        EngineOptions { max_seqs: 3, chunk: 32, ..options.clone() },
    ] {
        assert!(load(&model, &same).facts().packed_weights.is_some());
    }
    assert_eq!(entries(&options).len(), 1);
    // Another time, with the same bytes.
    File::options().append(true).open(&model).unwrap().set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    assert_eq!(load(&model, &options).facts().packed_weights, None);
    keep(&model, &options);
    assert_eq!(entries(&options).len(), 2);
    // A copy elsewhere has a state of its own.
    let (_other_folder, other) = copy(&bedtime::q8_0());
    assert_eq!(load(&other, &options).facts().packed_weights, None);
}

#[test]
fn other_weights_with_the_old_times_are_not_taken_for_the_old_ones() {
    let (_model_folder, model) = copy(&bedtime::q8_0());
    let (_folder, options) = keeping();
    let before = logits(&mut load(&model, &EngineOptions { packed: None, ..options.clone() }));
    keep(&model, &options);
    // One byte of the last tensor, same length, same time of writing.
    let data = fs::metadata(&model).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(20));
    let file = overwrite(&model, data.len() - 4096, &[0x55; 64]);
    file.set_modified(data.modified().unwrap()).unwrap();
    let mut engine = load(&model, &options);
    assert_eq!(engine.facts().packed_weights, None);
    assert_ne!(logits(&mut engine), before);
}

#[test]
fn entries_that_are_not_whole_are_replaced() {
    let (_model_folder, model) = copy(&bedtime::q8_0());
    let (_folder, options) = keeping();
    let want = logits(&mut load(&model, &EngineOptions { packed: None, ..options.clone() }));
    type Break = fn(&Path);
    let break_it: [(&str, Break); 5] = [
        ("another version", |path| drop(overwrite(path, 8, &[7]))),
        ("a damaged head", |path| drop(overwrite(path, 100, b"?"))),
        ("cut off", |path| File::options().write(true).open(path).unwrap().set_len(9000).unwrap()),
        ("empty", |path| fs::write(path, "").unwrap()),
        ("something else", |path| fs::write(path, "GGUF".repeat(9000)).unwrap()),
    ];
    for (what, break_it) in break_it {
        keep(&model, &options);
        let path = entry(&options);
        break_it(&path);
        let mut engine = load(&model, &options);
        assert_eq!(engine.facts().packed_weights, None, "{what}");
        let notices = engine.notices();
        let told = |why: &str| why.contains(&path.display().to_string());
        assert!(matches!(&notices[..], [Notice::Refused(why)] if told(why)), "{what}: {notices:?}");
        assert!(logits(&mut engine) == want, "{what}");
        engine.settle(&mut |_, _| {});
        assert!(verify(&entry(&options)).is_ok(), "{what}");
        fs::remove_file(entry(&options)).unwrap();
    }
}

#[test]
fn a_whole_entry_of_another_model_is_refused() {
    let ((_a, f32), (_b, q8)) = (copy(&bedtime::f32()), copy(&bedtime::q8_0()));
    let ((_folder, options), (_other_folder, other)) = (keeping(), keeping());
    keep(&q8, &options);
    keep(&f32, &other);
    fs::copy(entry(&other), entry(&options)).unwrap();
    let mut engine = load(&q8, &options);
    assert_eq!(engine.facts().packed_weights, None);
    assert!(matches!(&engine.notices()[..], [Notice::Refused(why)] if why.contains("key")));
}

#[test]
fn a_folder_that_cannot_be_made_is_told_and_nothing_else() {
    let (folder, model) = copy(&bedtime::q8_0());
    let (_folder, options) = keeping();
    let file = folder.0.join("file");
    fs::write(&file, "").unwrap();
    for (packed, why) in [
        (PackedOptions { folder: file.join("packed"), limit: GIB }, "packed"),
        (PackedOptions { limit: 1000, ..options.packed.clone().unwrap() }, "limit of 1000"),
    ] {
        let mut engine = load(&model, &EngineOptions { packed: Some(packed), ..options.clone() });
        engine.settle(&mut |_, _| {});
        let notices = engine.notices();
        assert!(matches!(&notices[..], [Notice::NotKept(text)] if text.contains(why)), "{notices:?}");
        logits(&mut engine);
    }
}

#[test]
fn starts_beside_each_other_leave_one_entry() {
    let (_model_folder, model) = copy(&bedtime::q8_0());
    let (_folder, options) = keeping();
    let want = logits(&mut load(&model, &EngineOptions { packed: None, ..options.clone() }));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut engine = load(&model, &options);
                assert!(logits(&mut engine) == want);
                engine.settle(&mut |_, _| {});
                let busy = |n: &Notice| matches!(n, Notice::NotKept(why) if why.contains("another process"));
                assert!(engine.notices().iter().all(busy));
            });
        }
    });
    assert!(verify(&entry(&options)).is_ok());
    assert!(load(&model, &options).facts().packed_weights.is_some());
}

#[test]
fn a_device_without_images_keeps_nothing() {
    let (_model_folder, model) = copy(&bedtime::f32());
    let (_folder, options) = keeping();
    let device = Reference::new().open(0, &OpenOptions::default()).unwrap().0;
    let checkpoint = Checkpoint::open(&model).unwrap();
    let mut engine = Engine::load(&checkpoint, device, &options, &mut |_, _| {}).unwrap();
    engine.settle(&mut |_, _| panic!("there is nothing to write"));
    assert_eq!((engine.notices(), entries(&options).len()), (vec![], 0));
}
