//! `yirage embed` and `yirage rerank`.

use crate::support::{self, Ran, yirage};
use serde_json::Value;
use yirage_testkit::{encoders, json};

/// A text of more tokens than the tiny models take.
fn long() -> String {
    "the cat sat on the mat ".repeat(80)
}

fn run(command: &str, name: &str, more: &[&str]) -> Ran {
    let folder = encoders::model(name);
    yirage(&[&[command, folder.to_str().unwrap()], more].concat()).ran()
}

fn embed(more: &[&str]) -> Value {
    run("embed", "embed", &[more, &["--json"]].concat()).json()
}

fn rerank(more: &[&str]) -> Value {
    run("rerank", "score", &[more, &["--json"]].concat()).json()
}

fn check(found: &Value, wanted: &Value) {
    let (found, wanted) = (json::floats(found), json::floats(wanted));
    assert_eq!(found.len(), wanted.len());
    assert!(found.iter().zip(&wanted).all(|(a, b)| (a - b).abs() < 1e-5), "{found:?} {wanted:?}");
}

#[test]
fn vectors_of_several_texts_in_their_order() {
    let golden = encoders::golden("embed");
    let cases: Vec<&Value> = golden["cases"].as_array().unwrap().iter().collect();
    // An argument holds no zero byte.
    let cases: Vec<&Value> = cases.into_iter().filter(|c| !c["text"].as_str().unwrap().contains('\0')).collect();
    let arguments: Vec<&str> = cases.iter().flat_map(|c| ["--text", c["text"].as_str().unwrap()]).collect();
    let answer = embed(&arguments);
    assert_eq!(answer["tokens"].as_array().unwrap().len(), cases.len());
    assert!(answer.get("left_out").is_none());
    cases.iter().enumerate().for_each(|(i, case)| check(&answer["embeddings"][i], &case["mean"]));
}

#[test]
fn vectors_are_a_line_each_without_json() {
    let said = run("embed", "embed", &["--text", "the cat", "--text", "the dog"]).out;
    let rows: Vec<Vec<f32>> = said.lines().map(|line| line.split(' ').map(|x| x.parse().unwrap()).collect()).collect();
    let json = embed(&["--text", "the cat", "--text", "the dog"]);
    assert_eq!(rows.len(), 2);
    rows.iter().enumerate().for_each(|(i, row)| check(&json["embeddings"][i], &row.clone().into()));
}

#[test]
fn a_variant_of_the_kernels_is_chosen_refused_and_changes_no_vector() {
    let texts = ["--text", "the cat sat on the mat", "--log-level", "debug"];
    let with = |choices: &str| run("embed", "embed", &[&texts[..], &["--variant", choices]].concat());
    let (forced, usual) = (with("piece=32K,share=static"), run("embed", "embed", &texts));
    assert_eq!((forced.code, &forced.out), (0, &usual.out), "{}", forced.err);
    assert!(forced.err.contains("piece=32K,share=static (it was asked for)"), "{}", forced.err);
    // Caches hold all of the small model's weights, which tell nothing of memory.
    assert!(usual.err.contains("(the device's own for this processor)"), "{}", usual.err);
    let folder = encoders::model("embed");
    let told =
        yirage(&["doctor", "--tune", "--model", folder.to_str().unwrap(), "--variant", "piece=32K", "--json"]).json();
    assert_eq!(told["model"]["variant"]["why"], "it was asked for", "{told}");
    assert!(told["model"]["weight_bytes"].as_u64() > Some(0) && told["model"]["tests"].as_array().unwrap().is_empty());
    let wrong = with("shore=static");
    assert!(wrong.code == 2 && wrong.err.contains("`shore` is none of"), "{}", wrong.err);
}

#[test]
fn scores_come_in_the_order_of_texts_and_the_best_is_shown_first() {
    let golden = encoders::golden("score");
    for case in golden["cases"].as_array().unwrap() {
        let (first, second) = (case["first"].as_str().unwrap(), case["second"].as_str().unwrap());
        check(&rerank(&["--query", first, "--text", second])["scores"], &case["scores"]);
    }
    let three = ["--query", "the cat", "--text", "a dog", "--text", "the mat", "--text", "question"];
    let scores = json::floats(&rerank(&three)["scores"]);
    let said = run("rerank", "score", &three).out;
    let shown: Vec<f64> = said.lines().map(|line| line.trim().split(' ').next().unwrap().parse().unwrap()).collect();
    assert!(scores.len() == 3 && shown.is_sorted_by(|a, b| a >= b), "{said}");
}

#[test]
fn what_cannot_be_is_said_with_its_exit_code() {
    let refused = |ran: Ran, code: i32, named: &str| {
        assert_eq!(ran.code, code, "{}", ran.err);
        assert!(ran.err.contains(named) && ran.out.is_empty(), "{}", ran.err);
    };
    refused(run("embed", "embed", &[]), 2, "--text");
    refused(run("rerank", "score", &["--text", "a"]), 2, "--query");
    refused(run("embed", "score", &["--text", "a"]), 3, "yirage rerank");
    refused(run("rerank", "embed", &["--query", "a", "--text", "b"]), 3, "yirage embed");
    refused(run("run", "embed", &["--prompt", "a"]), 3, "yirage embed");
    refused(
        run("embed", "embed", &["--text", "a", "--text", &long()]),
        1,
        "input 1 has 482 tokens, the model takes 320",
    );
    let tiny = yirage(&["embed", support::TINY, "--text", "a"]).ran();
    refused(tiny, 3, "yirage run");
    let twice = yirage(&["tokenize", encoders::model("embed").to_str().unwrap(), "--text", "a", "--text", "b"]).ran();
    refused(twice, 2, "given 2 times");
}

