//! Kernels on disk: the same tokens from a file, nothing compiled again, and every difference refused.

use crate::support::{self, End, build, build_with, cpu, meta, tensors};
use std::collections::HashMap;
use std::fs;
use yirage_engine::PlanCounts;
use yirage_hal::reference::Reference;
use yirage_hal::{Backend, OpenOptions};
use yirage_persistent::{
    KernelConfig, KernelTensor, LaunchDims, MetaTensors, PersistentError, PersistentKernel, PromptLookup,
};
use yirage_plan::Precision;
use yirage_testkit::rng::Rng;
use yirage_testkit::tiny;

fn config() -> KernelConfig {
    KernelConfig {
        max_num_batched_requests: 2,
        max_num_batched_tokens: 16,
        max_seq_length: 48,
        ..KernelConfig::default()
    }
}

fn requests() -> MetaTensors {
    meta(&[vec![3, 4, 5], vec![7; 20], vec![11, 12]], 48)
}

/// What a model's files say of its norms, which a caller of `load` states again.
fn eps(folder: &std::path::Path) -> f32 {
    support::Source::open(folder).eps()
}

#[test]
fn a_kernel_from_its_files_gives_the_same_tokens_and_compiles_nothing() {
    for (name, end, spec) in [
        ("qwen3", End::Argmax, None),
        ("qwen3moe", End::Halves, Some(PromptLookup { ngram_size: 2, spec_length: 3 })),
        ("llama", End::Sampled(9), None),
    ] {
        let (model, folder) = (tiny::model(name), tempfile::tempdir().unwrap());
        let config = KernelConfig { rms_norm_eps: eps(&model), spec_decode: spec, ..config() };
        let builder = build_with(&model, config.clone(), requests(), end, LaunchDims::ONE);
        let weights = tensors(&builder);
        let mut made = builder.compile(cpu(2), Some(folder.path())).unwrap();
        made.call(None).unwrap();
        assert!(made.plan_counts().compiled > 0);
        let mut loaded = PersistentKernel::load(folder.path(), config, requests(), &weights, cpu(2), false).unwrap();
        loaded.call(None).unwrap();
        assert_eq!(loaded.meta(), made.meta(), "{name}");
        let PlanCounts { compiled, read } = loaded.plan_counts();
        assert!(compiled == 0 && read > 0, "{name}: {compiled} compiled, {read} read");
        let elsewhere = tempfile::tempdir().unwrap();
        loaded.save(elsewhere.path()).unwrap();
        let config = KernelConfig { rms_norm_eps: eps(&model), spec_decode: spec, ..self::config() };
        let mut again = PersistentKernel::load(elsewhere.path(), config, requests(), &weights, cpu(2), false).unwrap();
        again.call(None).unwrap();
        assert_eq!(again.meta(), made.meta(), "{name}, without its plans");
        assert!(again.plan_counts().compiled > 0);
        assert!(loaded.notices().iter().all(|notice| !notice.to_string().contains("skipped")));
    }
}

/// A changed weight or option, another device, and what `skip_validation` makes of it.
#[test]
fn what_differs_is_refused_unless_the_validation_is_skipped() {
    let (model, folder) = (tiny::model("llama"), tempfile::tempdir().unwrap());
    let config = KernelConfig { rms_norm_eps: eps(&model), ..config() };
    let builder = build(&model, config.clone(), requests());
    let weights = tensors(&builder);
    let mut made = builder.compile(cpu(2), Some(folder.path())).unwrap();
    made.call(None).unwrap();
    let load = |config: KernelConfig, weights: &HashMap<String, KernelTensor>, device, skip| {
        PersistentKernel::load(folder.path(), config, requests(), weights, device, skip)
    };
    let other = |config, part: &str| {
        let Err(error) = load(config, &weights, cpu(2), false) else { panic!("{part} is taken") };
        assert!(matches!(error, PersistentError::Mismatch { .. }) && error.to_string().contains(part), "{error}");
    };
    other(KernelConfig { max_seq_length: 40, ..config.clone() }, "max_seq_length");
    other(KernelConfig { max_num_batched_tokens: 32, ..config.clone() }, "max_num_batched_tokens");
    other(KernelConfig { page_size: 32, ..config.clone() }, "page_size");
    other(KernelConfig { rms_norm_eps: 0.5, ..config.clone() }, "rms_norm_eps");
    other(KernelConfig { max_num_pages: Some(3), ..config.clone() }, "max_num_pages");
    other(KernelConfig { precision: Precision::Exact, ..config.clone() }, "precision");
    other(KernelConfig { spec_decode: Some(PromptLookup::default()), ..config.clone() }, "spec_length");

    let mut shorter = weights.clone();
    let head = &weights["lm_head.weight"];
    let bytes = head.data.as_ref().unwrap();
    let short = KernelTensor { dims: vec![128, 64], data: Some(bytes[..bytes.len() / 2].into()), ..head.clone() };
    shorter.insert("lm_head.weight".into(), short);
    let error = load(config.clone(), &shorter, cpu(2), false).err().unwrap();
    assert!(error.to_string().contains("lm_head.weight") && error.to_string().contains("[128, 64]"), "{error}");
    let error = load(config.clone(), &shorter, cpu(2), true).err().unwrap();
    assert!(error.to_string().contains("bytes"), "a weight that is too short never loads: {error}");
    let mut fewer = weights.clone();
    fewer.remove("lm_head.weight");
    assert!(matches!(load(config.clone(), &fewer, cpu(2), false), Err(PersistentError::Tensor { .. })));

    // Another device: refused, and compiled anew where the validation is skipped.
    let reference = || Reference::new().open(0, &OpenOptions::default()).unwrap().0;
    let error = load(config.clone(), &weights, reference(), false).err().unwrap();
    assert!(matches!(&error, PersistentError::Mismatch { field, .. } if field == "target"), "{error}");
    let mut skipped = load(config, &weights, reference(), true).unwrap();
    assert!(skipped.plan_counts().compiled > 0);
    let told: Vec<String> = skipped.notices().iter().map(ToString::to_string).collect();
    assert!(told.iter().any(|text| text.contains("skipped") && text.contains("target")), "{told:?}");
    skipped.call(None).unwrap();
    assert_eq!(skipped.meta(), made.meta());
}

