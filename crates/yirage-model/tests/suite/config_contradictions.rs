//! Configurations that contradict their file or themselves: errors that say which key, by the name that the file has for
//! it, never an answer by a model that is not the file's.

#![allow(clippy::print_stderr)]

use crate::arch_support::tiny;
use serde_json::{Value, json};
use std::path::PathBuf;
use yirage_model::arch::{BuildOptions, build};
use yirage_model::lint::{Severity, lint};
use yirage_model::{Checkpoint, GenerationConfig, ModelError, RawConfig};

const OPTIONS: BuildOptions = BuildOptions::plain(8);

fn folder(kind: &str, name: &str) -> PathBuf {
    tiny(kind).into_iter().find(|p| p.ends_with(name)).expect("a fixture")
}

fn config(name: &str) -> (Checkpoint, Value) {
    let folder = folder("safetensors", name);
    let config = std::fs::read_to_string(folder.join("config.json")).unwrap();
    (Checkpoint::open(&folder).unwrap(), serde_json::from_str(&config).unwrap())
}

/// The error of a fixture's model with some of its keys changed.
fn refused(name: &str, changes: &[(&str, Value)]) -> ModelError {
    let (checkpoint, mut config) = config(name);
    for (key, value) in changes {
        config[*key] = value.clone();
    }
    let config = RawConfig::from_json(config.to_string().as_bytes(), "config.json");
    let built = config.and_then(|config| build(&checkpoint, &config, OPTIONS));
    built.err().unwrap_or_else(|| panic!("{name} with {changes:?} was built"))
}

/// A copy of a GGUF fixture with the 32-bit numbers at some keys changed.
fn gguf(name: &str, changes: &[(&str, u32)]) -> (tempfile::TempDir, PathBuf) {
    let mut bytes = std::fs::read(folder("gguf", name).join("model.gguf")).unwrap();
    for (key, value) in changes {
        let at = bytes.windows(key.len()).position(|w| w == key.as_bytes()).expect("the key is there");
        bytes[at + key.len() + 4..][..4].copy_from_slice(&value.to_le_bytes());
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    std::fs::write(&path, bytes).unwrap();
    (folder, path)
}

fn refused_gguf(name: &str, changes: &[(&str, u32)]) -> ModelError {
    let (_folder, path) = gguf(name, changes);
    let checkpoint = Checkpoint::open(&path).unwrap();
    let config = RawConfig::load(&checkpoint);
    config.and_then(|config| build(&checkpoint, &config, OPTIONS)).expect_err("the model was built")
}

#[test]
fn layers_that_the_configuration_hides_are_named() {
    let text = refused("llama-yarn", &[("num_hidden_layers", json!(1))]).to_string();
    for part in ["model.layers.1.", "num_hidden_layers is 1", "has 2 layers", "9 tensors"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let text = refused("gpt2-scaled", &[("n_layer", json!(1))]).to_string();
    assert!(text.contains("n_layer is 1") && text.contains("transformer.h.1."), "{text}");
    let text = refused_gguf("llama", &[("llama.block_count", 1)]).to_string();
    assert!(text.contains("llama.block_count is 1") && text.contains("\"blk.1."), "{text}");
}

#[test]
fn biases_that_the_configuration_denies_are_named() {
    for name in ["llama-biased-linear", "glm4-yarn"] {
        let err = refused(name, &[("attention_bias", json!(false))]);
        assert!(matches!(&err, ModelError::UnusedTensors(u) if u.names[0].ends_with("_proj.bias")), "{name}: {err}");
    }
}

#[test]
fn inspecting_finds_what_building_refuses() {
    let (_folder, path) = gguf("llama", &[("llama.block_count", 1)]);
    let findings = lint(&Checkpoint::open(&path).unwrap());
    assert!(findings.iter().any(|f| f.severity == Severity::Error && f.what.contains("llama.block_count is 1")));
    for folder in tiny("safetensors").into_iter().chain(tiny("gguf")) {
        let findings = lint(&Checkpoint::open(&folder).unwrap());
        assert!(findings.iter().all(|f| f.severity < Severity::Error), "{}: {findings:?}", folder.display());
    }
}

#[test]
fn gguf_errors_speak_of_gguf_keys() {
    for (key, value) in [
        ("llama.block_count", 0),
        ("llama.embedding_length", 0),
        ("llama.feed_forward_length", 0),
        ("llama.attention.head_count", 0),
        ("llama.attention.head_count_kv", 0),
        ("llama.attention.key_length", 0),
        ("llama.context_length", 0),
        ("llama.rope.dimension_count", 0),
    ] {
        let text = refused_gguf("llama", &[(key, value)]).to_string();
        assert!(text.contains(key) && text.contains("model.gguf"), "{key}: {text}");
        assert!(!text.contains("num_") && !text.contains("hidden_size"), "{key}: {text}");
    }
}

#[test]
fn two_sections_about_the_rotation_must_agree() {
    let yarn = json!({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32, "rope_theta": 1e4});
    let (checkpoint, mut both) = config("llama-yarn");
    both["rope_parameters"] = yarn.clone();
    let agreed = RawConfig::from_json(both.to_string().as_bytes(), "config.json").unwrap();
    build(&checkpoint, &agreed, OPTIONS).unwrap();
    for (key, value) in [("factor", json!(8.0)), ("rope_type", json!("default"))] {
        let mut other = yarn.clone();
        other[key] = value;
        let text = refused("llama-yarn", &[("rope_parameters", other)]).to_string();
        assert!(text.contains(&format!("rope_scaling.{key}")) && text.contains("rope_parameters"), "{text}");
    }
}

/// A model, the keys that are set in its configuration, and what the error says.
type ContradictionCase<'a> = (&'a str, &'a [(&'a str, Value)], &'a str);

