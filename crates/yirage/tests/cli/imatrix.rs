//! `yirage imatrix`: its sums are those of transformers, the same whatever the steps, and `quantize` takes them.

use crate::support::{TINY, bedtime, path, yirage};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use yirage_model::gguf::{Gguf, GgufValue};
use yirage_testkit::bedtime::safetensors_with_tokenizer;
use yirage_testkit::tiny;

const TEXT: &str = "Once upon a time there was a little girl who lived by the sea. One day she found a green bottle.";

/// A file's tensors by name: dimensions, outermost first, and elements.
type Tensors = BTreeMap<String, (Vec<u64>, Vec<f32>)>;

/// What a file of importances holds.
struct Read {
    bytes: Vec<u8>,
    tensors: Tensors,
    chunks: u32,
    chunk_size: u32,
}

fn read(file: &Path) -> Read {
    let bytes = std::fs::read(file).unwrap();
    let gguf = Gguf::parse(&bytes, "importances").unwrap();
    let number = |key: &str| gguf.get(key).and_then(GgufValue::as_u32).unwrap();
    assert_eq!(gguf.get("general.type").and_then(GgufValue::as_str), Some("imatrix"));
    assert_eq!(gguf.get("imatrix.datasets").and_then(GgufValue::as_strings).unwrap().len(), 1);
    let elements = |range: std::ops::Range<u64>| {
        let data = &bytes[range.start as usize..range.end as usize];
        data.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect::<Vec<f32>>()
    };
    let tensors = gguf.tensors().iter().map(|t| (t.name.clone(), (t.shape.clone(), elements(t.range.clone()))));
    Read {
        tensors: tensors.collect(),
        chunks: number("imatrix.chunk_count"),
        chunk_size: number("imatrix.chunk_size"),
        bytes: bytes.clone(),
    }
}

/// The importances of a model by these arguments, and the report.
fn importances(model: &str, arguments: &[&str]) -> (Read, Value) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out.gguf");
    let report = yirage(&[&["imatrix", model, "--json", "-o", file.to_str().unwrap()], arguments].concat()).json();
    (read(&file), report)
}

/// The text in a file, in a folder that has to be kept.
fn text() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("text.txt");
    std::fs::write(&file, TEXT).unwrap();
    (folder, file)
}

#[test]
fn sums_are_those_of_transformers() {
    let golden: Value = serde_json::from_str(include_str!("../golden/imatrix.json")).unwrap();
    let ids: Vec<String> = golden["ids"].as_array().unwrap().iter().map(Value::to_string).collect();
    let folder = tempfile::tempdir().unwrap();
    for (name, tensors) in golden["models"].as_object().unwrap() {
        let stored = path(&tiny::model(name));
        let file = path(&folder.path().join(format!("{name}.gguf")));
        let converted = yirage(&["convert", &stored, "-o", &file, "--outtype", "f32"]).ran();
        assert_eq!(converted.code, 0, "{name}: {}", converted.err);
        let (read, report) = importances(&file, &["--ids", &ids.join(","), "--precision", "exact"]);
        assert_eq!((report["left_out"].as_array().unwrap().len(), read.chunks), (0, 1), "{name}");
        let tensors = tensors.as_object().unwrap();
        assert_eq!(read.tensors.len(), 2 * tensors.len(), "{name}: {:?}", read.tensors.keys());
        for (tensor, expected) in tensors {
            let (shape, counts) = &read.tensors[&format!("{tensor}.counts")];
            let number = |v: &Value| v.as_f64().unwrap() as f32;
            let expected_counts: Vec<f32> = expected["counts"].as_array().unwrap().iter().map(number).collect();
            assert_eq!((counts, shape), (&expected_counts, &vec![counts.len() as u64, 1]), "{name}: {tensor}");
            let rows = expected["sums"].as_array().unwrap();
            let expected: Vec<f32> = rows.iter().flat_map(|row| row.as_array().unwrap()).map(number).collect();
            let (shape, sums) = &read.tensors[&format!("{tensor}.in_sum2")];
            assert_eq!((shape[0] as usize, sums.len()), (counts.len(), expected.len()), "{name}: {tensor}");
            for (at, (got, expected)) in sums.iter().zip(&expected).enumerate() {
                let difference = (got - expected).abs();
                // A square doubles what activations of f32 differ by.
                assert!(difference <= 5e-5 * expected + 1e-7, "{name}: {tensor}, {at}: {got} instead of {expected}");
            }
        }
    }
}

#[test]
fn steps_and_threads_change_no_byte() {
    let (_kept, file) = text();
    let of = |more: &[&str]| importances(&bedtime(), &[&["--file", file.to_str().unwrap()], more].concat()).0.bytes;
    let bytes = of(&[]);
    for more in [["--chunk", "5"], ["-t", "1"], ["-t", "2"]] {
        assert!(bytes == of(&more), "{more:?}");
    }
}

