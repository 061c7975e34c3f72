//! Broken, truncated and mutated tokenizer files end in typed errors; what still loads never panics. The stream
//! decoder gives what whole decoding gives.

use crate::tokenizer_support::from_gguf;
use proptest::prelude::*;
use serde_json::{Value, json};
use yirage_model::tokenizer::{EncodeOptions, GgufVocab, Tokenizer, TokenizerError};
use yirage_testkit::bedtime;
use yirage_testkit::rng::Rng;

const ALL: EncodeOptions = EncodeOptions { add_special: true, parse_special: true };

/// A small byte-level vocabulary: 256 bytes, three merges, two added tokens.
fn small() -> Value {
    let alphabet = (0..=255u8).map(|b| {
        let c = match b {
            b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF => char::from(b),
            0..=0x20 => char::from_u32(0x100 + u32::from(b)).unwrap(),
            0x7F..=0xA0 => char::from_u32(0x121 + u32::from(b) - 0x7F).unwrap(),
            0xAD => '\u{143}',
        };
        c.to_string()
    });
    let mut vocab: serde_json::Map<String, Value> = alphabet.enumerate().map(|(id, c)| (c, json!(id))).collect();
    for (id, token) in ["he", "ll", "hell", "Ġhe"].iter().enumerate() {
        vocab.insert((*token).to_owned(), json!(256 + id));
    }
    json!({
        "version": "1.0",
        "added_tokens": [
            {"id": 260, "content": "<s>", "special": true, "normalized": false},
            {"id": 261, "content": "<tool>", "special": false, "normalized": false}
        ],
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
        "post_processor": {"type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [260], "tokens": ["<s>"]}}},
        "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "unk_token": null, "vocab": vocab, "merges": ["h e", ["l", "l"], "he ll", "Ġ he"]}
    })
}

fn load(value: &Value) -> Result<Tokenizer, TokenizerError> {
    Tokenizer::from_json(&serde_json::to_vec(value).unwrap(), "small")
}

#[test]
fn a_small_vocabulary_end_to_end() {
    let t = load(&small()).unwrap();
    let o = t.token_id("o").unwrap();
    assert_eq!(t.encode("hello<s> he", ALL).unwrap(), [260, 258, o, 260, 259]);
    let plain = EncodeOptions { add_special: false, parse_special: false };
    assert!(!t.encode("<s><tool>", plain).unwrap().contains(&260));
    assert!(t.encode("<s><tool>", plain).unwrap().contains(&261));
    assert_eq!(t.decode(&t.encode("Grüße <s>🙂", ALL).unwrap(), true), "Grüße 🙂");
    assert_eq!((t.bos(), t.is_special(260), t.is_special(261), t.piece(262)), (Some(260), true, false, None));
}

#[test]
fn unknown_components_are_named() {
    let cases = [
        ("/normalizer", json!({"type": "NFX"}), "normalizer", "NFX"),
        ("/pre_tokenizer", json!({"type": "Delimiter"}), "pre_tokenizer", "Delimiter"),
        ("/decoder", json!({"type": "Beam"}), "decoder", "Beam"),
        ("/post_processor", json!({"type": "Odd"}), "post_processor", "Odd"),
        ("/model/type", json!("Letters"), "model", "Letters"),
    ];
    for (path, value, kind, name) in cases {
        let mut file = small();
        *file.pointer_mut(path).unwrap() = value;
        match load(&file).unwrap_err() {
            TokenizerError::Unsupported { kind: k, component, .. } => assert_eq!((k, component.as_str()), (kind, name)),
            other => panic!("{path}: {other}"),
        }
    }
    let gguf = |model: &'static str, pre| GgufVocab {
        model,
        pre,
        tokens: vec!["a"],
        merges: Some(vec![]),
        ..Default::default()
    };
    let error = Tokenizer::from_gguf(gguf("rwkv", None)).unwrap_err();
    assert!(matches!(&error, TokenizerError::Unsupported { component, .. } if component == "rwkv"), "{error}");
    let error = Tokenizer::from_gguf(gguf("gpt2", Some("kimi-k2"))).unwrap_err();
    assert!(matches!(&error, TokenizerError::UnknownRules { pre, .. } if pre == "kimi-k2"), "{error}");
    assert!(error.to_string().contains("tokenizer.ggml.pre") && error.to_string().contains("llama-bpe"), "{error}");
}

