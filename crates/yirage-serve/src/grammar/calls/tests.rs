use super::ForcedCalls;
use crate::error::ApiError;
use crate::grammar::{CompiledGrammar, Grammar, Walked};
use crate::response_parser::{
    CallFrame, Calls, DeclaredTools, ModelCallFrame, OutputFormat, ResponseParser, ResponsePiece, ToolCall,
};
use crate::tools::{Tool, ToolChoice, ToolUse};
use crate::vocabulary::{BYTES, Vocabulary};
use serde_json::{Value, json};
use std::sync::Arc;

/// Answers of each form, unless `YIRAGE_CALL_SEEDS` says another number.
const SEEDS: u64 = 20;
/// Bytes of an answer, of which those that end are looked at.
const LENGTH: usize = 900;

fn seeds() -> u64 {
    std::env::var("YIRAGE_CALL_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SEEDS)
}

fn used(choice: ToolChoice, parallel: bool) -> ToolUse {
    let place = json!({
        "type": "object", "additionalProperties": false, "required": ["name"],
        "properties": {"name": {"type": "string"}, "height": {"type": "number"}},
    });
    let parameters = json!({
        "type": "object", "required": ["city", "days"], "additionalProperties": false,
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer", "minimum": 1, "maximum": 9},
            "wet": {"type": "boolean"},
            "unit": {"enum": ["c", "f"]},
            "note": {"anyOf": [{"type": "string", "maxLength": 8}, {"type": "null"}]},
            "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
            "at": place,
        },
    });
    let tool = |name: &str, parameters: Value| Tool::new("tools", name, None, parameters, false).unwrap();
    let closed = |properties: Value| json!({"type": "object", "properties": properties, "additionalProperties": false});
    let tools = vec![
        tool("weather", parameters),
        tool("weather_now", closed(json!({}))),
        tool("wait", closed(json!({"hours": {"type": "integer", "minimum": 0}}))),
    ];
    ToolUse { tools, choice, parallel }
}

/// Whether a call is one of the tools, and its arguments are what the schema says.
fn is_valid(call: &ToolCall) -> bool {
    let Ok(Value::Object(arguments)) = serde_json::from_str::<Value>(&call.arguments) else { return false };
    let whole = |value: &Value| value.as_f64().filter(|number| number.fract() == 0.0);
    let is_text = |value: &Value| value.is_string();
    match call.name.as_str() {
        "weather" => {
            let is_place = |place: &Value| {
                let keys = place.as_object().is_some_and(|at| at.keys().all(|key| key == "name" || key == "height"));
                keys && place["name"].is_string() && place.get("height").is_none_or(Value::is_number)
            };
            let is = |(key, value): (&String, &Value)| match key.as_str() {
                "city" => value.is_string(),
                "days" => whole(value).is_some_and(|days| (1.0..=9.0).contains(&days)),
                "wet" => value.is_boolean(),
                "unit" => value == "c" || value == "f",
                "note" => value.is_null() || value.as_str().is_some_and(|note| note.chars().count() <= 8),
                "tags" => value.as_array().is_some_and(|tags| tags.len() <= 3 && tags.iter().all(is_text)),
                "at" => is_place(value),
                _ => false,
            };
            arguments.contains_key("city") && arguments.contains_key("days") && arguments.iter().all(is)
        }
        "weather_now" => arguments.is_empty(),
        "wait" => arguments.iter().all(|(key, value)| key == "hours" && whole(value).is_some_and(|hours| hours >= 0.0)),
        _ => false,
    }
}

/// What is said in a text, which is the same however it is cut.
fn parsed(calls: Calls, used: &ToolUse, text: &str) -> (Vec<ToolCall>, String) {
    let of = |cuts: &mut dyn Iterator<Item = &str>| {
        let family = OutputFormat { calls: Some(calls), thoughts: None };
        let mut parser = ResponseParser::new(&family, false, DeclaredTools::new(&used.tools));
        let mut pieces: Vec<ResponsePiece> = cuts.flat_map(|cut| parser.push(cut)).collect();
        pieces.extend(parser.finish());
        let (mut calls, mut said) = (Vec::new(), String::new());
        for piece in pieces {
            match piece {
                ResponsePiece::Call(part) => ToolCall::add(&mut calls, part),
                ResponsePiece::Content(text) => said.push_str(&text),
                ResponsePiece::Reasoning(_) => {}
            }
        }
        (calls, said)
    };
    let whole = of(&mut std::iter::once(text));
    for length in [1, 3, 7] {
        let mut ends: Vec<usize> = text.char_indices().map(|(at, _)| at).step_by(length).collect();
        ends.push(text.len());
        let cut = of(&mut ends.windows(2).map(|ends| &text[ends[0]..ends[1]]));
        assert_eq!(cut, whole, "{}: {text:?} in pieces of {length}", calls.name());
    }
    whole
}

