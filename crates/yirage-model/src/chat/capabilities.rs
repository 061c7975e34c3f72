//! What a template makes of the parts of a conversation, found by rendering small conversations with marks in them.
//!
//! Clients send messages in one form, templates read them in many: content as text or as parts, arguments as an object
//! or as JSON text, thoughts under one of several names. What a template does is tried, and not guessed from its
//! source. [`Capabilities::adapt`] is the one place where messages get the shape that a template reads.
//!
//! This module does not know protocols: it takes messages whose content is text, a list of parts or null, and whose
//! arguments are an object or JSON text.

use std::io;

use serde::Serialize;
use serde_json::ser::Formatter;
use serde_json::{Map, Value as Json, json};

use super::call_ids::give_call_ids;
use super::error::ChatError;
use super::inputs::{ChatInputs, RenderedChat};
use super::trial_steps::TrialSteps;
use super::turns::TurnRules;

/// Marks that no template writes by itself.
const CONTENT: &str = "xq7content";
const SECOND: &str = "xq7second";
const CALLED: &str = "xq7called";
const ARGUMENT: &str = "xq7argument";
const THOUGHT: &str = "xq7thought";

/// The names that templates read thoughts under; the first one where none is read.
pub const THOUGHT_NAMES: [&str; 3] = ["reasoning_content", "reasoning", "thinking"];

/// How a template reads what a message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentSupport {
    /// A text is shown as it is.
    pub text: bool,
    /// A list of one part is shown as its text.
    pub part: bool,
    /// A list of several parts is shown as their texts, and none is left out.
    pub parts: bool,
}

/// How a template reads the arguments of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolArgumentsFormat {
    /// As an object.
    Object,
    /// As the JSON text of one.
    Text,
}

/// How a template reads thoughts that are parts of content: `{"type": "thinking", "thinking": ...}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThoughtPart {
    /// As a text.
    Text,
    /// As a list of parts of text.
    List,
}

/// What a template reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Content of the system's messages.
    pub system: ContentSupport,
    /// Content of the user's messages.
    pub user: ContentSupport,
    /// Content of the assistant's messages.
    pub assistant: ContentSupport,
    /// Content of what tools answer.
    pub tool: ContentSupport,
    /// Content beside calls may be null.
    pub null_beside_calls: bool,
    /// Calls beside an empty text are shown, as they are beside null.
    pub empty_beside_calls: bool,
    /// Content of a message without calls may be null.
    pub null_alone: bool,
    /// Calls of the past are shown.
    pub calls: bool,
    /// Arguments of calls.
    pub arguments: ToolArgumentsFormat,
    /// The name that thoughts have.
    pub thoughts: &'static str,
    /// How thoughts are read as parts of content, where they are read under no name.
    pub thought_part: Option<ThoughtPart>,
    /// A tool without `parameters` ends the rendering, where one with them does not.
    pub needs_parameters: bool,
    /// The same of descriptions, of tools and of their parameters.
    pub needs_descriptions: bool,
    /// Ids of calls other than nine letters and digits end the rendering.
    pub short_call_ids: bool,
    /// Calls without ids end the rendering.
    pub needs_call_ids: bool,
    /// Which messages may not stand as they were sent.
    pub turns: TurnRules,
}