#[test]
fn word_pieces_are_turned_into_ids_and_back() {
    let folder = encoders::model("embed");
    let model = folder.to_str().unwrap();
    let there = yirage(&["tokenize", model, "--text", "The dogs!", "--json"]).json();
    assert_eq!(there["pieces"], serde_json::json!(["[CLS]", "the", "dog", "##s", "!", "[SEP]"]));
    let ids: Vec<String> = json::ids(&there["ids"]).iter().map(u32::to_string).collect();
    let back = yirage(&["tokenize", model, "--decode", "--ids", &ids.join(","), "--json"]).json();
    assert_eq!(back["text"], "the dogs!");
}

pub(crate) fn query() {
    let scores = |query| rerank(&["--query", query, "--text", "the dog"])["scores"].clone();
    assert_ne!(scores("the cat"), scores("the mat"));
}

/// Vectors of a decoder that was made for them are those of sentence-transformers, with its prompts and without.
#[test]
fn decoders_give_the_vectors_and_scores_of_their_makers() {
    for name in ["qwen3-embedding", "mistral-embedding"] {
        let golden = encoders::golden(name);
        for case in golden["cases"].as_array().unwrap().iter().take(4) {
            let prompt = case["prompt"].as_str().map(|name| ["--prompt-name", name]);
            let text = ["--json", "--text", case["text"].as_str().unwrap(), "--precision", "exact"];
            let said = run("embed", name, &[&text[..], prompt.as_ref().map_or(&[], |p| &p[..])].concat()).json();
            check(&said["embeddings"][0], &case["vector"]);
            assert_eq!(said["tokens"][0], case["ids"].as_array().unwrap().len());
        }
    }
    for name in ["qwen3-reranker", "qwen3-ranking-head"] {
        let golden = encoders::golden(name);
        for case in golden["cases"].as_array().unwrap().iter().take(4) {
            let of = |key: &str| case[key].as_str().unwrap();
            let pair = ["--json", "--query", of("query"), "--text", of("text"), "--precision", "exact"];
            let instruction = case["instruction"].as_str().map(|text| ["--instruction", text]);
            let said = run("rerank", name, &[&pair[..], instruction.as_ref().map_or(&[], |i| &i[..])].concat()).json();
            check(&said["scores"], &serde_json::json!([case["score"]]));
        }
    }
}

pub(crate) fn instruction() {
    let scores = |more: &[&str]| {
        let pair = ["--json", "--query", "the cat", "--text", "the dog"];
        run("rerank", "qwen3-reranker", &[&pair[..], more].concat()).json()["scores"].clone()
    };
    assert_ne!(scores(&["--instruction", "Is it an animal?"]), scores(&[]));
    let refused = run("rerank", "score", &["--query", "a", "--text", "b", "--instruction", "c"]);
    assert!(refused.code == 1 && refused.err.contains("leave the instruction out"), "{} {}", refused.code, refused.err);
}

pub(crate) fn prompt_name() {
    let vector = |more: &[&str]| {
        run("embed", "qwen3-embedding", &[&["--json", "--text", "the cat"], more].concat()).json()["embeddings"].clone()
    };
    assert_ne!(vector(&["--prompt-name", "query"]), vector(&[]));
    let refused = run("embed", "qwen3-embedding", &["--text", "a", "--prompt-name", "passage"]);
    assert!(refused.code != 0 && refused.err.contains("it has: document, query"), "{}", refused.err);
}

pub(crate) fn pooling() {
    let of = |pooling| embed(&["--text", "the cat", "--pooling", pooling])["embeddings"].clone();
    assert!(of("mean") != of("cls") && of("cls") != of("last"));
    assert_eq!(of("mean"), embed(&["--text", "the cat"])["embeddings"]);
}

pub(crate) fn normalize() {
    let length = |flag| {
        let answer = embed(&["--text", "the cat", flag]);
        json::floats(&answer["embeddings"][0]).iter().map(|x| x * x).sum::<f64>()
    };
    assert!((length("--normalize") - 1.0).abs() < 1e-6 && (length("--no-normalize") - 1.0).abs() > 1e-3);
}

pub(crate) fn truncate() {
    let ran = run("embed", "embed", &["--truncate", "--json", "--text", "the", "--text", &long()]);
    let answer = ran.json();
    assert_eq!(answer["tokens"], serde_json::json!([3, 320]));
    assert_eq!(answer["left_out"], serde_json::json!([0, 162]));
    assert!(ran.err.contains("text 1: 162 tokens at its end are left out, the model takes 320"), "{}", ran.err);
}