/// A file of another version is told; one that is damaged anywhere never loads, validated or not.
#[test]
fn other_versions_and_damage_are_refused() {
    let (model, folder) = (tiny::model("llama"), tempfile::tempdir().unwrap());
    let config = KernelConfig { rms_norm_eps: eps(&model), ..config() };
    let builder = build(&model, config.clone(), requests());
    let weights = tensors(&builder);
    builder.compile(cpu(1), Some(folder.path())).unwrap();
    let file = folder.path().join("kernel.yirage");
    let whole = fs::read_to_string(&file).unwrap();
    let load = |skip| PersistentKernel::load(folder.path(), config.clone(), requests(), &weights, cpu(1), skip);

    let (head, rest) = whole.split_once("\nsum ").unwrap();
    let body = rest.split_once('\n').unwrap().1;
    let sealed = |body: &str| format!("{head}\nsum {}\n{body}", yirage_packed::sealed::sum(body));
    let version = format!("version {}", env!("CARGO_PKG_VERSION"));
    let older = body.replacen(
        &version,
        &"version 9".chars().chain("x".repeat(version.len() - 9).chars()).collect::<String>(),
        1,
    );
    assert_ne!(older, body);
    fs::write(&file, sealed(&older)).unwrap();
    let error = load(false).err().unwrap();
    assert!(matches!(&error, PersistentError::Mismatch { field, .. } if field == "version"), "{error}");
    load(true).unwrap();

    // What has the words of the older text form says so in its first line.
    fs::write(&file, whole.replacen("yirage-kernel 2", "yirage-kernel 1", 1)).unwrap();
    let error = load(true).err().unwrap().to_string();
    assert!(error.contains("it begins with `yirage-kernel 1`, `yirage-kernel 2` is wanted"), "{error}");

    let layout = body.find("\nlayout ").unwrap() + "\nlayout ".len();
    let digit = if &body[layout..=layout] == "0" { "1" } else { "0" };
    let relaid = format!("{}{digit}{}", &body[..layout], &body[layout + 1..]);
    fs::write(&file, sealed(&relaid)).unwrap();
    let error = load(false).err().unwrap();
    assert!(matches!(&error, PersistentError::Mismatch { field, .. } if field == "layout"), "{error}");

    for at in (0..whole.len()).step_by(97) {
        let mut bytes = whole.clone().into_bytes();
        bytes[at] ^= 1;
        fs::write(&file, &bytes).unwrap();
        assert!(load(true).is_err(), "byte {at}");
    }
    for cut in [0, 10, whole.len() / 2, whole.len() - 1] {
        fs::write(&file, &whole[..cut]).unwrap();
        assert!(load(true).is_err(), "cut at {cut}");
    }
    // Words that are sealed on purpose are harmless as well: refused, or a kernel that runs.
    for (from, to) in [
        ("group 2", "group 0"),
        ("kv_cache 0", "kv_cache 7"),
        ("input %ids", "input %odd"),
        ("whole float32", "rows:0:0 float32"),
    ] {
        let changed = body.replacen(from, to, 1);
        assert_ne!(changed, body, "{from}");
        fs::write(&file, sealed(&changed)).unwrap();
        assert!(load(true).is_err(), "{from}");
    }
    fs::remove_file(&file).unwrap();
    assert!(matches!(load(false), Err(PersistentError::File(_))));
}

/// Files that somebody changed and sealed again: each is refused, or is a kernel that runs or says what fails.
#[test]
fn files_that_were_changed_on_purpose_are_harmless() {
    let (model, folder) = (tiny::model("qwen3"), tempfile::tempdir().unwrap());
    let config = KernelConfig { rms_norm_eps: eps(&model), ..config() };
    let builder = build(&model, config.clone(), requests());
    let weights = tensors(&builder);
    builder.compile(cpu(1), Some(folder.path())).unwrap();
    let file = folder.path().join("kernel.yirage");
    let whole = fs::read_to_string(&file).unwrap();
    let (head, rest) = whole.split_once("\nsum ").unwrap();
    let body = rest.split_once('\n').unwrap().1;
    let mut rng = Rng::new(8);
    let (mut refused, mut ran) = (0, 0);
    for _ in 0..300 {
        let mut changed = body.as_bytes().to_vec();
        for _ in 0..1 + rng.below(3) {
            let at = rng.below(changed.len() as u64) as usize;
            // Numbers stay numbers, so that many are read.
            changed[at] = match changed[at] {
                b'0'..=b'9' => b'0' + rng.below(10) as u8,
                _ => b' ' + rng.below(95) as u8,
            };
        }
        let changed = String::from_utf8(changed).unwrap();
        fs::write(&file, format!("{head}\nsum {}\n{changed}", yirage_packed::sealed::sum(&changed))).unwrap();
        match PersistentKernel::load(folder.path(), config.clone(), requests(), &weights, cpu(1), true) {
            Err(_) => refused += 1,
            Ok(mut kernel) => {
                let _ = kernel.call(Some(3));
                ran += 1;
            }
        }
    }
    assert!(refused > 100 && ran > 0, "{refused} refused, {ran} ran");
}
