//! `yirage quantize`: the file that it writes runs, and every option of it changes something.

use crate::support::{bedtime, yirage};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::path::Path;

/// Quantises the small model with these arguments and gives the report and the hash of the file.
fn quantized(arguments: &[&str]) -> (Value, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out.gguf");
    let report =
        yirage(&[&["quantize", &bedtime(), "--json", "-o", file.to_str().unwrap()], arguments].concat()).json();
    (report, hash(&file))
}

fn hash(file: &Path) -> String {
    Sha256::digest(std::fs::read(file).unwrap()).iter().take(8).map(|b| format!("{b:02x}")).collect()
}

fn format_of(report: &Value, tensor: &str) -> String {
    let tensors = report["tensors"].as_array().unwrap();
    tensors.iter().find(|t| t["name"] == tensor).unwrap()["to"].as_str().unwrap().to_owned()
}

#[test]
fn the_file_runs_and_is_named_by_its_mix() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("tiny-f32.gguf");
    std::fs::copy(bedtime(), &source).unwrap();
    let ran = yirage(&["quantize", source.to_str().unwrap(), "q8_0"]).ran();
    assert!(ran.code == 0 && ran.out.contains("tiny-Q8_0.gguf: "), "{}{}", ran.out, ran.err);
    let made = folder.path().join("tiny-Q8_0.gguf");
    let made = made.to_str().unwrap();
    let said = yirage(&["run", "-m", made, "-p", "Once upon a time", "-n", "8", "--temperature", "0", "-q"]).ran();
    assert!(said.code == 0 && !said.out.trim().is_empty(), "{}", said.err);
    let again = yirage(&["quantize", source.to_str().unwrap(), "q8_0"]).ran();
    assert!(again.code == 2 && again.err.contains("--force"), "{}", again.err);
    force(&source);
    let twice = yirage(&["quantize", made, "Q4_0"]).ran();
    assert!(twice.code == 1 && twice.err.contains("--allow-requantize"), "{}", twice.err);
}

fn force(source: &Path) {
    assert_eq!(yirage(&["quantize", source.to_str().unwrap(), "q8_0", "--force"]).ran().code, 0);
}

#[test]
fn what_makes_no_sense_is_told() {
    for (arguments, code, expected) in [
        (vec!["quantize"], 2, "expected a model whose weights are floats"),
        (vec!["quantize", "./nowhere.gguf"], 1, "nowhere.gguf"),
        (vec!["quantize", "/proc"], 3, "expected a GGUF file, got a folder"),
        (vec!["quantize", &bedtime(), "Q9_Z"], 2, "Q4_K_M"),
        (vec!["quantize", &bedtime(), "IQ2_XXS"], 2, "\"IQ2_XXS\""),
        (vec!["quantize", &bedtime(), "Q2_K_S", "--token-embedding-type", "q8_9"], 2, "\"q8_9\""),
        (vec!["quantize", &bedtime(), "-o", "/proc/none/out.gguf"], 1, "/proc/none/out.gguf"),
        (vec!["quantize", &bedtime(), "--imatrix", &bedtime()], 1, "importances"),
        (vec!["quantize", &bedtime(), "-t", "0"], 2, "--threads"),
    ] {
        let ran = yirage(&arguments).ran();
        assert!(ran.code == code && ran.err.contains(expected), "{arguments:?}: {} {}", ran.code, ran.err);
    }
}

pub(crate) fn mix() {
    assert_ne!(quantized(&["Q4_0"]).1, quantized(&["--mix", "Q8_0"]).1);
}

pub(crate) fn output() {
    assert!(quantized(&[]).0["output"].as_str().unwrap().ends_with("out.gguf"));
}

pub(crate) fn forced() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("tiny.gguf");
    std::fs::copy(bedtime(), &source).unwrap();
    force(&source);
    force(&source);
}

pub(crate) fn dry_run() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out.gguf");
    let report = yirage(&["quantize", &bedtime(), "--json", "--dry-run", "-o", file.to_str().unwrap()]).json();
    assert!(report["output"].is_null() && !file.exists() && report["tensor_bytes"]["after"].as_u64().unwrap() > 0);
}