#[test]
fn contradictions_are_errors() {
    let cases = [
        ("/model/merges", json!(["h zz"])),
        ("/model/merges", json!(["h e l"])),
        ("/model/merges", json!([["h"]])),
        ("/model/vocab/he", json!(4_000_000_000u32)),
        ("/model/vocab/he", json!(7)),
        ("/model/vocab/he", json!(-1)),
        ("/model/vocab", json!([["a", 0.0]])),
        ("/model/type", json!("Unigram")),
        ("/normalizer", json!({"type": "Precompiled"})),
        ("/normalizer", json!({"type": "Precompiled", "precompiled_charsmap": "AAAA"})),
        ("/normalizer", json!({"type": "Precompiled", "precompiled_charsmap": "/////w=="})),
        ("/pre_tokenizer", json!({"type": "FixedLength", "length": 0})),
        ("/pre_tokenizer", json!({"type": "CharDelimiterSplit", "delimiter": "ab"})),
        ("/decoder", json!({"type": "CTC"})),
        ("/post_processor/special_tokens/<s>/ids", json!([99999])),
        (
            "/pre_tokenizer",
            json!({"type": "Split", "pattern": {"Regex": "("}, "behavior": "Isolated", "invert": false}),
        ),
    ];
    for (path, value) in cases {
        let mut file = small();
        *file.pointer_mut(path).unwrap() = value;
        assert!(load(&file).is_err(), "{path}");
    }
    let mut nested = json!({"type": "NFC"});
    for _ in 0..20 {
        nested = json!({"type": "Sequence", "normalizers": [nested]});
    }
    let mut file = small();
    file["normalizer"] = nested;
    assert!(matches!(load(&file).unwrap_err(), TokenizerError::Limit { .. }));
}

#[test]
fn truncated_and_mutated_files_never_panic() {
    let bytes = serde_json::to_vec(&small()).unwrap();
    for cut in 0..bytes.len() {
        assert!(Tokenizer::from_json(&bytes[..cut], "cut").is_err());
    }
    let mut rng = Rng::new(3);
    for _ in 0..1500 {
        let mut copy = bytes.clone();
        for _ in 0..4 {
            let at = rng.index(copy.len());
            copy[at] = *rng.choose(b"{}[]\":,0e\\u-");
        }
        if let Ok(t) = Tokenizer::from_json(&copy, "mutated") {
            let ids = t.encode("hello <s> wörld 123\n", ALL).unwrap_or_default();
            let _text = t.decode(&ids, false);
        }
    }
}

#[test]
fn hostile_gguf_tables() {
    let base = || GgufVocab {
        name: "g",
        model: "llama",
        tokens: vec!["<unk>", "<s>", "</s>", "▁", "a", "▁a"],
        ..Default::default()
    };
    assert!(Tokenizer::from_gguf(base()).is_ok());
    assert!(Tokenizer::from_gguf(GgufVocab { tokens: vec![], ..base() }).is_err());
    assert!(Tokenizer::from_gguf(GgufVocab { tokens: vec!["a", "a"], ..base() }).is_err());
    assert!(Tokenizer::from_gguf(GgufVocab { scores: Some(vec![0.0]), ..base() }).is_err());
    assert!(Tokenizer::from_gguf(GgufVocab { bos: Some(99), add_bos: Some(true), ..base() }).is_err());
    assert!(Tokenizer::from_gguf(GgufVocab { model: "gpt2", ..base() }).is_err());
    let nan = GgufVocab { scores: Some(vec![f32::NAN; 6]), ..base() };
    let t = Tokenizer::from_gguf(nan).unwrap();
    assert_eq!(t.encode("a\u{1F642}", ALL).unwrap(), [1, 5, 0]);
}

proptest! {
    #[test]
    fn streams_give_what_whole_decoding_gives(ids in prop::collection::vec(0u32..520, 0..40), skip: bool) {
        for t in &[load(&small()).unwrap(), from_gguf(&bedtime::f32())] {
            for mut stream in [t.detokenizer(skip), t.continuation(skip)] {
                let mut text = String::new();
                for &id in &ids {
                    text.push_str(&stream.push(id));
                }
                text.push_str(&stream.finish());
                let bytes: Vec<u8> = ids
                    .iter()
                    .filter(|&&id| !(skip && t.is_special(id)))
                    .flat_map(|&id| t.token_bytes(id).unwrap_or_default().into_owned())
                    .collect();
                let whole = String::from_utf8_lossy(&bytes);
                let stripped = whole.strip_prefix(' ').unwrap_or(&whole);
                prop_assert!(text == whole || text == stripped, "{text:?} {whole:?}");
            }
            prop_assert!(t.decode(&ids, skip).len() <= t.decode_continuation(&ids, skip).len());
        }
    }

    #[test]
    fn text_survives_the_round_trip(text in "\\PC{0,40}|[ \\t\\na-z<>s|]{0,40}") {
        let nfc = EncodeOptions { add_special: false, parse_special: false };
        let t = from_gguf(&bedtime::f32());
        prop_assert_eq!(t.decode(&t.encode(&text, nfc).unwrap(), false), text);
    }
}