fn forced(used: &ToolUse, own: &Arc<ModelCallFrame>, vocabulary: &Arc<Vocabulary>) -> ForcedCalls {
    let compile = |grammar: &Grammar| grammar.compile_for(|| Ok(vocabulary.clone()));
    ForcedCalls::new(used, Some(own), false, compile).unwrap()
}

/// What ends texts and calls of a frame: chance writes it nowhere.
fn ends(frame: &CallFrame) -> Vec<String> {
    frame.texts().filter(|text| !text.is_empty()).map(str::to_owned).collect()
}

/// Calls of each answer that a form gives by chance.
fn walked(of: Calls, used: &ToolUse, compiled: &CompiledGrammar, vocabulary: &Vocabulary) -> Vec<usize> {
    let ends = ends(&of.written());
    let mut counts = Vec::new();
    for walked in compiled.walked(vocabulary, 0..seeds(), LENGTH, &ends) {
        let text = match walked {
            Walked::Ended(text) => String::from_utf8(text).unwrap(),
            Walked::Cut(_) => continue,
            Walked::Stuck(text) => panic!("{}: stuck behind {}", of.name(), String::from_utf8_lossy(&text)),
        };
        let (calls, said) = parsed(of, used, &text);
        assert_eq!(said.trim(), "", "{}: {text:?}", of.name());
        assert!(!calls.is_empty(), "{}: {text:?}", of.name());
        for call in &calls {
            assert!(call.ended && is_valid(call), "{}: {text:?}: {call:?}", of.name());
        }
        counts.push(calls.len());
    }
    assert!(counts.len() as u64 > seeds() / 2, "{}: {} ended", of.name(), counts.len());
    counts
}

#[test]
#[allow(clippy::print_stdout)] // says how much was tried
fn calls_that_have_to_come_are_read_back_in_every_form() {
    let vocabulary = Vocabulary::of_bytes().unwrap();
    let mut several = Vec::new();
    let (mut answers, mut read) = (0, 0);
    for of in Calls::all() {
        let own = Arc::new(ModelCallFrame::new(of.written(), Vec::new(), &[]));
        let used = used(ToolChoice::Required, true);
        let ForcedCalls { compiled, bare } = forced(&used, &own, &vocabulary);
        assert_eq!(bare, None, "{}", of.name());
        let counts = walked(of, &used, &compiled, &vocabulary);
        several.extend(counts.iter().any(|count| *count > 1).then(|| of.name()));
        (answers, read) = (answers + counts.len(), read + counts.iter().sum::<usize>());
        // One where it is named.
        let named = ToolUse { choice: ToolChoice::Named("wait".into()), ..used.clone() };
        let ForcedCalls { compiled, bare } = forced(&named, &own, &vocabulary);
        assert_eq!(bare, None, "{}", of.name());
        let counts = walked(of, &named, &compiled, &vocabulary);
        assert!(counts.iter().all(|count| *count == 1), "{}", of.name());
        (answers, read) = (answers + counts.len(), read + counts.len());
    }
    println!("{} forms: {read} calls of {answers} answers, whole and in pieces of three lengths", Calls::all().count());
    // All but those whose answers end with a call.
    let single: Vec<&str> = Calls::all().map(Calls::name).filter(|name| !several.contains(name)).collect();
    assert_eq!(single, ["gigachat3", "harmony"]);
}

/// Marks that are tokens come as those, and are nowhere spelled.
#[test]
fn marks_that_are_tokens_come_as_tokens() {
    for of in Calls::all() {
        let frame = of.written();
        let bracketed = |text: &str| {
            let begins = text.char_indices().filter(|(_, c)| *c == '<' || *c == '[').map(|(at, _)| at);
            let word = |at: usize| {
                let end = text[at..].find(['>', ']'])? + at + 1;
                let word = &text[at..end];
                let plain = |c: char| c.is_alphanumeric() || "<>[]|/_:｜▁\"".contains(c);
                (word.len() > 4 && word.chars().all(plain)).then(|| word.to_owned())
            };
            begins.filter_map(word).collect::<Vec<_>>()
        };
        let mut marks: Vec<String> = frame.texts().flat_map(bracketed).collect();
        marks.sort();
        marks.dedup();
        let tokens: Vec<(String, u32)> = marks.iter().cloned().zip(BYTES + 1..).collect();
        let vocabulary = Vocabulary::of_bytes_and(&marks).unwrap();
        let own = Arc::new(ModelCallFrame::new(frame.clone(), tokens, &[]));
        let used = used(ToolChoice::Required, true);
        let ForcedCalls { compiled, bare } = forced(&used, &own, &vocabulary);
        assert_eq!(bare, None, "{}", of.name());
        walked(of, &used, &compiled, &vocabulary);
        if let Some(mark) = marks.iter().find(|mark| frame.first.starts_with(mark.as_str())) {
            let spelled = compiled.walked(&vocabulary, 0..4, 1, std::slice::from_ref(mark));
            let begun = |walked: &Walked| match walked {
                Walked::Ended(text) | Walked::Cut(text) | Walked::Stuck(text) => text.starts_with(mark.as_bytes()),
            };
            assert!(spelled.iter().all(begun), "{}: {mark}: {spelled:?}", of.name());
        }
    }
}

