//! Folders of safetensors as GGUF files: the same model, by its logits; what is refused, and why.

#![allow(clippy::unwrap_used)]

mod hostile;
mod logits;
mod packed;
mod vocabularies;

use logits::logits;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use yirage_convert::{ConversionPlan, ConvertError, ConvertOptions, Mix, WrittenGguf};
use yirage_model::Checkpoint;
use yirage_model::gguf::{Gguf, GgufArray, GgufValue};
use yirage_testkit::scratch::ScratchFolder;
use yirage_testkit::{rows, tiny};

/// Converts `model` with matrices of `outtype`.
pub(crate) fn converted(model: &Path, outtype: &str, to: &Path) -> Result<WrittenGguf, ConvertError> {
    let checkpoint = Checkpoint::open(model)?;
    let options = ConvertOptions { outtype: Some(Mix::of_floats(outtype)?), name: None };
    ConversionPlan::new(&checkpoint, None, &options)?.write(to, false, &mut |_| {})
}

/// What becomes of a tiny model.
enum Outcome {
    /// The same logits to the bit.
    Same,
    /// Logits that differ by the rounding of divisors of frequencies, which the file holds as f32.
    Rounded,
    /// What the refusal says.
    Refused(&'static str),
}

const OTHER_FAMILY: Outcome = Outcome::Refused("is not converted; expected one of llama, ");

fn outcome(name: &str) -> Outcome {
    match name {
        "llama" | "qwen2" | "qwen3" | "qwen3moe" | "mixtral" | "gemma" | "gemma2" | "gemma3" | "phi3" | "olmo2"
        | "olmo3" | "gptoss" | "seed-oss" | "cohere" | "cohere2" | "stablelm" | "glm" | "minimax-m2" | "exaone4"
        | "granite" | "ernie4-5" => Outcome::Same,
        "llama3-rope" => Outcome::Rounded,
        "mistral-swa" | "starcoder2" => Outcome::Refused("the cache would be"),
        "smollm3" => Outcome::Refused("it would compute `l2.q.rope = Rope"),
        "qwen2moe" => Outcome::Refused("the file would need a tensor \"blk.1.ffn_gate_inp.weight\""),
        _ => OTHER_FAMILY,
    }
}

/// Token ids of every tiny vocabulary, more than the windows of those that have one.
fn ids() -> Vec<u32> {
    (0..40u32).map(|i| 3 + i * 7 % 200).collect()
}

/// What another implementation makes of the tiny models, by `tools/oracle/convert_golden.py`.
fn golden() -> Value {
    serde_json::from_str(include_str!("../../fixtures/conversions.json")).unwrap()
}

/// The hash of all tensors of a file: names, types, dimensions and bytes. Divisors of frequencies are not among them.
fn tensors_hash(file: &Path) -> String {
    let bytes = std::fs::read(file).unwrap();
    let gguf = Gguf::parse(&bytes, "converted").unwrap();
    let mut hash = Sha256::new();
    for tensor in gguf.tensors().iter().filter(|tensor| tensor.name != "rope_freqs.weight") {
        hash.update(format!("{} {} {:?}\n", tensor.name, tensor.ty.name().unwrap(), tensor.shape));
        hash.update(&bytes[tensor.range.start as usize..tensor.range.end as usize]);
    }
    hash.finalize().iter().take(8).map(|b| format!("{b:02x}")).collect()
}

/// Keys that files here have and that implementation leaves out where they follow from others.
const SPELT_OUT: &[&str] =
    &["vocab_size", "attention.key_length", "attention.value_length", "rope.dimension_count", "rope.freq_base"];

/// Keys that it has other values for: it takes keys of an older `config.json` of the family, which the current one lacks,
/// and so the width of the embedding for the longest context.
const TAKEN_OTHERWISE: &[(&str, &str)] = &[("glm", "context_length"), ("glm", "attention.layer_norm_rms_epsilon")];

/// Compares the metadata about the model with those of another implementation.
fn check_metadata(name: &str, file: &Path, golden: &Value) {
    let bytes = std::fs::read(file).unwrap();
    let gguf = Gguf::parse(&bytes, "converted").unwrap();
    let architecture = gguf.architecture().unwrap();
    let mut theirs = golden[name]["metadata"].as_object().unwrap().clone();
    // That implementation states its way of saying "none".
    theirs.retain(|key, value| !(key.ends_with(".rope.scaling.type") && value == "none"));
    for (key, value) in gguf.metadata().filter(|(key, _)| !key.starts_with("general.") || *key == "general.file_type") {
        let suffix = key.strip_prefix(architecture).map_or(key, |rest| &rest[1..]);
        let Some(other) = theirs.remove(key) else {
            assert!(SPELT_OUT.contains(&suffix), "{name}: {key} is {value:?}, and nothing there");
            continue;
        };
        let same = match value {
            GgufValue::F32(x) => other.as_f64().unwrap() as f32 == *x,
            GgufValue::Bool(x) => other == *x,
            GgufValue::String(x) => other == *x.as_str(),
            GgufValue::Array(GgufArray::Bool(list)) => other == Value::from(list.clone()),
            number => other.as_i64().map(i128::from) == number.as_int(),
        };
        let same = same || TAKEN_OTHERWISE.contains(&(name, suffix));
        assert!(same, "{name}: {key} is {value:?}, and {other} there");
    }
    assert!(theirs.is_empty(), "{name}: only there {theirs:?}");
}

/// Converts to each of the float types, and compares tensors and metadata with those of another implementation.
fn check_files(name: &str, model: &Path, folder: &Path, golden: &Value) {
    for outtype in ["f32", "f16", "bf16"] {
        let file = folder.join(format!("{name}-{outtype}.gguf"));
        converted(model, outtype, &file).unwrap();
        assert_eq!(tensors_hash(&file), golden[name][outtype], "{name} as {outtype}");
        if outtype == "f32" {
            check_metadata(name, &file, golden);
        }
    }
}

/// Compares the logits of a model with those of its file.
pub(crate) fn check_logits(name: &str, model: &Path, file: &Path, to_the_bit: bool) {
    let (read, written) = (logits(model, &ids()), logits(file, &ids()));
    if to_the_bit {
        assert_eq!(read, written, "{name}");
    }
    assert!(rows::worst(&read, &written) < 1e-5 * rows::spread(&read), "{name}");
}

#[test]
fn every_family_is_the_same_model_or_is_refused_with_the_reason() {
    let folder = ScratchFolder::new("convert-families");
    let golden = golden();
    for name in tiny::NAMES {
        let model = tiny::model(name);
        let file = folder.0.join(format!("{name}-f32.gguf"));
        if let Outcome::Refused(why) = outcome(name) {
            let told = converted(&model, "f32", &file).unwrap_err().to_string();
            assert!(told.contains(why) && told.contains("config.json"), "{name}: {told}");
            assert!(!file.exists(), "{name}");
            continue;
        }
        check_files(name, &model, &folder.0, &golden);
        check_logits(name, &model, &file, matches!(outcome(name), Outcome::Same));
    }
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 22 * 3, "nothing else is left");
}

