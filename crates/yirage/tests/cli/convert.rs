//! `yirage convert`: the file that it writes gives the logits of the folder, and every option of it changes something.

use crate::support::{bedtime, path, yirage};
use serde_json::Value;
use yirage_testkit::tiny;

fn folder() -> String {
    path(&yirage_testkit::bedtime::safetensors_with_tokenizer())
}

/// Converts the small model with these arguments and gives the report and the bytes of the file.
fn converted(arguments: &[&str]) -> (Value, Vec<u8>) {
    let out = tempfile::tempdir().unwrap();
    let file = out.path().join("out.gguf");
    let report = yirage(&[&["convert", &folder(), file.to_str().unwrap(), "--json"], arguments].concat()).json();
    (report, std::fs::read(file).unwrap())
}

/// What a model says of these tokens, in the exact precision.
fn logits(model: &str) -> Value {
    yirage(&["logits", model, "--ids", "1,5,9,40,7,22,101,18", "--precision", "exact", "--json"]).json()
}

/// The largest logits of the last position, by id.
fn top(logits: &Value) -> Vec<(u64, f64)> {
    let top = logits["positions"][0]["top"].as_array().unwrap();
    top.iter().map(|pair| (pair[0].as_u64().unwrap(), pair[1].as_f64().unwrap())).collect()
}

#[test]
fn the_file_has_the_logits_of_the_folder() {
    let out = tempfile::tempdir().unwrap();
    let file = path(&out.path().join("out.gguf"));
    let convert = |model: &str| {
        let ran = yirage(&["convert", model, "-o", &file, "--outtype", "f32", "--force"]).ran();
        assert!(ran.code == 0 && ran.out.contains("out.gguf: "), "{model}: {}{}", ran.out, ran.err);
    };
    // Rows as they were, norms that are whole, fused matrices: the same bytes are multiplied in the same order.
    for model in ["qwen3", "gemma3", "phi3"].map(|name| path(&tiny::model(name))) {
        convert(&model);
        assert_eq!(logits(&model), logits(&file), "{model}");
    }
    // Products of queries and keys are added in another order where their rows changed places.
    for model in [folder(), path(&tiny::model("llama")), path(&tiny::model("mixtral"))] {
        convert(&model);
        let (read, written) = (top(&logits(&model)), top(&logits(&file)));
        assert!(read[0].0 == written[0].0 && (read[0].1 - written[0].1).abs() < 1e-5, "{model}: {read:?} {written:?}");
    }
}

#[test]
fn the_file_has_the_tokens_of_the_folder() {
    let out = tempfile::tempdir().unwrap();
    let file = path(&out.path().join("out.gguf"));
    assert_eq!(yirage(&["convert", &folder(), &file]).ran().code, 0);
    for text in ["Once upon a time", "  two  spaces", "na\u{ef}ve \u{1f600}"] {
        let tokens = |model: &str| yirage(&["tokenize", model, text, "--json"]).json();
        assert_eq!(tokens(&folder()), tokens(&file), "{text:?}");
    }
}

#[test]
fn what_cannot_be_converted_is_told() {
    let (llama, window, unknown) = (folder(), path(&tiny::model("mistral-swa")), path(&tiny::model("gptneox")));
    for (arguments, code, expected) in [
        (vec!["convert"], 2, "`yirage convert FOLDER`"),
        (vec!["convert", "./nowhere"], 1, "nowhere"),
        (vec!["convert", &bedtime()], 3, "is a GGUF file already"),
        (vec!["convert", &llama, "--outtype", "q8_0"], 2, "--outtype"),
        (vec!["convert", &unknown, "--dry-run"], 3, "\"gpt_neox\" is not converted; expected one of llama"),
        (vec!["convert", &window, "/tmp/none.gguf"], 3, "GGUF metadata cannot state this model: the cache would be"),
        (vec!["convert", &llama, "/proc/none/out.gguf"], 1, "/proc/none/out.gguf"),
    ] {
        let ran = yirage(&arguments).ran();
        assert!(ran.code == code && ran.err.contains(expected), "{arguments:?}: {} {}", ran.code, ran.err);
    }
}

#[test]
fn what_a_file_lacks_and_what_was_rounded_is_told() {
    let out = tempfile::tempdir().unwrap();
    let file = path(&out.path().join("out.gguf"));
    let ran = yirage(&["convert", &path(&tiny::model("qwen2")), &file]).ran();
    assert!(ran.code == 0 && ran.err.contains("no tokenizer.json"), "{}", ran.err);
    // Each of its numbers is a scale of 11 bits times a whole number of 8.
    let ran = yirage(&["convert", &folder(), &file, "--force"]).ran();
    assert!(ran.code == 0 && ran.err.contains("numbers were rounded to F16"), "{}", ran.err);
    assert!(!ran.err.contains("no tokenizer.json"), "{}", ran.err);
    let again = yirage(&["convert", &path(&tiny::model("qwen2")), &file]).ran();
    assert!(again.code == 2 && again.err.contains("--force"), "{}", again.err);
}

pub(crate) fn outtype() {
    let (half, whole) = (converted(&[]), converted(&["--outtype", "f32"]));
    assert_eq!((&half.0["outtype"], &whole.0["outtype"]), (&"F16".into(), &"F32".into()));
    assert!(half.1.len() < whole.1.len());
}

pub(crate) fn outfile() {
    let out = tempfile::tempdir().unwrap();
    for flag in ["-o", "--output", "--outfile"] {
        let file = path(&out.path().join(format!("{flag}.gguf")));
        let report = yirage(&["convert", &folder(), flag, &file, "--json"]).json();
        assert_eq!(report["output"], file);
    }
}

pub(crate) fn model_name() {
    let (report, bytes) = converted(&["--model-name", "a name of its own"]);
    assert!(report["bytes"].as_u64().unwrap() == bytes.len() as u64);
    assert!(bytes.windows(17).any(|part| part == b"a name of its own"));
}

pub(crate) fn forced() {
    let out = tempfile::tempdir().unwrap();
    let file = path(&out.path().join("out.gguf"));
    let code = |more: &[&str]| yirage(&[&["convert", &folder(), &file], more].concat()).ran().code;
    assert_eq!((code(&[]), code(&[]), code(&["--force"])), (0, 2, 0));
}

pub(crate) fn dry_run() {
    let out = tempfile::tempdir().unwrap();
    let file = out.path().join("out.gguf");
    let report = yirage(&["convert", &folder(), &path(&file), "--json", "--dry-run"]).json();
    assert!(report["output"].is_null() && !file.exists() && report["tensor_bytes"].as_u64().unwrap() > 0);
}
