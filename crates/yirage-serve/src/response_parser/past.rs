//! Calls of the past for templates that show none: LFM2's and SmolLM3's show an assistant's content alone, so that what was
//! called would be lost from the prompt. The calls are put behind the content as the model writes them.
//!
//! Unknown here: whether a template shows calls.

use super::frame::{ArgumentSyntax, CallFrame, ID, NUMBER};
use serde_json::{Map, Value, json};

/// Messages whose calls are part of their content.
pub(crate) fn calls_as_text(frame: &CallFrame, messages: &[Value]) -> Vec<Value> {
    let mut count = 0;
    messages.iter().map(|message| one(frame, message, &mut count)).collect()
}

fn one(frame: &CallFrame, message: &Value, count: &mut usize) -> Value {
    let Some(calls) = message["tool_calls"].as_array() else { return message.clone() };
    let mut message = message.clone();
    let written = Value::from(written(frame, calls, count));
    message["content"] = match message["content"].take() {
        Value::Array(mut parts) => {
            parts.push(json!({"type": "text", "text": written}));
            parts.into()
        }
        content => [content.as_str(), written.as_str()].into_iter().flatten().collect::<String>().into(),
    };
    if let Some(fields) = message.as_object_mut() {
        fields.remove("tool_calls");
    }
    message
}

/// Calls as the model writes them: in one list where its form has several, else each by itself.
fn written(frame: &CallFrame, calls: &[Value], count: &mut usize) -> String {
    let mut text = String::new();
    for (at, call) in calls.iter().enumerate() {
        let function = &call["function"];
        let before = match &frame.next {
            Some(_) if at > 0 => "",
            _ => frame.first.as_str(),
        };
        let behind = frame.next.as_ref().filter(|_| at + 1 < calls.len()).unwrap_or(&frame.last);
        let numbered = |text: &str| text.replace(NUMBER, &count.to_string()).replace(ID, &format!("{count:09}"));
        let name = function["name"].as_str().unwrap_or_default();
        let (before, between) = (numbered(before), numbered(&frame.between));
        text.extend([before.as_str(), name, &between, &arguments(&frame.arguments, &function["arguments"])]);
        *count += 1;
        // What stands before another call has its number.
        let numbered = |text: &str| text.replace(NUMBER, &count.to_string()).replace(ID, &format!("{count:09}"));
        text.push_str(&numbered(behind));
    }
    text
}

/// Arguments, which are an object or its text.
fn arguments(syntax: &ArgumentSyntax, of: &Value) -> String {
    let parsed = of.as_str().and_then(|text| serde_json::from_str(text).ok());
    let object = parsed.or_else(|| of.as_object().cloned()).unwrap_or_default();
    match syntax {
        ArgumentSyntax::Json => Value::Object(object).to_string(),
        ArgumentSyntax::Python => joined(&object, ", ", |key, value| format!("{key}={}", python(value))),
        ArgumentSyntax::Braces { quote } => {
            joined(&object, ",", |key, value| format!("{key}:{}", braces(value, quote)))
        }
        ArgumentSyntax::Elements(of) => joined(&object, "", |key, value| {
            let (between, value) = match value {
                Value::String(text) => (&of.text, text.clone()),
                other => (&of.json, other.to_string()),
            };
            [of.open.as_str(), key, between, &value, &of.close].concat()
        }),
    }
}

fn joined(object: &Map<String, Value>, between: &str, one: impl Fn(&str, &Value) -> String) -> String {
    object.iter().map(|(key, value)| one(key, value)).collect::<Vec<String>>().join(between)
}

/// A literal of Python's. Its texts are JSON's, which Python reads as the same.
fn python(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Array(list) => format!("[{}]", list.iter().map(python).collect::<Vec<String>>().join(", ")),
        Value::Object(object) => {
            format!("{{{}}}", joined(object, ", ", |key, value| format!("{}: {}", Value::from(key), python(value))))
        }
        other => other.to_string(),
    }
}

