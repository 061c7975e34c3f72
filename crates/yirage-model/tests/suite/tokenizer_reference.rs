//! What the reference library makes of some hundred small files of every kind, replayed; and kinds of files that came
//! out wrong once.

use serde_json::{Value, json};
use yirage_model::tokenizer::{EncodeOptions, Tokenizer, TokenizerError};

const PLAIN: EncodeOptions = EncodeOptions { add_special: false, parse_special: true };
const FRAMED: EncodeOptions = EncodeOptions { add_special: true, parse_special: true };

fn load(file: &Value) -> Tokenizer {
    Tokenizer::from_json(&serde_json::to_vec(file).unwrap(), "t").unwrap()
}

fn ids(value: &Value) -> Vec<u32> {
    serde_json::from_value(value.clone()).unwrap()
}

/// Made by `tools/oracle/tokenizer_cases.py --golden`.
#[test]
fn files_of_every_kind_do_as_the_reference_library_does() {
    let lines = include_str!("../golden/tokenizer_cases.jsonl").lines();
    let (mut files, mut cases) = (0, 0);
    for (number, line) in lines.enumerate() {
        let case: Value = serde_json::from_str(line).unwrap();
        let t = load(&case["file"]);
        for pair in case["encoded"].as_array().unwrap() {
            let text = pair[0].as_str().unwrap();
            let found = [t.encode(text, PLAIN).unwrap(), t.encode(text, FRAMED).unwrap()];
            assert_eq!(found, [ids(&pair[1][0]), ids(&pair[1][1])], "file {number}: {text:?}");
            cases += 1;
        }
        for pair in case["decoded"].as_array().unwrap() {
            let given = ids(&pair[0]);
            let found = [t.decode(&given, false), t.decode(&given, true)];
            assert_eq!(json!(found), pair[1], "file {number}: {given:?}");
            cases += 1;
        }
        files += 1;
    }
    assert!(files >= 60 && cases >= 1000, "{files} files, {cases} cases");
}

/// Files of old releases do not name their model; the library tries one after the other. Expected ids are the library's.
#[test]
fn a_model_without_a_name_is_the_one_whose_fields_it_has() {
    let vocab = json!({"<unk>": 0, "h": 1, "i": 2, "##i": 3, "hi": 4});
    let cases = [
        (json!({}), vec![4, 0, 0]),
        (json!({"merges": []}), vec![1, 2, 1, 1, 1, 0]),
        (json!({"merges": ["h i"]}), vec![4, 1, 1, 1, 0]),
        (json!({"continuing_subword_prefix": "##"}), vec![4, 0, 0]),
        (json!({"continuing_subword_prefix": "##", "max_input_chars_per_word": 9}), vec![4, 0, 0]),
        (json!({"merges": [], "max_input_chars_per_word": 9}), vec![1, 2, 1, 1, 1, 0]),
    ];
    for (more, wanted) in cases {
        let mut model = json!({"vocab": vocab, "unk_token": "<unk>"});
        for (key, value) in more.as_object().unwrap() {
            model[key] = value.clone();
        }
        let t = load(&json!({"pre_tokenizer": {"type": "WhitespaceSplit"}, "model": model}));
        assert_eq!(t.encode("hi hh hx", PLAIN).unwrap(), wanted, "{more}");
    }
}

/// A BPE of a few letters and the byte tokens of `bytes`.
fn with_bytes(bytes: impl Iterator<Item = u8>, others: &[&str], model: Value) -> Value {
    let names = ["<unk>", "x", "▁"].map(str::to_owned).into_iter().chain(others.iter().map(|t| (*t).to_owned()));
    let names = names.chain(bytes.map(|b| format!("<0x{b:02X}>")));
    let vocab: serde_json::Map<String, Value> = names.enumerate().map(|(id, text)| (text, json!(id))).collect();
    let mut file = json!({
        "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]},
        "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": true, "vocab": vocab, "merges": []}
    });
    for (key, value) in model.as_object().unwrap() {
        file["model"][key] = value.clone();
    }
    file
}

/// Kind of case 03: a vocabulary that lacks some byte tokens, as Gemma's has a tab in place of `<0x09>`. Expected ids
/// are those of `tokenizers` 0.23.3.
#[test]
fn characters_become_the_bytes_that_exist() {
    let gemma = load(&with_bytes((0..=255).filter(|&b| b != 9), &["\t"], json!({})));
    let id = |t: &Tokenizer, byte: u8| t.token_id(&format!("<0x{byte:02X}>")).unwrap();
    let sign = [0xE2, 0x84, 0xBB].map(|b| id(&gemma, b));
    assert_eq!(gemma.encode("x℻", PLAIN).unwrap(), [&[1][..], &sign].concat());
    assert_eq!(gemma.encode("\t \n", PLAIN).unwrap(), [3, 2, id(&gemma, 10)]);
    assert_eq!(gemma.decode(&gemma.encode("x℻\tй🙂 x", PLAIN).unwrap(), false), "x℻\tй🙂 x");

    // One byte of a character is missing: the character is unknown, its neighbours are bytes as before.
    let holed = load(&with_bytes((0..=255).filter(|&b| b != 0xBB), &[], json!({})));
    let tele = [0xE2, 0x84, 0xA1].map(|b| id(&holed, b));
    assert_eq!(holed.encode("℻", PLAIN).unwrap(), [0]);
    assert_eq!(holed.encode("℻℻x", PLAIN).unwrap(), [0, 1]);
    assert_eq!(holed.encode("℡x", PLAIN).unwrap(), [&tele[..], &[1]].concat());
    // Bytes do not end the wait of an unknown character for its neighbours.
    assert_eq!(holed.encode("℻℡x", PLAIN).unwrap(), [&tele[..], &[0, 1]].concat());

    let apart = load(&with_bytes((0..=255).filter(|&b| b != 0xBB), &[], json!({"fuse_unk": false})));
    assert_eq!(apart.encode("℻℻x", PLAIN).unwrap(), [0, 0, 1]);
    let ascii = load(&with_bytes(0..128, &[], json!({})));
    assert_eq!(ascii.encode("aéb", PLAIN).unwrap(), [id(&ascii, b'a'), id(&ascii, b'b'), 0]);
    let none = load(&with_bytes(0..0, &[], json!({})));
    assert_eq!(none.encode("aéx", PLAIN).unwrap(), [0, 1]);
    let silent = load(&with_bytes(0..0, &[], json!({"unk_token": null})));
    assert_eq!(silent.encode("aéx", PLAIN).unwrap(), [1]);
    let contradiction = load(&with_bytes(0..0, &[], json!({"unk_token": "[UNK]"})));
    assert!(matches!(contradiction.encode("xé", PLAIN), Err(TokenizerError::Unrepresentable { character: 'é', .. })));
    let off = load(&with_bytes(0..=255, &[], json!({"byte_fallback": false})));
    assert_eq!(off.encode("xé", PLAIN).unwrap(), [1, 0]);
}