#[test]
fn what_the_reference_computes_and_we_do_not_is_refused_by_name() {
    let cases: &[ContradictionCase] = &[
        ("gemma2-biased", &[("use_bidirectional_attention", json!(true))], "use_bidirectional_attention"),
        ("gemma3-pattern", &[("use_bidirectional_attention", json!(true))], "use_bidirectional_attention"),
        ("gpt2-scaled", &[("add_cross_attention", json!(true))], "add_cross_attention"),
        ("llama-yarn", &[("partial_rotary_factor", json!(0.5))], "partial_rotary_factor"),
        (
            "phi3-partial-window",
            &[("rope_parameters", json!({"partial_rotary_factor": 0.01}))],
            "partial_rotary_factor",
        ),
        ("glm-unbiased-tied", &[("partial_rotary_factor", json!(1.5))], "partial_rotary_factor"),
        ("llama-yarn", &[("num_attention_heads", json!(0))], "num_attention_heads"),
        ("gpt2-scaled", &[("n_head", json!(0))], "n_head"),
        (
            "smollm3-window",
            &[("no_rope_layers", Value::Null), ("no_rope_layer_interval", json!(0))],
            "no_rope_layer_interval",
        ),
        ("gemma3-pattern", &[("sliding_window_pattern", json!(0))], "sliding_window_pattern"),
        ("mistral-window", &[("sliding_window", json!(0))], "sliding_window"),
        ("gemma2-biased", &[("sliding_window", Value::Null)], "sliding_window"),
        ("qwen3moe-sparse", &[("decoder_sparse_step", json!(0))], "decoder_sparse_step"),
        ("deepseek-groups", &[("num_key_value_heads", json!(1))], "num_key_value_heads"),
        ("llama-yarn", &[("max_position_embeddings", json!(0))], "max_position_embeddings"),
        ("llama-yarn", &[("rms_norm_eps", json!(-1.0))], "rms_norm_eps"),
        ("gpt2-scaled", &[("hidden_size", json!(31))], "n_embd"),
    ];
    for (name, changes, named) in cases {
        let text = refused(name, changes).to_string();
        assert!(text.contains(named) && text.contains("config.json"), "{name} {changes:?}: {text}");
    }
}

#[test]
fn suggestions_that_nobody_can_follow_name_file_and_key() {
    let (_, values) = config("llama-yarn");
    let config = RawConfig::from_json(values.to_string().as_bytes(), "config.json").unwrap();
    for (key, value) in [("temperature", -1.0), ("top_p", 0.0), ("min_p", 2.0), ("repetition_penalty", 0.0)] {
        let bytes = json!({key: value}).to_string();
        let text =
            GenerationConfig::from_json(bytes.as_bytes(), "generation_config.json", &config).unwrap_err().to_string();
        assert!(text.contains("generation_config.json") && text.contains(key) && text.contains("expected"), "{text}");
    }
}

#[cfg(unix)]
#[test]
fn files_that_are_no_files_are_refused_by_their_kind() {
    let source = folder("safetensors", "llama-yarn");
    for name in ["config.json", "generation_config.json", "model.safetensors.index.json", "model.safetensors"] {
        for (target, kind) in [("/dev/zero", "a character device"), ("/", "a folder"), ("/nowhere", "cannot open")] {
            let copy = tempfile::tempdir().unwrap();
            for file in ["config.json", "model.safetensors"] {
                std::fs::copy(source.join(file), copy.path().join(file)).unwrap();
            }
            let _ = std::fs::remove_file(copy.path().join(name));
            std::os::unix::fs::symlink(target, copy.path().join(name)).unwrap();
            let load = || -> Result<(), ModelError> {
                let checkpoint = Checkpoint::open(copy.path())?;
                let config = RawConfig::load(&checkpoint)?;
                GenerationConfig::load(&checkpoint, &config).map(|_| ())
            };
            let text = load().expect_err(name).to_string();
            assert!(text.contains(kind) && text.contains(name), "{name} -> {target}: {text}");
        }
    }
}
