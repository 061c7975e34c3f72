//! What a template makes of the parts of a conversation, found by rendering small conversations with marks in them.
//!
//! Clients send messages in one form, templates read them in many: content as text or as parts, arguments as an object
//! or as JSON text, thoughts under one of several names. What a template does is tried, and not guessed from its
//! source. [`Capabilities::adapt`] is the one place where messages get the shape that a template reads.
//!
//! This module does not know protocols: it takes messages whose content is text, a list of parts or null, and whose
//! arguments are an object or JSON text.

use std::cell::Cell;
use std::io;
use std::time::Instant;

use serde::Serialize;
use serde_json::ser::Formatter;
use serde_json::{Map, Value as Json, json};

use super::error::ChatError;
use super::inputs::{ChatInputs, RenderedChat};
use super::limits::MAX_TRIAL_TIME;

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
    /// Arguments of calls.
    pub arguments: ToolArgumentsFormat,
    /// The name that thoughts have.
    pub thoughts: &'static str,
    /// How thoughts are read as parts of content, where they are read under no name.
    pub thought_part: Option<ThoughtPart>,
    /// A tool without `parameters` ends the rendering, where one with them does not.
    pub needs_parameters: bool,
}

impl Capabilities {
    /// Tries a template, which `render` renders.
    pub(super) fn of(render: &RenderFn<'_>) -> Self {
        let probe = TemplateProbe { render, began: Instant::now(), spent: Cell::new(false) };
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
            arguments,
            thoughts: thoughts.unwrap_or(THOUGHT_NAMES[0]),
            thought_part: if thoughts.is_none() { probe.thought_part() } else { None },
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
    began: Instant,
    /// A budget ran out: what takes that long with so little is not tried again.
    spent: Cell<bool>,
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
        let inputs = ChatInputs { tools, add_generation_prompt, ..ChatInputs::new(messages) };
        if self.spent.get() || self.began.elapsed() > MAX_TRIAL_TIME {
            return None;
        }
        match (self.render)(&inputs) {
            Ok(rendered) => Some(rendered.text),
            Err(error) => {
                self.spent.set(matches!(error, ChatError::Limit { .. }));
                None
            }
        }
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
                count(&null, mark) >= count(&empty, mark) && count(&null, "None") <= count(&empty, "None")
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::ChatTemplate;

    fn reads(source: &str) -> Capabilities {
        ChatTemplate::new("test", source).unwrap().capabilities().clone()
    }

    /// A template whose assistant writes `inner` for each message, and that shows every content as it is.
    fn of_messages(inner: &str) -> String {
        format!("{{% for m in messages %}}<{{{{ m.role }}}}>{inner}{{% endfor %}}")
    }

    const CALLS: &str = "{% for c in m.tool_calls or [] %}{{ c.function.name }}";

    /// Case 7: whether null stays null.
    #[test]
    fn null_is_kept_where_it_is_shown_as_nothing() {
        let calls = format!("{CALLS}{{{{ c.function.arguments }}}}{{% endfor %}}");
        for (content, beside, alone) in [
            ("{{ m.content }}", false, false),
            ("{{ m['content'] + '' }}", false, false),
            ("{{ m.content | trim }}", false, false),
            ("{% if m.content %}{{ m.content }}{% endif %}", true, true),
            ("{{ m.content or '' }}", true, true),
            ("{% if m.content is not none %}{{ m.content }}{% endif %}", true, true),
            ("{% if not m.tool_calls %}{{ m.content }}{% endif %}", true, false),
            (
                "{% if m.content is none and not m.tool_calls %}{{ raise_exception('no') }}{% endif %}{{ m.content or '' }}",
                true,
                false,
            ),
            ("{{ '' if m.content is none else m.content }}", true, true),
        ] {
            let found = reads(&of_messages(&format!("{content}{calls}")));
            assert_eq!((found.null_beside_calls, found.null_alone), (beside, alone), "{content}");
            assert!(found.empty_beside_calls, "{content}");
        }
        let strict =
            of_messages(&format!("{{% if m.content is none %}}{calls}{{% else %}}{{{{ m.content }}}}{{% endif %}}"));
        let found = reads(&strict);
        assert!(found.null_beside_calls && !found.empty_beside_calls);
        let call = json!({"function": {"name": "f", "arguments": "{}"}});
        for empty in [json!(""), Json::Null] {
            let sent = [json!({"role": "assistant", "content": empty, "tool_calls": [call]})];
            assert_eq!(found.adapt(&sent)[0]["content"], Json::Null);
        }
        let said = [json!({"role": "assistant", "content": "hm", "tool_calls": [call]})];
        assert_eq!(found.adapt(&said)[0]["content"], "hm");
    }

    #[test]
    fn content_is_given_as_it_is_read() {
        let text = ContentSupport { text: true, part: false, parts: false };
        let part = ContentSupport { text: false, part: true, parts: false };
        let parts = ContentSupport { text: false, part: true, parts: true };
        let both = ContentSupport { text: true, part: true, parts: true };
        let first = ContentSupport { text: true, part: true, parts: false };
        for (content, wanted) in [
            ("{{ m.content }}", text),
            ("{{ m.content | trim }}", text),
            ("{{ '>' + m['content'] }}", text),
            ("{{ m.content | tojson }}", text),
            (
                "{{ ' \"text\" ' }}{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}{{ p.text }}{% endfor %}{% endif %}",
                both,
            ),
            ("{% for p in m.content %}{{ p.text }}{% endfor %}", parts),
            ("{{ m.content[0].text }}", part),
            ("{{ m.content if m.content is string else m.content[0].text }}", first),
            ("{{ m.content | map(attribute='text') | join }}", parts),
            (
                "{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}{{ p['text'] }}{% endfor %}{% endif %}",
                both,
            ),
        ] {
            let found = reads(&of_messages(content));
            assert_eq!((found.user, found.system, found.assistant), (wanted, wanted, wanted), "{content}");
        }
        let mixed = "{% for m in messages %}{% if m.role == 'system' %}{{ m.content[0].text }}{% else %}{{ m.content }}{% endif %}{% endfor %}";
        let found = reads(mixed);
        assert_eq!((found.system, found.user), (part, text));
        let list = json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]);
        assert_eq!(text.shape(&list, false), "a\nb");
        assert_eq!(both.shape(&list, false), list);
        assert_eq!(parts.shape(&json!("a"), false), json!([{"type": "text", "text": "a"}]));
        assert_eq!(both.shape(&json!("a"), false), "a");
        assert_eq!(first.shape(&list, false), "a\nb");
        assert_eq!(part.shape(&list, false), json!([{"type": "text", "text": "a\nb"}]));
    }

    #[test]
    fn arguments_are_given_as_they_are_read() {
        for (arguments, wanted) in [
            ("{{ c.function.arguments }}", ToolArgumentsFormat::Text),
            ("{{ 'x' + c['function']['arguments'] }}", ToolArgumentsFormat::Text),
            ("{{ c.function.arguments.strip() }}", ToolArgumentsFormat::Text),
            ("{{ c.function.arguments | tojson }}", ToolArgumentsFormat::Object),
            ("{{ c.function | tojson }}", ToolArgumentsFormat::Object),
            ("{% for k, v in c.function.arguments.items() %}{{ k }}={{ v }}{% endfor %}", ToolArgumentsFormat::Object),
            (
                "{% for k in c.function.arguments %}{{ k }}{{ c.function.arguments[k] }}{% endfor %}",
                ToolArgumentsFormat::Object,
            ),
            (
                "{% if c.function.arguments is string %}{{ c.function.arguments }}{% else %}{{ c.function.arguments | tojson }}{% endif %}",
                ToolArgumentsFormat::Object,
            ),
            (
                "{% if c.function.arguments is mapping %}{{ raise_exception('text') }}{% endif %}{{ c.function.arguments }}",
                ToolArgumentsFormat::Text,
            ),
            ("", ToolArgumentsFormat::Object),
        ] {
            let source = of_messages(&format!("{{{{ m.content or '' }}}}{CALLS}{arguments}{{% endfor %}}"));
            assert_eq!(reads(&source).arguments, wanted, "{arguments}");
        }
        let sent = json!({"n": 12345678901234567890123_u128, "é": ["a", {}]});
        assert_eq!(ToolArgumentsFormat::Text.shape(&sent), r#"{"n": 12345678901234567890123, "é": ["a", {}]}"#);
        assert_eq!(ToolArgumentsFormat::Text.shape(&json!("{ }")), "{ }");
        assert_eq!(ToolArgumentsFormat::Object.shape(&json!(sent.to_string())), sent);
        assert_eq!(ToolArgumentsFormat::Object.shape(&json!("{ }")), json!({}));
    }

    #[test]
    fn thoughts_have_the_name_that_is_read() {
        for (thoughts, wanted) in [
            ("{{ m.reasoning_content }}", "reasoning_content"),
            ("{{ m.reasoning }}", "reasoning"),
            ("{% if m.thinking %}{{ m.thinking }}{% endif %}", "thinking"),
            ("{% if m.role == 'assistant' and m.tool_calls and m.thinking %}{{ m.thinking }}{% endif %}", "thinking"),
            ("{{ m.get('reasoning', '') }}", "reasoning"),
            ("{% if loop.last and m.reasoning is defined %}{{ m.reasoning }}{% endif %}", "reasoning"),
            ("{{ m.reasoning_content or m.thinking }}", "reasoning_content"),
            ("", "reasoning_content"),
        ] {
            let found = reads(&of_messages(&format!("{{{{ m.content }}}}{thoughts}")));
            assert_eq!(found.thoughts, wanted, "{thoughts}");
            let sent = [json!({"role": "assistant", "content": "a", "reasoning_content": "hm"})];
            assert_eq!(found.adapt(&sent)[0][wanted], "hm");
        }
    }

    /// Magistral's template, in its two makers' ways.
    #[test]
    fn thoughts_are_parts_of_content_where_they_are_read_so() {
        let list = "{% for b in p.thinking %}{{ b.text }}{% endfor %}";
        for (inner, part) in
            [(list, Some(ThoughtPart::List)), ("{{ p.thinking + '' }}", Some(ThoughtPart::Text)), ("", None)]
        {
            let source = of_messages(&format!(
                "{{% if m.content is string %}}{{{{ m.content }}}}{{% else %}}{{% for p in m.content %}}{{% if p.type == 'text' %}}\
                 {{{{ p.text }}}}{{% elif p.type == 'thinking' %}}[THINK]{inner}[/THINK]{{% endif %}}{{% endfor %}}{{% endif %}}"
            ));
            let template = ChatTemplate::new("test", &source).unwrap();
            let found = template.capabilities();
            assert_eq!(found.thought_part, part, "{inner}");
            if part.is_none() {
                continue;
            }
            let parts = json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]);
            for (content, shown) in [(json!("a"), "a"), (parts, "ab"), (Json::Null, ""), (json!(""), "")] {
                let sent = [json!({"role": "assistant", "content": content, "reasoning_content": "hm"})];
                let messages = found.adapt(&sent);
                let text = template.render(&ChatInputs { add_generation_prompt: false, ..ChatInputs::new(&messages) });
                assert_eq!(text.unwrap().text, format!("<assistant>[THINK]hm[/THINK]{shown}"), "{content}");
            }
            let plain = [json!({"role": "assistant", "content": "a"})];
            assert_eq!(found.adapt(&plain), plain);
        }
    }

    #[test]
    fn parameters_are_put_in_where_a_template_cannot_do_without() {
        let strict =
            "{% for t in tools %}{% for p in t.function.parameters.properties.items() %}{% endfor %}{% endfor %}";
        let bare = || vec![json!({"type": "function", "function": {"name": "f"}})];
        let filled = json!({"type": "function", "function": {"name": "f", "parameters": no_arguments()}});
        assert_eq!(reads(strict).adapt_tools(bare()), [filled]);
        assert_eq!(reads("{{ tools | tojson }}").adapt_tools(bare()), bare());
    }

    #[test]
    fn a_template_that_fails_at_everything_is_given_what_most_read() {
        let found = reads("{{ raise_exception('no') }}");
        assert_eq!((found.arguments, found.thoughts), (ToolArgumentsFormat::Object, "reasoning_content"));
        let list = json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]);
        let sent = [json!({"role": "user", "content": list}), json!({"role": "assistant", "content": null}), json!(3)];
        let wanted =
            [json!({"role": "user", "content": "a\nb"}), json!({"role": "assistant", "content": ""}), json!(3)];
        assert_eq!(found.adapt(&sent), wanted);
    }
}
