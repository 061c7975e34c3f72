//! What a template makes of the parts of a conversation, found by rendering small conversations with marks in them.
//!
//! Clients send messages in one form, templates read them in many: content as text or as parts, arguments as an object
//! or as JSON text, thoughts under one of several names. What a template does is tried, and not guessed from its
//! source. [`Capabilities::adapt`] is the one place where messages get the shape that a template reads.
//!
//! This module does not know protocols: it takes messages whose content is text, a list of parts or null, and whose
//! arguments are an object or JSON text.

use std::borrow::Cow;
use std::io;

use serde::Serialize;
use serde_json::ser::Formatter;
use serde_json::{Map, Value as Json, json};

use super::template::{ChatInputs, ChatTemplate};

/// Marks that no template writes by itself.
const CONTENT: &str = "xq7content";
const CALLED: &str = "xq7called";
const ARGUMENT: &str = "xq7argument";
const THOUGHT: &str = "xq7thought";

/// The names that templates read thoughts under; the first one where none is read.
pub const THOUGHT_NAMES: [&str; 3] = ["reasoning_content", "reasoning", "thinking"];

/// How a template reads what a message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    /// A text is shown as it is.
    pub text: bool,
    /// A list of parts is shown as the texts of its parts.
    pub parts: bool,
}

/// How a template reads the arguments of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arguments {
    /// As an object.
    Object,
    /// As the JSON text of one.
    Text,
}

/// What a template reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Content of the system's messages.
    pub system: Content,
    /// Content of the user's messages.
    pub user: Content,
    /// Content of the assistant's messages.
    pub assistant: Content,
    /// Content of what tools answer.
    pub tool: Content,
    /// Content beside calls may be null.
    pub null_beside_calls: bool,
    /// Content of a message without calls may be null.
    pub null_alone: bool,
    /// Arguments of calls.
    pub arguments: Arguments,
    /// The name that thoughts have.
    pub thoughts: &'static str,
    /// A tool without `parameters` ends the rendering, where one with them does not.
    pub needs_parameters: bool,
}

impl Capabilities {
    /// Tries a template.
    pub(super) fn of(template: &ChatTemplate) -> Self {
        let probe = Probe { template };
        let arguments = probe.arguments();
        let assistant = probe.content(|content| {
            vec![user(json!("q")), json!({"role": "assistant", "content": content}), user(json!("q"))]
        });
        Self {
            system: probe.content(|content| vec![json!({"role": "system", "content": content}), user(json!("q"))]),
            user: probe.content(|content| vec![user(content)]),
            assistant,
            tool: probe.content(|content| called(&json!(""), arguments, Some(content))),
            null_beside_calls: probe.null(CALLED, |content| called(content, arguments, Some(json!("r")))),
            null_alone: probe.null(CONTENT, |content| {
                vec![user(json!("q")), json!({"role": "assistant", "content": content}), user(json!(CONTENT))]
            }),
            arguments,
            thoughts: probe.thoughts(arguments),
            needs_parameters: probe.needs_parameters(),
        }
    }

    /// Messages in the shape that the template reads.
    pub fn adapt(&self, messages: &[Json]) -> Vec<Json> {
        messages.iter().map(|message| message.as_object().map_or_else(|| message.clone(), |m| self.one(m))).collect()
    }

    /// Tools in the shape that the template reads: as they are, but that a schema of no arguments takes the place of
    /// one that is missing, where the template cannot do without.
    pub fn adapt_tools(&self, tools: Vec<Json>) -> Vec<Json> {
        let mut tools = tools;
        for tool in tools.iter_mut().filter(|_| self.needs_parameters) {
            if let Some(function) = tool.get_mut("function").and_then(Json::as_object_mut)
                && function.get("parameters").is_none_or(Json::is_null)
            {
                function.insert("parameters".to_owned(), no_arguments());
            }
        }
        tools
    }