/// Bytes that are no character are one sign of a lost character each, and a run with one such byte is lost as a whole.
#[test]
fn bytes_become_characters_in_runs() {
    let t = load(&with_bytes(0..=255, &[], json!({})));
    let bytes = |run: &[u8]| -> Vec<u32> { run.iter().map(|b| t.token_id(&format!("<0x{b:02X}>")).unwrap()).collect() };
    for (ids, wanted) in [
        (bytes("é🙂".as_bytes()), "é🙂"),
        ([bytes(&[0x41, 0xE2]), vec![1]].concat(), "\u{fffd}\u{fffd}x"),
        ([bytes(&[0x41]), vec![1], bytes(&[0xE2])].concat(), "Ax\u{fffd}"),
        ([bytes(&[0xF0, 0x9F]), vec![2], bytes(&[0x99, 0x82])].concat(), "\u{fffd}\u{fffd} \u{fffd}\u{fffd}"),
        (bytes(&[0xFF]), "\u{fffd}"),
        (vec![], ""),
    ] {
        assert_eq!(t.decode(&ids, false), wanted);
        let mut stream = t.detokenizer(false);
        let text: String = ids.iter().map(|&id| stream.push(id)).collect();
        assert_eq!(text + &stream.finish(), wanted);
    }
}

/// A vocabulary of letters with the added tokens of `added`: content and flags.
fn with_added(added: &[(&str, &[&str])], normalizer: Value) -> Value {
    let letters = "abcdehlorstw_- .ABé\n\t".chars().map(String::from);
    let vocab: serde_json::Map<String, Value> =
        ["<unk>".to_owned()].into_iter().chain(letters).enumerate().map(|(id, t)| (t, json!(id))).collect();
    let entries: Vec<Value> = added
        .iter()
        .enumerate()
        .map(|(at, (content, flags))| {
            let mut entry = json!({"id": 100 + at, "content": content});
            for flag in ["single_word", "lstrip", "rstrip", "normalized", "special"] {
                entry[flag] = json!(flags.contains(&flag));
            }
            entry
        })
        .collect();
    json!({"added_tokens": entries, "normalizer": normalizer,
        "model": {"type": "BPE", "unk_token": "<unk>", "vocab": vocab, "merges": []}})
}

/// The kind of added tokens whose flags meet. Expected is what `tokenizers` 0.23.3 gives.
#[test]
fn added_tokens_next_to_each_other() {
    let shown = |added: &[(&str, &[&str])], normalizer: Value, text: &str| {
        let t = load(&with_added(added, normalizer));
        let ids = t.encode(text, PLAIN).unwrap();
        ids.iter().map(|&id| t.piece(id).unwrap().to_owned()).collect::<Vec<_>>().join("|")
    };
    let none = || Value::Null;
    // A token that begins with the white space that the one before it swallows is there as well.
    assert_eq!(shown(&[("<a>", &["rstrip"]), (" b", &[])], none(), "<a> b"), "<a>| b");
    assert_eq!(shown(&[("<a>", &["rstrip"]), ("<b>", &["lstrip"])], none(), "o <a>  <b> o"), "o| |<a>|<b>| |o");
    assert_eq!(shown(&[("he", &["single_word"])], none(), "he the he. hé"), "he| |t|h|e| |he|.| |h|é");
    assert_eq!(shown(&[("he", &["single_word"])], none(), "_he he\u{301} he-he"), "_|h|e| |h|e|<unk>| |he|-|he");
    assert_eq!(shown(&[("ab", &[]), ("abc", &[]), ("bcd", &[])], none(), "abcd"), "abc|d");
    assert_eq!(shown(&[("<a>", &["lstrip", "rstrip"])], none(), "\u{a0}\u{2003}<a>\n\t<a> o"), "<a>|<a>|o");
    assert_eq!(shown(&[("\n", &["lstrip", "rstrip"])], none(), "a\n\na\n"), "a|\n|a|\n");
    let lower = || json!({"type": "Lowercase"});
    assert_eq!(shown(&[("Ab", &["normalized"])], lower(), "AB ab Ab"), "Ab| |Ab| |Ab");
    assert_eq!(shown(&[("AB", &[])], lower(), "AB ab"), "AB| |a|b");
    assert_eq!(shown(&[("<a>", &[]), ("a", &["normalized"])], none(), "<a>a"), "<a>|a");
}
