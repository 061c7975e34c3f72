//! WordPiece and BERT's rules of cutting text: golden ids, and every character as the reference library sees it.

use crate::tokenizer_support::from_json;
use serde_json::{Map, Value, json};
use yirage_model::tokenizer::{EncodeOptions, Tokenizer, TokenizerError};
use yirage_testkit::encoders;
use yirage_testkit::json::{self, ids};
use yirage_testkit::rng::Rng;

fn tiny() -> Tokenizer {
    from_json(&encoders::model("embed").join("tokenizer.json"))
}

/// The tiny encoder's file with some of its values replaced.
fn changed(changes: &[(&str, Value)]) -> Result<Tokenizer, TokenizerError> {
    let mut file = json::read(&encoders::model("embed").join("tokenizer.json"));
    for (path, value) in changes {
        *file.pointer_mut(path).unwrap() = value.clone();
    }
    Tokenizer::from_json(&serde_json::to_vec(&file).unwrap(), "changed")
}

#[test]
fn texts_are_framed_as_by_the_reference_library() {
    let (tokenizer, golden) = (tiny(), encoders::golden("embed"));
    for case in golden["texts"].as_array().unwrap() {
        let text = case["text"].as_str().unwrap();
        let found = tokenizer.frame(text, None).unwrap();
        assert_eq!(found.ids, ids(&case["ids"]), "{text:?}");
        assert_eq!(found.ids, tokenizer.encode(text, tokenizer.default_options()).unwrap());
        assert_eq!((found.types.len(), found.cut), (found.ids.len(), 0));
    }
    for case in golden["pairs"].as_array().unwrap() {
        let (first, second) = (case["first"].as_str().unwrap(), case["second"].as_str().unwrap());
        let found = tokenizer.frame_pair(first, second, None).unwrap();
        assert_eq!((found.ids, found.types), (ids(&case["ids"]), ids(&case["types"])), "{first:?}, {second:?}");
    }
}

#[test]
fn a_limit_leaves_out_ends_and_says_how_much() {
    let tokenizer = tiny();
    let whole = tokenizer.frame("the cat sat on the mat", None).unwrap();
    let cut = tokenizer.frame("the cat sat on the mat", Some(5)).unwrap();
    assert_eq!((cut.ids.len(), cut.types.len(), cut.cut), (5, 5, 3));
    assert_eq!((cut.ids[..4].to_vec(), cut.ids.last()), (whole.ids[..4].to_vec(), whole.ids.last()));
    let pair = tokenizer.frame_pair("the cat", "sat on the big mat", Some(7)).unwrap();
    assert_eq!((pair.ids.len(), pair.types, pair.cut), (7, vec![0, 0, 0, 0, 1, 1, 1], 3));
}

#[test]
fn decoding_joins_pieces_and_words() {
    let tokenizer = tiny();
    let ids =
        tokenizer.encode("The big-house dogs, Running!", EncodeOptions { add_special: false, parse_special: true });
    assert_eq!(tokenizer.decode(&ids.unwrap(), false), "the big - house dogs, running!");
}

/// Letters of young scripts that are decomposed by current tables of Unicode and not by those of the reference library.
const NEWER: [u32; 21] = [
    0x105C9, 0x105E4, 0x11383, 0x11385, 0x1138E, 0x11391, 0x113C5, 0x113C7, 0x113C8, 0x11938, 0x16121, 0x16122,
    0x16123, 0x16124, 0x16125, 0x16126, 0x16127, 0x16128, 0x16D68, 0x16D69, 0x16D6A,
];

/// Every character between two letters, sixty-four of them a text, in a vocabulary that tells them apart.
#[test]
fn every_character_is_seen_as_the_reference_library_sees_it() {
    let all: Vec<char> = (0..=0x10_FFFFu32).filter_map(char::from_u32).collect();
    let mut wrong = Vec::new();
    for chars in all.chunks(1 << 14).filter(|chars| u32::from(chars[0]) < 0x3_4000 || u32::from(chars[0]) >= 0xE_0000) {
        let mut vocab = Map::new();
        for token in ["[UNK]".to_owned(), "x".into(), "##x".into()].into_iter().chain(chars.iter().flat_map(|&c| {
            let lowered: String = c.to_lowercase().collect();
            [c.to_string(), format!("##{c}"), format!("##{lowered}")]
        })) {
            let next = vocab.len();
            vocab.entry(token).or_insert(json!(next));
        }
        let mut file = json::read(&encoders::model("embed").join("tokenizer.json"));
        file["added_tokens"] = json!([]);
        file["post_processor"] = Value::Null;
        file["model"]["vocab"] = vocab.into();
        let bytes = serde_json::to_vec(&file).unwrap();
        let ours = Tokenizer::from_json(&bytes, "every character").unwrap();
        let oracle = tokenizers::Tokenizer::from_bytes(&bytes).unwrap();
        for few in chars.chunks(64) {
            let text: String = few.iter().flat_map(|&c| ['x', c, 'x', ' ']).collect();
            let wanted = oracle.encode_fast(text.as_str(), false).unwrap().get_ids().to_vec();
            let found = ours.encode(&text, ours.default_options()).unwrap();
            if found != wanted {
                wrong.extend(few.iter().filter(|&&c| differs(&ours, &oracle, c)).map(|&c| u32::from(c)));
            }
        }
    }
    assert_eq!(wrong, NEWER, "{wrong:x?}");
}