    fn one(&self, message: &Map<String, Json>) -> Json {
        let role = message.get("role").and_then(Json::as_str).unwrap_or_default();
        let calls = message.get("tool_calls").and_then(Json::as_array).is_some_and(|calls| !calls.is_empty());
        let null = if calls { self.null_beside_calls } else { self.null_alone };
        let mut out = Map::new();
        for (key, value) in message {
            match key.as_str() {
                "content" => out.insert(key.clone(), self.content(role).shape(value, null)),
                "tool_calls" => out.insert(key.clone(), self.calls(value)),
                name if THOUGHT_NAMES.contains(&name) => out.insert(self.thoughts.to_owned(), value.clone()),
                _ => out.insert(key.clone(), value.clone()),
            };
        }
        Json::Object(out)
    }

    fn content(&self, role: &str) -> Content {
        match role {
            "system" | "developer" => self.system,
            "assistant" => self.assistant,
            "tool" | "function" => self.tool,
            _ => self.user,
        }
    }

    fn calls(&self, calls: &Json) -> Json {
        let mut calls = calls.clone();
        for call in calls.as_array_mut().into_iter().flatten() {
            let function = call.get_mut("function").and_then(Json::as_object_mut);
            if let Some(arguments) = function.and_then(|function| function.get_mut("arguments")) {
                *arguments = self.arguments.shape(arguments);
            }
        }
        calls
    }
}

impl Content {
    /// Both forms stay as they were sent where the template reads both, as its makers' renderer leaves them.
    fn shape(self, content: &Json, null: bool) -> Json {
        match content {
            Json::Null if null => Json::Null,
            Json::Null => json!(""),
            Json::String(text) if !self.text && self.parts => json!([{"type": "text", "text": text}]),
            Json::Array(parts) if !self.parts => {
                let texts: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
                Json::String(texts.join("\n"))
            }
            other => other.clone(),
        }
    }
}

impl Arguments {
    fn shape(self, arguments: &Json) -> Json {
        match (self, arguments) {
            (Self::Object, Json::String(text)) => {
                serde_json::from_str(text).ok().filter(Json::is_object).unwrap_or_else(|| json!({}))
            }
            (Self::Text, Json::Object(_)) => Json::String(python_json(arguments)),
            _ => arguments.clone(),
        }
    }
}

/// JSON as Python's `json.dumps` lays it out, which is what models were trained on.
fn python_json(value: &Json) -> String {
    struct Spaced;
    impl Formatter for Spaced {
        fn begin_array_value<W: ?Sized + io::Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
            out.write_all(if first { b"" } else { b", " })
        }

        fn begin_object_key<W: ?Sized + io::Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
            out.write_all(if first { b"" } else { b", " })
        }

        fn begin_object_value<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
            out.write_all(b": ")
        }
    }
    let mut bytes = Vec::new();
    let written = value.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, Spaced));
    match (written, String::from_utf8(bytes)) {
        (Ok(()), Ok(text)) => text,
        _ => value.to_string(),
    }
}

fn user(content: Json) -> Json {
    json!({"role": "user", "content": content})
}

fn no_arguments() -> Json {
    json!({"type": "object", "properties": {}})
}

/// A conversation with a call, and the tool's answer where there is one. The id is as the strictest templates want it.
fn called(content: &Json, arguments: Arguments, answer: Option<Json>) -> Vec<Json> {
    let arguments = match arguments {
        Arguments::Object => json!({ARGUMENT: "v"}),
        Arguments::Text => json!(format!("{{\"{ARGUMENT}\": \"v\"}}")),
    };
    let call = json!({"id": "abcdefghi", "type": "function", "function": {"name": CALLED, "arguments": arguments}});
    let mut messages = vec![user(json!("q")), json!({"role": "assistant", "content": content, "tool_calls": [call]})];
    let answer =
        answer.map(|answer| json!({"role": "tool", "tool_call_id": "abcdefghi", "name": CALLED, "content": answer}));
    messages.extend(answer);
    messages
}

/// A template under trial.
struct Probe<'t> {
    template: &'t ChatTemplate,
}

