//! The exact JSON shapes, with the values of the golden file.

use crate::support::{bedtime, joined, keys, path, yirage};
use serde_json::{Value, json};
use yirage_testkit::bedtime::{golden, safetensors};
use yirage_testkit::json::floats;

const LOGIT: f64 = 2e-3;

#[test]
fn run_gives_the_golden_tokens_and_text() {
    let (model, golden) = (bedtime(), golden());
    for case in golden["cases"].as_array().unwrap() {
        let n = case["greedy_ids"].as_array().unwrap().len().to_string();
        let common =
            ["run", "--model", &model, "--max-tokens", &n, "--temperature", "0", "--precision", "exact", "--json"];
        let ids = joined(&case["prompt_ids"]);
        let mut runs = vec![yirage(&[&common[..], &["--prompt-ids", &ids]].concat()).json()];
        if let Some(prompt) = case["prompt"].as_str() {
            runs.push(yirage(&[&common[..], &["--prompt", prompt]].concat()).json());
        }
        for value in runs {
            let shape = ["model", "prompt_tokens", "tokens", "text", "finish_reason", "timings", "executors"];
            assert_eq!(keys(&value), shape);
            assert_eq!(value["prompt_tokens"], case["prompt_ids"], "{}", case["id"]);
            assert_eq!(value["tokens"], case["greedy_ids"], "{}", case["id"]);
            assert_eq!(value["text"], case["greedy_text"], "{}", case["id"]);
            assert_eq!(value["finish_reason"], "length");
            let timings =
                ["load_ms", "prefill_ms", "prefill_tokens_per_second", "decode_ms", "decode_tokens_per_second"];
            let guesses = ["drafted", "accepted", "verified_steps", "speculation_gain"];
            assert_eq!(keys(&value["timings"]), [&timings[..], &guesses].concat());
            assert!(timings.iter().all(|t| value["timings"][t].as_f64().unwrap() > 0.0), "{value}");
        }
    }
}

#[test]
fn text_streams_to_standard_output_alone() {
    let (model, golden) = (bedtime(), golden());
    let case = &golden["cases"][0];
    let (prompt, text) = (case["prompt"].as_str().unwrap(), case["greedy_text"].as_str().unwrap());
    let arguments = ["run", "-m", &model, "-p", prompt, "-n", "16", "--temperature", "0", "--precision", "exact"];
    let ran = yirage(&arguments).ran();
    assert_eq!((ran.code, ran.out), (0, format!("{text}\n")));
    assert!(ran.err.contains("16 tokens"), "{}", ran.err);
}

#[test]
fn a_folder_without_tokenizer_takes_ids() {
    let (folder, golden) = (path(&safetensors()), golden());
    let case = &golden["cases"][0];
    let ids = joined(&case["prompt_ids"]);
    let common = ["run", "--model", &folder, "--max-tokens", "16", "--temperature", "0", "--precision", "exact"];
    let value = yirage(&[&common[..], &["--prompt-ids", &ids, "--json"]].concat()).json();
    assert_eq!((&value["tokens"], &value["text"]), (&case["greedy_ids"], &Value::Null));
    let plain = yirage(&[&common[..], &["--prompt-ids", &ids]].concat()).ran();
    assert_eq!(plain.out, format!("{}\n", joined(&case["greedy_ids"])));
    let text = yirage(&[&common[..], &["--prompt", "x"]].concat()).ran();
    assert!(text.code == 1 && text.err.contains("--prompt-ids"), "{}", text.err);
}