impl Capabilities {
    /// Tries a template, which `render` renders.
    pub(super) fn of(render: &RenderFn<'_>) -> Self {
        let probe = TemplateProbe { render, steps: TrialSteps::default() };
        let arguments = probe.arguments();
        let thoughts = probe.thoughts(arguments);
        let assistant = probe.content(|content| {
            vec![user(json!("q")), json!({"role": "assistant", "content": content}), user(json!("q"))]
        });
        Self {
            system: probe.content(|content| vec![json!({"role": "system", "content": content}), user(json!("q"))]),
            user: probe.content(|content| vec![user(content)]),
            assistant,
            tool: probe.content(|content| called(&json!(""), arguments, Some(content))),
            null_beside_calls: probe.null(CALLED, |content| called(content, arguments, Some(json!("r")))),
            empty_beside_calls: probe
                .render(&called(&json!(""), arguments, None))
                .is_some_and(|text| text.contains(CALLED) && text.contains(ARGUMENT)),
            null_alone: probe.null(CONTENT, |content| {
                vec![user(json!("q")), json!({"role": "assistant", "content": content}), user(json!(CONTENT))]
            }),
            // What was not tried may be shown.
            calls: [ToolArgumentsFormat::Object, ToolArgumentsFormat::Text]
                .iter()
                .any(|arguments| probe.shown_arguments(*arguments).is_some())
                || probe.steps.are_spent(),
            arguments,
            thoughts: thoughts.unwrap_or(THOUGHT_NAMES[0]),
            thought_part: if thoughts.is_none() { probe.thought_part() } else { None },
            needs_parameters: probe.needs_parameters(),
            needs_descriptions: probe.needs_descriptions(),
            short_call_ids: probe.refuses_ids(arguments, Some("call_0123456789")),
            needs_call_ids: probe.refuses_ids(arguments, None),
            turns: probe.turns(arguments, thoughts),
        }
    }

    /// Messages in the shape that the template reads.
    pub fn adapt(&self, messages: &[Json]) -> Vec<Json> {
        let one = |message: &Json| message.as_object().map_or_else(|| message.clone(), |m| self.one(m));
        let mut messages: Vec<Json> = self.turns.joined(messages, &THOUGHT_NAMES).iter().map(one).collect();
        if self.short_call_ids || self.needs_call_ids {
            give_call_ids(&mut messages, self.short_call_ids);
        }
        messages
    }

    /// Tools in the shape that the template reads: as they are, but that a schema of no arguments takes the place of
    /// one that is missing, and an empty description that of another, where the template cannot do without.
    pub fn adapt_tools(&self, tools: Vec<Json>) -> Vec<Json> {
        let mut tools = tools;
        for tool in tools.iter_mut().filter(|_| self.needs_parameters) {
            if let Some(function) = tool.get_mut("function").and_then(Json::as_object_mut)
                && function.get("parameters").is_none_or(Json::is_null)
            {
                function.insert("parameters".to_owned(), no_arguments());
            }
        }
        for tool in tools.iter_mut().filter(|_| self.needs_descriptions) {
            if let Some(function) = tool.get_mut("function") {
                describe(function);
                function.get_mut("parameters").into_iter().for_each(describe_properties);
            }
        }
        tools
    }

    fn one(&self, message: &Map<String, Json>) -> Json {
        let role = message.get("role").and_then(Json::as_str).unwrap_or_default();
        let calls = message.get("tool_calls").and_then(Json::as_array).is_some_and(|calls| !calls.is_empty());
        let null = role == "assistant" && if calls { self.null_beside_calls } else { self.null_alone };
        let part = self.thought(message).filter(|_| role == "assistant");
        let mut out = Map::new();
        for (key, value) in message {
            match key.as_str() {
                // A call would be lost that is looked for beside null alone.
                "content" if calls && value == "" && null && !self.empty_beside_calls => {
                    out.insert(key.clone(), Json::Null)
                }
                "content" => out.insert(key.clone(), self.content(role).shape(value, null)),
                "tool_calls" => out.insert(key.clone(), self.calls(value)),
                // Put in front of the content, below.
                name if THOUGHT_NAMES.contains(&name) && part.is_some() => None,
                name if THOUGHT_NAMES.contains(&name) => out.insert(self.thoughts.to_owned(), value.clone()),
                _ => out.insert(key.clone(), value.clone()),
            };
        }
        if let Some(part) = part {
            let content = out.entry("content").or_insert(Json::Null);
            let said = match content.take() {
                Json::Array(parts) => parts,
                Json::String(text) if !text.is_empty() => text_parts(&text),
                _ => Vec::new(),
            };
            *content = std::iter::once(part).chain(said).collect();
        }
        Json::Object(out)
    }

