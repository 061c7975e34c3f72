//! Tokenizer files whose patterns, tokens or replacements make work that grows with the square of the text, or worse:
//! each ends soon, in the right tokens or in a typed error.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use yirage_model::tokenizer::{EncodeOptions, Tokenizer, TokenizerError};

/// Far above what the budget allows, far below what these took without it.
const DEADLINE: Duration = Duration::from_secs(60);
const PLAIN: EncodeOptions = EncodeOptions { add_special: false, parse_special: true };

/// A character vocabulary of `a`, `b`, space and newline, with components of `parts`.
fn file(parts: Value) -> Tokenizer {
    let mut file = json!({
        "version": "1.0", "added_tokens": [], "normalizer": null, "pre_tokenizer": null, "post_processor": null,
        "decoder": null,
        "model": {"type": "BPE", "unk_token": "?", "fuse_unk": false, "merges": [],
            "vocab": {"a": 0, "b": 1, " ": 2, "\n": 3, "?": 4}}
    });
    file.as_object_mut().unwrap().extend(parts.as_object().unwrap().clone());
    Tokenizer::from_json(&serde_json::to_vec(&file).unwrap(), "hostile").unwrap()
}

fn encode(tokenizer: &Tokenizer, text: &str) -> Result<Vec<u32>, TokenizerError> {
    let begun = Instant::now();
    let ids = tokenizer.encode(text, PLAIN);
    assert!(begun.elapsed() < DEADLINE, "{:?}", begun.elapsed());
    ids
}

fn split(pattern: &str) -> Tokenizer {
    let pattern = json!({"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": false});
    file(json!({ "pre_tokenizer": pattern }))
}

#[test]
fn quadratic_patterns_end_soon() {
    let text = "a".repeat(1 << 19);
    for pattern in [
        // An automaton that reads to the end for each match, alone and in front of the usual tail.
        r"a*b|a",
        r"a*b|a|\s+(?!\S)|\s+",
        // Look-ahead to the end, nested repetition, back references.
        r"a(?=a*)(?!b)",
        r"(?:a+)+(?=b)|a",
        r"(a|a)*(?=b)c|a",
        r"(a*)*\1b|a",
        r"(?=(a+))\1(?=b)|a",
        r"(?<=a)a*(?=b)|a",
    ] {
        match encode(&split(pattern), &text) {
            Err(TokenizerError::Search { .. }) => {}
            Ok(ids) => assert_eq!(ids.len(), text.len(), "{pattern}"),
            Err(other) => panic!("{pattern}: {other}"),
        }
    }
}

/// Every space is a match of the tail, and the head has none ahead: it is searched once, and not once per space.
#[test]
fn a_head_without_matches_is_searched_once() {
    let text = "a ".repeat(1 << 18);
    let ids = encode(&split(r"\p{N}+b|\s+(?!\S)|\s+"), &text).unwrap();
    assert_eq!(ids.len(), text.len());
}

#[test]
fn long_added_tokens_do_not_make_a_search_quadratic() {
    let added = |id: u32, content: String, lstrip: bool| {
        json!({"id": id, "content": content, "special": false, "normalized": false, "single_word": false,
               "lstrip": lstrip, "rstrip": false})
    };
    let long = format!("{}b", "a".repeat(16_000));
    let tokens = file(json!({"added_tokens": [added(0, "a".into(), false), added(5, long, false)]}));
    match encode(&tokens, &"a".repeat(1 << 19)) {
        Err(TokenizerError::Search { .. }) => {}
        found => assert_eq!(found.unwrap(), vec![0; 1 << 19]),
    }
    let spaces = file(json!({"added_tokens": [added(2, " ".into(), true)]}));
    assert_eq!(encode(&spaces, &" ".repeat(1 << 19)).unwrap().len(), 1 << 19);
}

#[test]
fn replacements_cannot_make_a_text_huge() {
    let replace = json!({"type": "Replace", "pattern": {"String": "a"}, "content": "a".repeat(10_000)});
    for count in [1, 8] {
        let chain = json!({"type": "Sequence", "normalizers": vec![replace.clone(); count]});
        let error = encode(&file(json!({ "normalizer": chain })), &"a".repeat(1 << 16)).unwrap_err();
        assert!(matches!(error, TokenizerError::TextTooLong { .. }), "{error}");
    }
}

#[test]
fn one_long_word_merges_in_time() {
    let merges: Vec<[String; 2]> = (0..12).map(|i| ["a".repeat(1 << i), "a".repeat(1 << i)]).collect();
    let mut vocab = json!({"b": 1, "?": 2});
    (0..13usize).for_each(|i| vocab["a".repeat(1 << i)] = json!(10 + i));
    let model = json!({"type": "BPE", "unk_token": "?", "fuse_unk": false, "merges": merges, "vocab": vocab});
    assert_eq!(encode(&file(json!({ "model": model })), &"a".repeat(1 << 19)).unwrap(), vec![22; 1 << 7]);
}
