//! Conversations over a pipe.

use crate::support::{bedtime, yirage};
use crate::template::templated;
use serde_json::Value;

const GREEDY: &[&str] = &["--temperature", "0", "--max-tokens", "12", "--precision", "exact", "--quiet", "--json"];

fn replies(model: &str, input: &str) -> Vec<Value> {
    let ran = yirage(&[&["chat", "--model", model], GREEDY].concat()).input(input).ran();
    assert_eq!(ran.code, 0, "{}", ran.err);
    ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn each_turn_sees_the_ones_before() {
    let (_folder, model) = templated();
    let replies = replies(&model, "Hi\nAnd then?\n/clear\nHi\n/exit\nnever read\n");
    assert_eq!(replies.len(), 3);
    let length = |v: &Value| v["prompt_tokens"].as_array().unwrap().len();
    assert!(length(&replies[1]) > length(&replies[0]) + 12);
    assert_eq!(replies[0]["tokens"], replies[2]["tokens"], "a cleared conversation begins anew");
    assert!(replies[1]["cached_tokens"].as_u64().is_some());
}

#[test]
fn a_conversation_can_be_saved_and_continued() {
    let (folder, model) = templated();
    let file = folder.path().join("talk.json");
    let file = file.to_str().unwrap();
    let first = replies(&model, &format!("/system Be brief.\nHi\n/save {file}\nGo on\n"));
    let second = replies(&model, &format!("/load {file}\nGo on\n"));
    assert_eq!(first[1]["prompt_tokens"], second[0]["prompt_tokens"]);
    assert_eq!(first[1]["tokens"], second[0]["tokens"]);
}

#[test]
fn mistakes_do_not_end_the_conversation() {
    let model = bedtime();
    let input = "/nope\n/load no/such.json\n/again\nOnce\n";
    let ran = yirage(&["chat", "--model", &model, "--max-tokens", "4"]).input(input).ran();
    assert_eq!(ran.code, 0);
    for part in ["/nope", "no/such.json", "nothing to answer again", "no chat template"] {
        assert!(ran.err.contains(part), "{part}: {}", ran.err);
    }
    assert!(!ran.out.trim().is_empty());
}

/// A script sees by the exit code that something is missing, also with `--quiet`; the other messages are answered.
#[test]
fn messages_without_an_answer_are_counted() {
    let model = bedtime();
    let arguments = ["chat", "--model", &model, "--max-tokens", "4", "--context", "16", "--quiet"];
    let long = "Once upon a time there was a little girl who lived in a big house with a red door";
    let ran = yirage(&arguments).input(&format!("Once\n/clear\n{long}\n/clear\nOnce\n")).ran();
    assert_eq!((ran.code, ran.out.lines().count()), (1, 2), "{}", ran.err);
    assert!(ran.err.contains("exceed the context of 16"), "{}", ran.err);
    assert!(ran.err.contains("1 of 3 messages had no answer"), "{}", ran.err);
    let ran = yirage(&[&arguments[..], &["--json"]].concat()).input(long).ran();
    let errors: Vec<Value> = ran.err.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((ran.code, errors.len()), (1, 2), "{}", ran.err);
}

#[test]
fn what_outgrows_the_context_is_left_out() {
    let model = bedtime();
    let arguments = ["chat", "--model", &model, "--max-tokens", "20", "--context", "64", "--ignore-eos"];
    let ran = yirage(&arguments).input("Once upon a time\nThen\nThen\nThen\nThen\n").ran();
    assert!(ran.code == 0 && ran.err.contains("left out"), "{}", ran.err);
    assert!(!ran.err.contains("error"), "{}", ran.err);
}