    /// The thoughts of a message as a part of its content, where the template reads them so.
    fn thought(&self, message: &Map<String, Json>) -> Option<Json> {
        let part = self.thought_part?;
        let thought = THOUGHT_NAMES.into_iter().find_map(|name| message.get(name)?.as_str());
        thought.filter(|thought| !thought.is_empty()).map(|thought| part.of(thought))
    }

    fn content(&self, role: &str) -> ContentSupport {
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

impl ContentSupport {
    /// Both forms stay as they were sent where the template reads both, as its makers' renderer leaves them.
    fn shape(self, content: &Json, null: bool) -> Json {
        let kept = self.parts || self.part && content.as_array().is_some_and(|parts| parts.len() == 1);
        match content {
            Json::Null if null => Json::Null,
            Json::Null => json!(""),
            Json::String(text) if !self.text && self.part => one_part(text),
            Json::Array(parts) if !kept => {
                let texts: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
                let text = texts.join("\n");
                if !self.text && self.part { one_part(&text) } else { Json::String(text) }
            }
            other => other.clone(),
        }
    }
}

impl ThoughtPart {
    fn of(self, thought: &str) -> Json {
        match self {
            Self::Text => json!({"type": "thinking", "thinking": thought}),
            Self::List => json!({"type": "thinking", "thinking": text_parts(thought)}),
        }
    }
}

impl ToolArgumentsFormat {
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

fn one_part(text: &str) -> Json {
    Json::Array(text_parts(text))
}

fn text_parts(text: &str) -> Vec<Json> {
    vec![json!({"type": "text", "text": text})]
}

fn no_arguments() -> Json {
    json!({"type": "object", "properties": {}})
}

/// Gives an object an empty description where it has none.
fn describe(of: &mut Json) {
    if let Some(of) = of.as_object_mut()
        && of.get("description").is_none_or(Json::is_null)
    {
        of.insert("description".to_owned(), "".into());
    }
}

/// The same for the properties of a schema, and for theirs.
fn describe_properties(schema: &mut Json) {
    for property in schema.get_mut("properties").and_then(Json::as_object_mut).into_iter().flat_map(Map::values_mut) {
        describe(property);
        describe_properties(property);
        property.get_mut("items").into_iter().for_each(describe_properties);
    }
}

/// A conversation with a call, and the tool's answer where there is one. The id is as the strictest templates want it.
fn called(content: &Json, arguments: ToolArgumentsFormat, answer: Option<Json>) -> Vec<Json> {
    let arguments = match arguments {
        ToolArgumentsFormat::Object => json!({ARGUMENT: "v"}),
        ToolArgumentsFormat::Text => json!(format!("{{\"{ARGUMENT}\": \"v\"}}")),
    };
    let call = json!({"id": "abcdefghi", "type": "function", "function": {"name": CALLED, "arguments": arguments}});
    let mut messages = vec![user(json!("q")), json!({"role": "assistant", "content": content, "tool_calls": [call]})];
    let answer =
        answer.map(|answer| json!({"role": "tool", "tool_call_id": "abcdefghi", "name": CALLED, "content": answer}));
    messages.extend(answer);
    messages
}

/// How a template is rendered.
pub(super) type RenderFn<'r> = dyn Fn(&ChatInputs<'_>) -> Result<RenderedChat, ChatError> + 'r;

/// A template under trial.
struct TemplateProbe<'r> {
    render: &'r RenderFn<'r>,
    steps: TrialSteps,
}

impl TemplateProbe<'_> {
    /// What becomes of messages, with a tool to call and, should that fail, without.
    fn render(&self, messages: &[Json]) -> Option<String> {
        let function = json!({"name": CALLED, "description": "d", "parameters": no_arguments()});
        let tools = [json!({"type": "function", "function": function})];
        self.render_with(messages, Some(&tools)).or_else(|| self.render_with(messages, None))
    }

