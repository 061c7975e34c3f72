//! Shapes and options that the larger fixtures lack, against logits of the reference implementation; made by
//! `tools/oracle/make_tiny.py`. The GGUF files are written by the `gguf` package, and llama.cpp was asked about them too.

use crate::arch_support::{ArchRunner, check_golden, tiny};
use yirage_testkit::json;

fn check_all(kind: &str, count: usize) {
    let list = tiny(kind);
    assert_eq!(list.len(), count);
    let failures: Vec<String> = list
        .iter()
        .filter_map(|f| check_golden(f).err().map(|e| format!("{}: {e}", f.file_name().unwrap().display())))
        .collect();
    assert!(failures.is_empty(), "{} of {count} fail:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn safetensors_of_other_shapes_agree_with_the_reference() {
    check_all("safetensors", 23);
}

#[test]
fn gguf_files_agree_with_the_reference() {
    check_all("gguf", 13);
}

/// Written by llama.cpp's converter; made by `tools/oracle/make_tiny_converted.py`.
#[test]
fn converted_gguf_files_agree_with_the_reference() {
    check_all("converted", 32);
}

/// A second opinion that shares no code with the first: llama.cpp, by `tools/oracle/llama_logits.py`. It rounds the
/// activations of F16 weights to F16 and those of MXFP4 weights to int8, hence the bounds.
#[test]
fn gguf_files_agree_with_llama_cpp() {
    // It asserts sizes that some of the converted models lack, and rotates by the length of its cache where a model has
    // frequencies of its own for long sequences.
    let all = tiny("gguf").into_iter().chain(tiny("converted"));
    let folders: Vec<_> = all.filter(|f| f.join("llamacpp.json").exists()).collect();
    assert!(folders.len() > 30, "{}", folders.len());
    for folder in folders {
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let bound = if name == "gpt-oss" { 0.1 } else { 0.01 };
        let (golden, opinion) = (json::read(&folder.join("golden.json")), json::read(&folder.join("llamacpp.json")));
        let mut runner = ArchRunner::new(&folder, 64).unwrap();
        let cases = golden["cases"].as_array().unwrap();
        assert_eq!(cases.len(), opinion["cases"].as_array().unwrap().len());
        for (c, (case, opinion)) in cases.iter().zip(opinion["cases"].as_array().unwrap()).enumerate() {
            let ids = json::ids(&case["ids"]);
            runner.reset();
            let got = runner.step(&ids, &[ids.len() - 1]).remove(0);
            let want = json::floats(&opinion["last_logits"]);
            assert_eq!(got.len(), want.len());
            let mean = want.iter().sum::<f64>() / want.len() as f64;
            let std = (want.iter().map(|w| (w - mean).powi(2)).sum::<f64>() / want.len() as f64).sqrt();
            let worst = got.iter().zip(&want).map(|(g, w)| (f64::from(*g) - w).abs()).fold(0.0, f64::max);
            assert!(worst <= bound * std, "{name} case {c}: max |d| {worst:e} of std {std}");
        }
    }
}

/// Models that are not in the repository, in folders as `tools/oracle/make_tiny.py` writes them.
#[test]
#[ignore = "reads the folders of models in the folder YIRAGE_TINY_MODELS"]
fn models_of_a_folder_agree_with_the_reference() {
    let root = std::env::var_os("YIRAGE_TINY_MODELS").expect("YIRAGE_TINY_MODELS");
    let mut folders: Vec<_> = std::fs::read_dir(root).unwrap().map(|e| e.unwrap().path()).collect();
    folders.sort();
    let failures: Vec<String> = folders
        .iter()
        .filter_map(|f| check_golden(f).err().map(|e| format!("{}: {e}", f.file_name().unwrap().display())))
        .collect();
    assert!(failures.is_empty(), "{} of {} fail:\n{}", failures.len(), folders.len(), failures.join("\n"));
}