#[test]
fn quantize_takes_them() {
    let (kept, text) = text();
    let model = kept.path().join("little-f32.gguf");
    std::fs::copy(bedtime(), &model).unwrap();
    let ran = yirage(&["imatrix", model.to_str().unwrap(), "--file", text.to_str().unwrap()]).ran();
    assert!(ran.code == 0 && ran.out.contains("little-f32-imatrix.gguf: "), "{}{}", ran.out, ran.err);
    assert!(ran.err.contains("fewer than a chunk"), "{}", ran.err);
    let file = path(&kept.path().join("little-f32-imatrix.gguf"));
    let report =
        yirage(&["quantize", model.to_str().unwrap(), "Q4_0", "--dry-run", "--json", "--imatrix", &file]).json();
    let tensors = report["tensors"].as_array().unwrap();
    let without = tensors.iter().filter(|t| t["from"] != t["to"] && t["importances"] == false);
    let without: Vec<&str> = without.map(|t| t["name"].as_str().unwrap()).collect();
    assert!(without.iter().all(|name| !name.starts_with("blk.")) && !tensors.is_empty(), "{without:?}");
}

#[test]
fn what_makes_no_sense_is_told() {
    let (kept, text) = text();
    let (text, there) = (path(&text), path(&kept.path().join("there.gguf")));
    std::fs::write(&there, "kept").unwrap();
    let empty = path(&kept.path().join("empty.txt"));
    std::fs::write(&empty, "").unwrap();
    for (arguments, code, expected) in [
        (vec!["imatrix"], 2, "expected a GGUF file, got none"),
        (vec!["imatrix", &bedtime()], 2, "--file TEXT"),
        (vec!["imatrix", &bedtime(), "./nowhere.txt"], 1, "nowhere.txt"),
        (vec!["imatrix", "./nowhere.gguf", "--file", &text], 1, "nowhere.gguf"),
        (vec!["imatrix", &path(&safetensors_with_tokenizer()), "--file", &text], 3, "yirage convert"),
        (vec!["imatrix", &bedtime(), "--file", &text, "-o", &there], 2, "--force"),
        (vec!["imatrix", &bedtime(), "--file", &text, "-o", "/proc/none/out.gguf"], 1, "/proc/none/out.gguf"),
        (vec!["imatrix", &bedtime(), "--file", &text, "-o", &path(kept.path()), "--force"], 1, "a regular file"),
        (vec!["imatrix", &bedtime(), "--file", &text, "-c", "0"], 2, "--context"),
        (vec!["imatrix", &bedtime(), "--file", &text, "--chunks", "0"], 2, "--chunks"),
        (vec!["imatrix", TINY, "--file", &text], 2, "--ids"),
        (vec!["imatrix", TINY, "--ids", "1,4000000000"], 1, "4000000000"),
    ] {
        let ran = yirage(&arguments).ran();
        assert!(ran.code == code && ran.err.contains(expected), "{arguments:?}: {} {}", ran.code, ran.err);
    }
    assert_eq!(std::fs::read_to_string(&there).unwrap(), "kept");
}

pub(crate) fn context() {
    let ids = ["--ids", "1,2,3,4,5,6,7,8,9"];
    let (all, halves) = (importances(TINY, &ids).0, importances(TINY, &[&ids[..], &["-c", "4"]].concat()).0);
    assert_eq!((all.chunks, halves.chunks, halves.chunk_size), (1, 2, 4));
    assert_eq!(halves.tensors["blk.0.attn_q.weight.counts"].1, [8.0]);
}

pub(crate) fn chunks() {
    let some = importances(TINY, &["--ids", "1,2,3,4,5,6,7,8,9", "-c", "2", "--chunks", "3"]).0;
    assert_eq!((some.chunks, &some.tensors["blk.0.attn_q.weight.counts"].1[..]), (3, &[6.0][..]));
}

pub(crate) fn process_output() {
    let untied = concat!(env!("CARGO_MANIFEST_DIR"), "/../yirage-model/tests/golden/tiny/gguf/qwen3/model.gguf");
    let of = |more: &[&str]| importances(untied, &[&["--ids", "1,2,3"], more].concat()).0.tensors;
    let name = "output.weight.in_sum2";
    assert!(!of(&[]).contains_key(name) && of(&["--process-output"]).contains_key(name));
    // A model whose logits are made by its embeddings has no such matrix.
    let folder = tempfile::tempdir().unwrap();
    let file = path(&folder.path().join("out.gguf"));
    let tied = yirage(&["imatrix", TINY, "--ids", "1,2", "--process-output", "-o", &file]).ran();
    assert!(tied.err.contains("token embedding"), "{}", tied.err);
}

pub(crate) fn output() {
    assert!(importances(TINY, &["--ids", "1,2"]).1["output"].as_str().unwrap().ends_with("out.gguf"));
}

pub(crate) fn forced() {
    let folder = tempfile::tempdir().unwrap();
    let file = path(&folder.path().join("out.gguf"));
    let code = |more: &[&str]| yirage(&[&["imatrix", TINY, "--ids", "1,2", "-o", &file], more].concat()).ran().code;
    assert_eq!((code(&[]), code(&[]), code(&["--force"])), (0, 2, 0));
}
