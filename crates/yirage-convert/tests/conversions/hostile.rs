//! Folders that are wrong: every one ends in an error that says where, or in a file that is the same model; nothing is left
//! of the others.

use crate::{converted, with_config};
use serde_json::{Value, json};
use std::path::Path;
use yirage_convert::{ConversionPlan, ConvertError, ConvertOptions};
use yirage_model::{Checkpoint, RawConfig};
use yirage_testkit::scratch::ScratchFolder;
use yirage_testkit::{bedtime, safetensors, tiny};

/// The tensors of a tiny model, in f32.
fn tensors(name: &str) -> Vec<(String, Vec<usize>, Vec<f32>)> {
    let checkpoint = Checkpoint::open(tiny::model(name)).unwrap();
    let floats = |bytes: &[u8]| bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
    checkpoint.tensors().map(|t| (t.name.clone(), t.shape.clone(), floats(checkpoint.bytes(t)))).collect()
}

/// A folder with a tiny model's configuration and other tensors.
fn with_tensors(folder: &ScratchFolder, name: &str, tensors: &[(String, Vec<usize>, Vec<f32>)]) -> std::path::PathBuf {
    let model = with_config(folder, name, &json!({}));
    let named: Vec<_> =
        tensors.iter().map(|(name, shape, values)| (name.as_str(), &shape[..], values.clone())).collect();
    std::fs::write(model.join("model.safetensors"), safetensors::file(&named)).unwrap();
    model
}

fn told(model: &Path, outtype: &str, folder: &ScratchFolder) -> String {
    let file = folder.0.join("out.gguf");
    let error = converted(model, outtype, &file).unwrap_err().to_string();
    let left = std::fs::read_dir(&folder.0).unwrap().filter(|e| e.as_ref().unwrap().path().is_file()).count();
    assert_eq!(left, 0, "{error}");
    error
}

#[test]
fn wrong_values_of_any_key_end_in_an_error_or_in_the_same_model() {
    let folder = ScratchFolder::new("convert-hostile");
    let file = folder.0.join("out.gguf");
    let wrong = [
        Value::Null,
        json!(-1),
        json!(0),
        json!(3),
        json!(0.3),
        json!(1e300),
        json!(4_294_967_295u32),
        json!(18_446_744_073_709_551_615u64),
        json!("text"),
        json!(true),
        json!([]),
        json!([1, "a", null]),
        json!({"rope_type": "llama3"}),
        json!({"rope_type": "yarn", "factor": 1e300, "original_max_position_embeddings": 0}),
    ];
    let (mut refused, mut kept) = (0, 0);
    for name in ["llama3-rope", "gptoss"] {
        let config: Value = tiny::golden(name)["config"].clone();
        for key in config.as_object().unwrap().keys() {
            for value in &wrong {
                let model = with_config(&folder, name, &json!({key: value}));
                match converted(&model, "f32", &file) {
                    Err(error) => {
                        assert!(!error.to_string().is_empty());
                        refused += 1;
                    }
                    Ok(_) => {
                        let checkpoint = Checkpoint::open(&file).unwrap();
                        RawConfig::load(&checkpoint).unwrap();
                        std::fs::remove_file(&file).unwrap();
                        kept += 1;
                    }
                }
            }
        }
    }
    assert!(refused > 150 && kept > 50, "{refused} refused, {kept} kept");
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().filter(|e| e.as_ref().unwrap().path().is_file()).count(), 0);
}

#[test]
fn numbers_that_a_format_does_not_hold_are_told_with_their_place() {
    let folder = ScratchFolder::new("convert-numbers");
    let mut all = tensors("qwen2");
    let place = all.iter().position(|(name, ..)| name == "model.layers.1.mlp.up_proj.weight").unwrap();
    all[place].2[130] = 70_000.0;
    let model = with_tensors(&folder, "qwen2", &all);
    let text = told(&model, "f16", &folder);
    assert!(text.contains("\"model.layers.1.mlp.up_proj.weight\" has 70000 at element 130"), "{text}");
    assert!(text.contains("beyond what F16 holds; convert with --outtype bf16 or f32"), "{text}");
    let file = folder.0.join("wide.gguf");
    let written = converted(&model, "bf16", &file).unwrap();
    let rounded: u64 = written.rounded.iter().map(|r| r.changed).sum();
    assert!(rounded > 0 && std::fs::metadata(&file).unwrap().len() == written.bytes);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(converted(&model, "f32", &file).unwrap().rounded.iter().map(|r| r.changed).sum::<u64>(), 0);
    std::fs::remove_file(&file).unwrap();
    all[place].2[131] = f32::NAN;
    let text = told(&with_tensors(&folder, "qwen2", &all), "f32", &folder);
    assert!(text.contains("has NaN at element 131"), "{text}");
}

#[test]
fn tensors_that_are_wrong_are_told() {
    let folder = ScratchFolder::new("convert-tensors");
    let whole = tensors("qwen3moe");
    let expert = "model.layers.1.mlp.experts.2.up_proj.weight";
    let without: Vec<_> = whole.iter().filter(|(name, ..)| name != expert).cloned().collect();
    assert!(told(&with_tensors(&folder, "qwen3moe", &without), "f32", &folder).contains(expert));
    let mut renamed = whole.clone();
    let place = renamed.iter().position(|(name, ..)| name == expert).unwrap();
    renamed[place].0 = "model.layers.1.mlp.experts.x.up_proj.weight".into();
    assert!(told(&with_tensors(&folder, "qwen3moe", &renamed), "f32", &folder).contains(expert));
    let mut more = whole;
    more.push(("model.layers.0.self_attn.further.weight".into(), vec![4], vec![0.0; 4]));
    let text = told(&with_tensors(&folder, "qwen3moe", &more), "f32", &folder);
    assert!(text.contains("\"model.layers.0.self_attn.further.weight\""), "{text}");
}

#[test]
fn gguf_files_and_outputs_that_are_there_are_told() {
    let folder = ScratchFolder::new("convert-there");
    let checkpoint = Checkpoint::open(bedtime::f32()).unwrap();
    let error = ConversionPlan::new(&checkpoint, None, &ConvertOptions::default()).unwrap_err();
    assert!(matches!(error, ConvertError::NotSafetensors { .. }) && error.is_unsupported(), "{error}");
    let file = folder.write("out.gguf", b"mine");
    let error = converted(&tiny::model("llama"), "f16", &file).unwrap_err();
    assert!(matches!(error, ConvertError::Exists { .. }), "{error}");
    assert_eq!(std::fs::read(&file).unwrap(), b"mine");
    let error = converted(&tiny::model("llama"), "f16", &folder.0.join("none/out.gguf")).unwrap_err();
    assert!(matches!(error, ConvertError::Write { .. }), "{error}");
}