#[test]
fn what_a_form_cannot_hold_comes_as_bare_json() {
    let vocabulary = Vocabulary::of_bytes().unwrap();
    let form = |name: &str| Calls::all().find(|calls| calls.name() == name).unwrap();
    let of = |name: &str, schema: Value| {
        let parameters = json!({"type": "object", "properties": {"a": schema}, "required": ["a"]});
        let tools = vec![Tool::new("tools", "f", None, parameters, false).unwrap()];
        let used = ToolUse { tools, choice: ToolChoice::Required, parallel: false };
        let own = Arc::new(ModelCallFrame::new(form(name).written(), Vec::new(), &[]));
        forced(&used, &own, &vocabulary).bare
    };
    for (name, schema, why) in [
        ("qwen3_coder", json!({"type": "string", "pattern": "^a+$"}), "f: a: `pattern`"),
        ("glm", json!({"type": "string", "format": "date"}), "f: a: `format`"),
        ("seed_oss", json!({"type": ["string", "integer"]}), "f: a: a text or a value of another type"),
        ("seed_oss", json!({"enum": ["a</parameter>b"]}), "f: a: \"a</parameter>b\""),
        ("minimax_m2", json!({"enum": ["\n"]}), "f: a: \"\\n\""),
        ("gemma4", json!({}), "f: a: a value of this kind"),
        (
            "gemma4",
            json!({"type": "object", "properties": {"b": {"type": "string", "pattern": "a"}}}),
            "f: a: b: `pattern`",
        ),
    ] {
        let told = of(name, schema.clone()).unwrap_or_else(|| panic!("{name}: {schema} is held"));
        assert!(told.contains(why), "{name}: {told}");
    }
    for (name, schema) in [
        ("hermes", json!({"type": "string", "pattern": "^a+$"})),
        ("deepseek_dsml", json!({"type": "string", "pattern": "^a+$"})),
        ("llama_pythonic", json!({"type": "string", "pattern": "^a+$"})),
        ("glm", json!({})),
        ("qwen3_coder", json!({"type": "string", "minLength": 2, "maxLength": 5})),
        ("qwen3_coder", json!({"type": ["string", "null"]})),
        ("gemma4", json!({"type": "array", "items": {"type": "integer"}, "minItems": 2})),
    ] {
        assert_eq!(of(name, schema.clone()), None, "{name}: {schema}");
    }
    let none = ForcedCalls::new(&used(ToolChoice::Required, true), None, false, |grammar| {
        grammar.compile_for(|| Ok::<_, String>(vocabulary.clone()))
    });
    assert!(none.unwrap().bare.is_some_and(|why| why.contains("no form of calls")));
}

#[test]
fn what_no_form_can_hold_is_the_clients_mistake() {
    let vocabulary = Vocabulary::of_bytes().unwrap();
    let parameters =
        json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "(?=a)b"}}, "required": ["a"]});
    let tools = vec![Tool::new("tools", "f", None, parameters, false).unwrap()];
    let used = ToolUse { tools, choice: ToolChoice::Required, parallel: false };
    for of in Calls::all() {
        let own = Arc::new(ModelCallFrame::new(of.written(), Vec::new(), &[]));
        let compile = |grammar: &Grammar| grammar.compile_for(|| Ok::<_, String>(vocabulary.clone()));
        let refused: Result<_, ApiError> = ForcedCalls::new(&used, Some(&own), false, compile).map(|_| ());
        let refused = refused.unwrap_err();
        assert_eq!(
            (refused.param.as_deref(), refused.code),
            (Some("tools"), Some("unsupported_schema")),
            "{}",
            of.name()
        );
    }
}