/// Importances of all inputs of one matrix, as a file.
pub(crate) fn imatrix() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("importances.gguf");
    let plain = quantized(&["Q4_0"]);
    let tensor = "blk.0.attn_q.weight";
    std::fs::write(&file, importances(tensor, 64)).unwrap();
    let important = quantized(&["Q4_0", "--imatrix", file.to_str().unwrap()]);
    let of = |report: &Value| {
        let tensors = report["tensors"].as_array().unwrap().clone();
        tensors.into_iter().filter(|t| t["importances"] == true).map(|t| t["name"].clone()).collect::<Vec<_>>()
    };
    assert_eq!((of(&plain.0).len(), of(&important.0)), (0, vec![Value::from(tensor)]));
    assert_ne!(plain.1, important.1);
    std::fs::write(&file, importances(tensor, 32)).unwrap();
    let ran = yirage(&["quantize", &bedtime(), "--dry-run", "--imatrix", file.to_str().unwrap()]).ran();
    assert!(ran.code == 1 && ran.err.contains("has 32 importances; expected 64"), "{}", ran.err);
}

/// A GGUF file with sums for `columns` inputs of one tensor, and their count.
fn importances(tensor: &str, columns: u64) -> Vec<u8> {
    let mut out = b"GGUF\x03\0\0\0".to_vec();
    let mut number = |n: u64| out.extend_from_slice(&n.to_le_bytes());
    number(2);
    number(0);
    let mut table = |name: String, dims: [u64; 2], offset: u64| {
        out.extend_from_slice(&(name.len() as u64).to_le_bytes());
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(&2u32.to_le_bytes());
        dims.iter().for_each(|dim| out.extend_from_slice(&dim.to_le_bytes()));
        out.extend_from_slice(&0u32.to_le_bytes());
        out.extend_from_slice(&offset.to_le_bytes());
    };
    table(format!("{tensor}.in_sum2"), [columns, 1], 0);
    table(format!("{tensor}.counts"), [1, 1], columns * 4);
    out.resize(out.len().next_multiple_of(32), 0);
    (0..columns).for_each(|i| out.extend_from_slice(&(i as f32 * 3.0).to_le_bytes()));
    out.extend_from_slice(&6f32.to_le_bytes());
    out.resize(out.len().next_multiple_of(32), 0);
    out
}

pub(crate) fn allow_requantize() {
    let folder = tempfile::tempdir().unwrap();
    let (eight, four) = (folder.path().join("eight.gguf"), folder.path().join("four.gguf"));
    let [eight, four] = [eight, four].map(|path| path.to_str().unwrap().to_owned());
    assert_eq!(yirage(&["quantize", &bedtime(), "Q8_0", "-o", &eight]).ran().code, 0);
    assert_eq!(yirage(&["quantize", &eight, "Q4_0", "-o", &four]).ran().code, 1);
    assert_eq!(yirage(&["quantize", &eight, "Q4_0", "-o", &four, "--allow-requantize"]).ran().code, 0);
}

pub(crate) fn pure() {
    let (usual, pure) = (quantized(&["Q4_0"]).0, quantized(&["Q4_0", "--pure"]).0);
    assert_eq!(
        (format_of(&usual, "token_embd.weight"), format_of(&pure, "token_embd.weight")),
        ("Q8_0".to_owned(), "Q4_0".to_owned())
    );
}

pub(crate) fn leave_output_tensor() {
    let said = |more: &[&str]| quantized(&[&["Q4_0"], more].concat()).1;
    assert_eq!(said(&[]) == said(&["--leave-output-tensor"]), !has_output());
}

/// Whether the small model has a matrix of logits of its own.
fn has_output() -> bool {
    quantized(&["Q4_0"]).0["tensors"].as_array().unwrap().iter().any(|t| t["name"] == "output.weight")
}

pub(crate) fn output_tensor_type() {
    let report = quantized(&["Q4_0", "--output-tensor-type", "q5_1"]).0;
    let tensor = if has_output() { "output.weight" } else { "token_embd.weight" };
    assert_eq!(format_of(&report, tensor), "Q5_1");
}

pub(crate) fn token_embedding_type() {
    let report = quantized(&["Q4_0", "--token-embedding-type", "bf16"]).0;
    assert_eq!(format_of(&report, "token_embd.weight"), "BF16");
}

pub(crate) fn threads() {
    let ran = yirage(&["quantize", &bedtime(), "--dry-run", "--threads", "none"]).ran();
    assert!(ran.code == 2 && ran.err.contains("--threads"), "{}", ran.err);
}