fn differs(ours: &Tokenizer, oracle: &tokenizers::Tokenizer, c: char) -> bool {
    let text = format!("x{c}x");
    let wanted = oracle.encode_fast(text.as_str(), false).unwrap().get_ids().to_vec();
    ours.encode(&text, ours.default_options()).unwrap() != wanted
}

#[test]
fn other_settings_do_as_the_reference_library_does() {
    let texts = ["Caf\u{e9} NAI\u{308}VE", "\u{4eca}\u{5929}the", "a\u{200d}b\u{7}c\td", "\u{130}I"];
    for (key, value) in [
        ("clean_text", json!(false)),
        ("handle_chinese_chars", json!(false)),
        ("strip_accents", json!(true)),
        ("strip_accents", json!(false)),
        ("lowercase", json!(false)),
    ] {
        let mut file = json::read(&encoders::model("embed").join("tokenizer.json"));
        file["normalizer"][key] = value.clone();
        let bytes = serde_json::to_vec(&file).unwrap();
        let (ours, oracle) =
            (Tokenizer::from_json(&bytes, key).unwrap(), tokenizers::Tokenizer::from_bytes(&bytes).unwrap());
        for text in texts {
            let wanted = oracle.encode_fast(text, true).unwrap().get_ids().to_vec();
            assert_eq!(ours.encode(text, ours.default_options()).unwrap(), wanted, "{key} {value}: {text:?}");
        }
    }
}

#[test]
fn older_post_processors_frame_pairs_too() {
    let bert = json!({"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]});
    let roberta = json!({"type": "RobertaProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2], "trim_offsets": true,
        "add_prefix_space": false});
    for (processor, types) in [(bert, vec![0, 0, 0, 1, 1]), (roberta, vec![0; 6])] {
        let kind = processor["type"].as_str().unwrap();
        let mut file = json::read(&encoders::model("embed").join("tokenizer.json"));
        file["post_processor"] = processor.clone();
        let bytes = serde_json::to_vec(&file).unwrap();
        let (ours, oracle) =
            (Tokenizer::from_json(&bytes, kind).unwrap(), tokenizers::Tokenizer::from_bytes(&bytes).unwrap());
        let (wanted, found) =
            (oracle.encode(("cat", "dog"), true).unwrap(), ours.frame_pair("cat", "dog", None).unwrap());
        assert_eq!((found.ids, &found.types), (wanted.get_ids().to_vec(), &wanted.get_type_ids().to_vec()), "{kind}");
        assert_eq!(found.types, types, "{kind}");
    }
    let single = changed(&[("/post_processor/pair", Value::Null)]).unwrap();
    assert!(matches!(single.frame_pair("a", "b", None), Err(TokenizerError::NoPair { .. })));
}

#[test]
fn files_that_lie_are_errors_that_name_the_field() {
    for (path, value, named) in [
        ("/model/unk_token", json!("[NONE]"), "model.unk_token"),
        ("/model/unk_token", Value::Null, "model.unk_token"),
        ("/model/continuing_subword_prefix", Value::Null, "model.continuing_subword_prefix"),
        ("/model/max_input_chars_per_word", Value::Null, "model.max_input_chars_per_word"),
        ("/model/max_input_chars_per_word", json!(1_000_000), "limit of 1000"),
        ("/model/max_input_chars_per_word", json!(-1), "not a tokenizer.json"),
        ("/model/vocab", Value::Null, "tokenizer"),
        ("/decoder/prefix", json!(1), "WordPiece.prefix"),
        ("/post_processor/pair/1/Sequence/id", json!("C"), "post_processor.pair"),
        ("/post_processor/pair/1/Sequence/type_id", json!(-1), "post_processor.pair"),
        ("/post_processor/pair/0/SpecialToken/id", json!("[NONE]"), "post_processor.pair"),
        ("/post_processor/pair", json!({}), "post_processor.pair"),
    ] {
        let error = changed(&[(path, value)]).unwrap_err().to_string();
        assert!(error.contains(named), "{path}: {error}");
    }
}

#[test]
fn mutated_files_are_errors_or_tokenizers_that_encode() {
    let bytes = std::fs::read(encoders::model("embed").join("tokenizer.json")).unwrap();
    let mut rng = Rng::new(11);
    let mut loaded = 0;
    for _ in 0..2000 {
        let mut bytes = bytes.clone();
        for _ in 0..1 + rng.index(3) {
            let at = rng.index(bytes.len());
            match rng.index(3) {
                0 => bytes[at] = rng.index(256) as u8,
                1 => drop(bytes.drain(at..(at + 1 + rng.index(40)).min(bytes.len()))),
                _ => bytes.truncate(at.max(1)),
            }
        }
        if let Ok(tokenizer) = Tokenizer::from_json(&bytes, "mutated") {
            loaded += 1;
            for text in ["The cats, [SEP] caf\u{e9} \u{4eca}\u{1f642}", &"a".repeat(3000)] {
                drop(tokenizer.frame(text, Some(7)));
                drop(tokenizer.frame_pair(text, text, Some(7)));
            }
        }
    }
    assert!(loaded > 50, "only {loaded} loaded");
}