impl Probe<'_> {
    /// What becomes of messages, with a tool to call and, should that fail, without.
    fn render(&self, messages: &[Json]) -> Option<String> {
        let function = json!({"name": CALLED, "description": "d", "parameters": no_arguments()});
        let tools = [json!({"type": "function", "function": function})];
        self.render_with(messages, Some(&tools)).or_else(|| self.render_with(messages, None))
    }

    fn render_with(&self, messages: &[Json], tools: Option<&[Json]>) -> Option<String> {
        let add_generation_prompt = messages.last().is_none_or(|last| last["role"] != "assistant");
        let inputs = ChatInputs { tools, add_generation_prompt, ..ChatInputs::new(messages) };
        self.template.render(&inputs).ok().map(|rendered| rendered.text)
    }

    fn content(&self, conversation: impl Fn(Json) -> Vec<Json>) -> Content {
        let shown = |content: Json| {
            let messages = conversation(content);
            self.render_with(&messages, None).or_else(|| self.render(&messages)).filter(|text| text.contains(CONTENT))
        };
        let parts = shown(json!([{"type": "text", "text": CONTENT}]));
        // A list that is printed as a list shows the names of its fields.
        let printed = |text: &String| text.contains("'text'") || text.contains("\"text\"");
        Content { text: shown(json!(CONTENT)).is_some(), parts: parts.is_some_and(|text| !printed(&text)) }
    }

    /// Whether null is shown as nothing, and nothing else of the conversation is lost by it.
    fn null(&self, mark: &str, conversation: impl Fn(&Json) -> Vec<Json>) -> bool {
        let (null, empty) = (self.render(&conversation(&Json::Null)), self.render(&conversation(&json!(""))));
        let count = |text: &str, word: &str| text.matches(word).count();
        match (null, empty) {
            (Some(null), Some(empty)) => {
                count(&null, mark) >= count(&empty, mark) && count(&null, "None") <= count(&empty, "None")
            }
            (Some(_), None) => true,
            (None, _) => false,
        }
    }

    /// The arguments of a call as they are shown, whatever else the template wants of the conversation.
    fn shown_arguments(&self, arguments: Arguments) -> Option<String> {
        let contents = [Json::Null, json!(""), json!("c")];
        let mut tried = contents.iter().flat_map(|content| {
            [Some(json!("r")), None].map(|answer| Cow::<[Json]>::Owned(called(content, arguments, answer)))
        });
        tried.find_map(|messages| self.render(&messages).filter(|text| text.contains(ARGUMENT)))
    }

    fn arguments(&self) -> Arguments {
        let printed = format!("'{ARGUMENT}'");
        let quoted = format!("\\\"{ARGUMENT}");
        let object = self.shown_arguments(Arguments::Object).is_some_and(|text| !text.contains(&printed));
        let text = || self.shown_arguments(Arguments::Text).is_some_and(|text| !text.contains(&quoted));
        if !object && text() { Arguments::Text } else { Arguments::Object }
    }

    fn thoughts(&self, arguments: Arguments) -> &'static str {
        let reads = |name: &str| {
            let thinking = |mut messages: Vec<Json>| {
                messages[1][name] = json!(THOUGHT);
                self.render(&messages).is_some_and(|text| text.contains(THOUGHT))
            };
            let said = json!({"role": "assistant", "content": "c"});
            thinking(vec![user(json!("q")), said])
                || thinking(called(&Json::Null, arguments, Some(json!("r"))))
                || thinking(called(&json!(""), arguments, Some(json!("r"))))
        };
        THOUGHT_NAMES.into_iter().find(|name| reads(name)).unwrap_or(THOUGHT_NAMES[0])
    }

    fn needs_parameters(&self) -> bool {
        let messages = [user(json!("q"))];
        let tool = |function: Json| [json!({"type": "function", "function": function})];
        let without = tool(json!({"name": "f", "description": "d"}));
        let with = tool(json!({"name": "f", "description": "d", "parameters": no_arguments()}));
        self.render_with(&messages, Some(&without)).is_none() && self.render_with(&messages, Some(&with)).is_some()
    }
}
