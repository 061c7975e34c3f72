//! Models and prompts without the names of their options.

use crate::support::{TINY, yirage};

#[test]
fn the_model_may_stand_first() {
    let named = yirage(&["run", "--model", TINY, "--prompt-ids", "1,2", "-n", "4", "--json"]).json();
    let bare = yirage(&["run", TINY, "--prompt-ids", "1,2", "-n", "4", "--json"]).json();
    assert_eq!(bare["tokens"], named["tokens"]);
    assert_eq!(yirage(&["inspect", TINY, "--json"]).json()["architecture"], "llama");
    assert_eq!(yirage(&["logits", TINY, "--ids", "1"]).ran().code, 0);
    assert_eq!(yirage(&["perplexity", TINY, "--ids", "1,2,3"]).ran().code, 0);
    let bench = yirage(&["bench", TINY, "-p", "4", "-n", "0", "-r", "1", "--json"]).json();
    assert_eq!(bench["n_prompt"], 4);
    for command in ["chat", "tokenize"] {
        let ran = yirage(&[command, TINY, "some text"][..if command == "chat" { 2 } else { 3 }]).ran();
        assert!(ran.code == 1 && ran.err.contains("no tokenizer"), "{command}: {}", ran.err);
    }
}

#[test]
fn the_prompt_stands_behind_the_model() {
    let ran = yirage(&["run", TINY, "Why?"]).ran();
    assert!(ran.code == 1 && ran.err.contains("no tokenizer"), "{}", ran.err);
    let ran = yirage(&["run", TINY, "Why?", "--prompt-ids", "1"]).ran();
    assert!(ran.code == 2 && ran.err.contains("exclude each other"), "{}", ran.err);
}

#[test]
fn two_values_must_be_the_same() {
    let ran = yirage(&["inspect", TINY, "--model", "other.gguf"]).ran();
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(ran.err.contains("other.gguf") && ran.err.contains(TINY), "{}", ran.err);
    assert_eq!(yirage(&["inspect", TINY, "--model", TINY]).ran().code, 0);
}