    fn render_with(&self, messages: &[Json], tools: Option<&[Json]>) -> Option<String> {
        let add_generation_prompt = messages.last().is_none_or(|last| last["role"] != "assistant");
        let inputs = ChatInputs { tools, add_generation_prompt, trial: Some(&self.steps), ..ChatInputs::new(messages) };
        if self.steps.are_spent() {
            return None;
        }
        (self.render)(&inputs).map(|rendered| rendered.text).ok()
    }

    fn content(&self, conversation: impl Fn(Json) -> Vec<Json>) -> ContentSupport {
        let shown = |content: Json| {
            let messages = conversation(content);
            self.render_with(&messages, None).or_else(|| self.render(&messages)).filter(|text| text.contains(CONTENT))
        };
        let text = shown(json!(CONTENT));
        // A list that is printed as a list shows the names of its fields, which the template may also write itself.
        let names = |text: &str| text.matches("'text'").count() + text.matches("\"text\"").count();
        let usual = text.as_deref().map_or(0, names);
        let read = |text: &String| names(text) <= usual;
        let part = shown(one_part(CONTENT)).filter(read).is_some();
        let two = json!([{"type": "text", "text": CONTENT}, {"type": "text", "text": SECOND}]);
        let parts = part && shown(two).filter(read).is_some_and(|text| text.contains(SECOND));
        ContentSupport { text: text.is_some(), part, parts }
    }

    /// Whether null is shown as nothing, and nothing else of the conversation is lost by it.
    fn null(&self, mark: &str, conversation: impl Fn(&Json) -> Vec<Json>) -> bool {
        let (null, empty) = (self.render(&conversation(&Json::Null)), self.render(&conversation(&json!(""))));
        let count = |text: &str, word: &str| text.matches(word).count();
        match (null, empty) {
            (Some(null), Some(empty)) => {
                // As Python prints it, and as JSON does.
                let printed = |text: &str| count(text, "None") + count(text, "null");
                count(&null, mark) >= count(&empty, mark) && printed(&null) <= printed(&empty)
            }
            (Some(_), None) => true,
            (None, _) => false,
        }
    }

    /// The arguments of a call as they are shown, whatever else the template wants of the conversation.
    fn shown_arguments(&self, arguments: ToolArgumentsFormat) -> Option<String> {
        let contents = [Json::Null, json!(""), json!("c")];
        let mut tried = contents
            .iter()
            .flat_map(|content| [Some(json!("r")), None].map(|answer| called(content, arguments, answer)));
        tried.find_map(|messages| self.render(&messages).filter(|text| text.contains(ARGUMENT)))
    }

    fn arguments(&self) -> ToolArgumentsFormat {
        let printed = format!("'{ARGUMENT}'");
        let quoted = format!("\\\"{ARGUMENT}");
        let object = self.shown_arguments(ToolArgumentsFormat::Object).is_some_and(|text| !text.contains(&printed));
        let text = || self.shown_arguments(ToolArgumentsFormat::Text).is_some_and(|text| !text.contains(&quoted));
        if !object && text() { ToolArgumentsFormat::Text } else { ToolArgumentsFormat::Object }
    }