#[test]
fn logits_are_golden() {
    let (model, golden) = (bedtime(), golden());
    let case = &golden["cases"][0];
    let ids = joined(&case["prompt_ids"]);
    let common = ["logits", "--model", &model, "--ids", &ids, "--precision", "exact", "--json"];
    let value = yirage(&common).json();
    let (step, position) = (&case["steps"][0], &value["positions"][0]);
    assert_eq!(keys(&value), ["positions"]);
    assert_eq!(keys(position), ["pos", "argmax", "logsumexp", "top"]);
    assert_eq!(value["positions"].as_array().unwrap().len(), 1);
    assert_eq!((&position["pos"], &position["argmax"]), (&step["pos"], &step["chosen"]));
    let near = |a: &Value, b: &Value| (a.as_f64().unwrap() - b.as_f64().unwrap()).abs() < LOGIT;
    assert!(near(&position["logsumexp"], &step["logsumexp"]));
    for (i, (pair, id)) in
        position["top"].as_array().unwrap().iter().zip(step["top10_ids"].as_array().unwrap()).enumerate()
    {
        assert_eq!(&pair[0], id, "place {i}");
        assert!(near(&pair[1], &step["top10_logits"][i]), "place {i}");
    }
    let all = yirage(&[&common[..], &["--positions", "all", "--all"]].concat()).json();
    let positions = all["positions"].as_array().unwrap();
    assert_eq!(positions.len(), case["prompt_ids"].as_array().unwrap().len());
    assert!(positions.iter().enumerate().all(|(i, p)| p["pos"] == i && p["top"].as_array().unwrap().len() == 512));
    // One computation, whatever is shown of it.
    assert_eq!(positions.last().unwrap()["logsumexp"], position["logsumexp"]);
}

#[test]
fn perplexity_is_golden_from_ids_and_text() {
    let (model, golden) = (bedtime(), golden());
    let passage = &golden["nll"];
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("passage.txt");
    std::fs::write(&file, passage["text"].as_str().unwrap()).unwrap();
    let (ids, file) = (joined(&passage["ids"]), file.to_str().unwrap());
    let common = ["perplexity", "--model", &model, "--precision", "exact", "--json"];
    let by_ids = yirage(&[&common[..], &["--ids", &ids]].concat()).json();
    let by_text = yirage(&[&common[..], &["--file", file]].concat()).json();
    assert_eq!(by_ids, by_text);
    assert_eq!(keys(&by_ids), ["tokens", "mean_nll", "ppl", "nll"]);
    let (nll, want) = (floats(&by_ids["nll"]), floats(&passage["logprobs_of_ids_1_to_end"]));
    assert_eq!((by_ids["tokens"].as_u64().unwrap() as usize, nll.len()), (want.len() + 1, want.len()));
    assert!(nll.iter().zip(&want).all(|(a, b)| (a + b).abs() < LOGIT));
    let mean = by_ids["mean_nll"].as_f64().unwrap();
    assert!((mean - passage["mean_nll"].as_f64().unwrap()).abs() < 1e-4);
    assert!((mean.exp() - by_ids["ppl"].as_f64().unwrap()).abs() < 1e-9);
}

#[test]
fn a_long_text_is_scored_in_windows_and_says_so() {
    let (model, golden) = (bedtime(), golden());
    let ids = joined(&golden["nll"]["ids"]);
    let run = |more: &[&str]| {
        yirage(&[&["perplexity", "--model", &model, "--precision", "exact", "--ids", &ids, "--json"], more].concat())
            .ran()
    };
    let (whole, cut) = (run(&[]), run(&["--context", "64"]));
    assert!(cut.err.contains("windows that overlap"), "{}", cut.err);
    let (whole, cut) = (whole.json(), cut.json());
    let (a, b) = (floats(&whole["nll"]), floats(&cut["nll"]));
    assert_eq!(a.len(), b.len());
    assert_eq!(a[..63], b[..63], "the first window sees what the whole text sees");
    assert_ne!(a, b);
}

#[test]
fn tokenize_goes_there_and_back() {
    let (model, golden) = (bedtime(), golden());
    let case = &golden["cases"][0];
    let text = case["prompt"].as_str().unwrap();
    let common = ["tokenize", "--model", &model, "--json"];
    let value = yirage(&[&common[..], &["--text", text]].concat()).json();
    assert_eq!(keys(&value), ["ids", "pieces"]);
    assert_eq!(value["ids"], case["prompt_ids"]);
    assert_eq!(value["pieces"].as_array().unwrap()[..2], [json!("<s>"), json!("▁I")]);
    let back = yirage(&[&common[..], &["--decode", "--ids", &joined(&value["ids"])]].concat()).json();
    assert_eq!(back["text"], text);
}

#[test]
fn tokenize_agrees_with_the_golden_texts() {
    let (model, golden) = (bedtime(), golden());
    for case in golden["texts"].as_array().unwrap() {
        let text = case["text"].as_str().unwrap();
        let value = yirage(&["tokenize", "--model", &model, "--text", text, "--no-special", "--json"]).json();
        assert_eq!(value["ids"], case["ids"], "{text:?}");
    }
}