/// The same between braces, its texts between marks.
fn braces(value: &Value, quote: &str) -> String {
    match value {
        Value::String(text) => format!("{quote}{text}{quote}"),
        Value::Array(list) => {
            format!("[{}]", list.iter().map(|value| braces(value, quote)).collect::<Vec<String>>().join(","))
        }
        Value::Object(object) => {
            format!("{{{}}}", joined(object, ",", |key, value| format!("{key}:{}", braces(value, quote))))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::response_parser::forms;
    use crate::response_parser::{CallPart, Calls, DeclaredTools, OutputFormat, ResponseParser, ResponsePiece};
    use crate::tools::Tool;

    fn tool(name: &str, properties: Value) -> Tool {
        let parameters = json!({"type": "object", "properties": properties});
        Tool { name: name.to_owned(), parameters, shown: Value::Null, strict: false }
    }

    /// What a parser reads: content, and names with arguments.
    fn read(calls: Calls, tools: &[Tool], text: &str) -> (String, Vec<(String, String)>) {
        let mut parser =
            ResponseParser::new(&OutputFormat { calls: Some(calls), thoughts: None }, false, DeclaredTools::new(tools));
        let mut pieces = parser.push(text);
        pieces.extend(parser.finish());
        let (mut content, mut found) = (String::new(), Vec::<(String, String)>::new());
        for piece in pieces {
            match piece {
                ResponsePiece::Content(text) => content.push_str(&text),
                ResponsePiece::Call(CallPart::Begin(name)) => found.push((name, String::new())),
                ResponsePiece::Call(CallPart::Arguments(text)) => found.last_mut().unwrap().1.push_str(&text),
                ResponsePiece::Call(CallPart::End) | ResponsePiece::Reasoning(_) => {}
            }
        }
        (content, found)
    }

    /// The calls of each form come back from its own parser, one and several of them, behind a text and alone.
    #[test]
    fn calls_of_the_past_are_written_as_each_form_is_read() {
        let arguments = [
            json!({"city": "Z\u{fc}rich \u{1f409}", "days": 31, "warm": true}),
            json!({"list": [1, 2], "inner": {"a": "b"}, "big": 12_345_678_901_234_567_890_u64}),
        ];
        let tools = [
            tool(
                "get_weather",
                json!({"city": {"type": "string"}, "days": {"type": "integer"}, "warm": {"type": "boolean"}}),
            ),
            tool(
                "set_all",
                json!({"list": {"type": "array"}, "inner": {"type": "object"}, "big": {"type": "integer"}}),
            ),
        ];
        let mut tried = 0;
        for form in forms::all() {
            let calls = Calls::Form(form);
            let frame = calls.written();
            for count in [1, 2] {
                let call =
                    |at: usize| json!({"id": "c", "function": {"name": tools[at].name, "arguments": arguments[at]}});
                for (content, said) in
                    [(Value::Null, ""), (json!("I look."), "I look."), (json!([{"type": "text", "text": "I"}]), "I")]
                {
                    let sent = json!({"role": "assistant", "content": content, "tool_calls": (0..count).map(call).collect::<Vec<_>>()});
                    let shown = calls_as_text(&frame, &[sent]).remove(0);
                    assert!(shown["tool_calls"].is_null());
                    let text = match &shown["content"] {
                        Value::Array(parts) => parts.iter().map(|part| part["text"].as_str().unwrap()).collect(),
                        text => text.as_str().unwrap().to_owned(),
                    };
                    // Forms that are read at an answer's beginning alone, and those of one call, are so here too.
                    if (!said.is_empty() && (form.begins_open || !form.at_start.is_empty()))
                        || (count > 1 && frame.next.is_none())
                    {
                        continue;
                    }
                    let (content, found) = read(calls, &tools, &text);
                    assert_eq!(content.trim(), said, "{}: {text}", form.name);
                    assert_eq!(found.len(), count, "{}: {text}", form.name);
                    for (at, (name, given)) in found.iter().enumerate() {
                        let given: Value = serde_json::from_str(given).unwrap();
                        assert_eq!((name, &given), (&tools[at].name, &arguments[at]), "{}: {text}", form.name);
                    }
                    tried += 1;
                }
            }
        }
        assert!(tried > 80, "{tried}");
    }
}