    fn thoughts(&self, arguments: ToolArgumentsFormat) -> Option<&'static str> {
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
        THOUGHT_NAMES.into_iter().find(|name| reads(name))
    }

    /// How thoughts beside a text are read as parts of content. What prints a part as it is writes its fields as well.
    fn thought_part(&self) -> Option<ThoughtPart> {
        let read = |part: &ThoughtPart| {
            let said = std::iter::once(part.of(THOUGHT)).chain(text_parts(CONTENT)).collect::<Json>();
            let text = self.render(&[user(json!("q")), json!({"role": "assistant", "content": said})]);
            let printed = ["'type'", "\"type\"", "'text'", "\"text\""];
            text.is_some_and(|text| {
                text.contains(THOUGHT) && text.contains(CONTENT) && !printed.iter().any(|name| text.contains(name))
            })
        };
        [ThoughtPart::List, ThoughtPart::Text].into_iter().find(read)
    }

    fn needs_parameters(&self) -> bool {
        let messages = [user(json!("q"))];
        let tool = |function: Json| [json!({"type": "function", "function": function})];
        let without = tool(json!({"name": "f", "description": "d"}));
        let with = tool(json!({"name": "f", "description": "d", "parameters": no_arguments()}));
        self.render_with(&messages, Some(&without)).is_none() && self.render_with(&messages, Some(&with)).is_some()
    }

    fn needs_descriptions(&self) -> bool {
        let messages = [user(json!("q"))];
        let parameters = json!({"type": "object", "properties": {"p": {"type": "string"}}, "required": ["p"]});
        let bare = json!({"type": "function", "function": {"name": "f", "parameters": parameters}});
        let mut described = bare.clone();
        describe(&mut described["function"]);
        describe_properties(&mut described["function"]["parameters"]);
        self.render_with(&messages, Some(&[bare])).is_none()
            && self.render_with(&messages, Some(&[described])).is_some()
    }

    /// Whether calls are refused for their id alone, or for having none.
    fn refuses_ids(&self, arguments: ToolArgumentsFormat, id: Option<&str>) -> bool {
        [Json::Null, json!("")].iter().any(|content| {
            let short = called(content, arguments, Some(json!("r")));
            let mut other = short.clone();
            match id {
                Some(id) => {
                    other[1]["tool_calls"][0]["id"] = id.into();
                    other[2]["tool_call_id"] = id.into();
                }
                None => {
                    other[1]["tool_calls"][0].as_object_mut().map(|call| call.remove("id"));
                    other[2].as_object_mut().map(|answer| answer.remove("tool_call_id"));
                }
            }
            self.render(&short).is_some() && self.render(&other).is_none() && !self.steps.are_spent()
        })
    }

    /// Which turns are refused or left out. What is shown neither way is left as it is.
    fn turns(&self, arguments: ToolArgumentsFormat, thoughts: Option<&str>) -> TurnRules {
        let shows = |messages: &[Json], marks: &[&str]| {
            let whole = |text: &String| marks.iter().all(|mark| text.contains(mark));
            self.render_with(messages, None).filter(whole).or_else(|| self.render(messages).filter(whole)).is_some()
        };
        // Text where it is read, else one part.
        let is_text = shows(&[user(json!(CONTENT))], &[CONTENT]);
        let say = |role: &str, text: &str| {
            let content = if is_text { json!(text) } else { one_part(text) };
            json!({"role": role, "content": content})
        };
        let lost = |with: &[Json], without: &[Json]| {
            shows(without, &[SECOND]) && !shows(with, &[CONTENT, SECOND]) && !self.steps.are_spent()
        };
        let (first, last) = (say("user", "q"), say("user", SECOND));
        let answer = say("assistant", "a");
        let no_system = lost(&[say("system", CONTENT), last.clone()], std::slice::from_ref(&last));
        let systems = [say("system", CONTENT), say("system", SECOND), first.clone()];
        let later = [first.clone(), answer.clone(), say("system", CONTENT), last.clone()];
        let users = [say("user", CONTENT), last.clone()];
        let called_text = |content: Json| called(&content, arguments, Some(json!("r")));
        let calls = [Json::Null, json!("")].into_iter().map(called_text).find(|messages| shows(messages, &[CALLED]));
        let behind_tool = calls.is_some_and(|mut calls| {
            calls.push(last.clone());
            !shows(&calls, &[CALLED, SECOND]) && !self.steps.are_spent()
        });
        let thinks = |content: &str, thought: bool| {
            let mut messages = called_text(content.into());
            if let Some(name) = thoughts.filter(|_| thought) {
                messages[1][name] = THOUGHT.into();
            }
            self.render(&messages).is_some()
        };
        TurnRules {
            no_system,
            one_system: lost(&systems, &systems[1..]),
            system_first: !no_system && lost(&later, &[first, answer, last.clone()]),
            one_user: lost(&users, &[last]),
            no_user_behind_tool: behind_tool,
            thought_or_text: thoughts.is_some() && !thinks("c", true) && thinks("c", false) && thinks("", true),
        }
    }
}

#[cfg(test)]
mod tests;