/// The tiny model with other values in its configuration.
pub(crate) fn with_config(folder: &ScratchFolder, name: &str, changes: &Value) -> PathBuf {
    let model = tiny::model(name);
    let mut config: Value = serde_json::from_slice(&std::fs::read(model.join("config.json")).unwrap()).unwrap();
    for (key, value) in changes.as_object().unwrap() {
        config[key] = value.clone();
    }
    let copy = folder.0.join(format!("{name}-folder"));
    std::fs::create_dir_all(&copy).unwrap();
    std::fs::write(copy.join("config.json"), config.to_string()).unwrap();
    std::fs::copy(model.join("model.safetensors"), copy.join("model.safetensors")).unwrap();
    copy
}

#[test]
fn families_whose_tiny_models_are_of_another_kind_than_the_published_ones_are_converted() {
    let folder = ScratchFolder::new("convert-variants");
    for (name, changes) in [
        ("mistral-swa", json!({"sliding_window": null})),
        ("starcoder2", json!({"sliding_window": null})),
        ("smollm3", json!({"no_rope_layers": [1, 1, 1], "no_rope_layer_interval": 4})),
    ] {
        let model = with_config(&folder, name, &changes);
        let golden = golden();
        for outtype in ["f32", "f16", "bf16"] {
            let file = folder.0.join(format!("{name}-{outtype}.gguf"));
            converted(&model, outtype, &file).unwrap();
            assert_eq!(tensors_hash(&file), golden[name][outtype], "{name} as {outtype}");
        }
        check_logits(name, &model, &folder.0.join(format!("{name}-f32.gguf")), true);
    }
}
