//! A call that no template speaks of by itself, rendered as one of the past and read back.

use super::declared::DeclaredTools;
use super::family::{Calls, OutputFormat};
use super::forms::{self, ToolCallForm};
use super::parser::ResponseParser;
use super::piece::{CallPart, ResponsePiece};
use crate::tools::Tool;
use serde_json::{Value, json};
use yirage_model::chat::ChatInputs;

/// The call that is tried, of which no template speaks by itself.
const NAME: &str = "lookup_tides";
pub(super) const QUESTION: &str = "when-is-high-water-9137";

/// The same for a second one.
const SECOND: &str = "count_gulls";

/// Renders a conversation; none where the template refuses it.
pub(crate) type TemplateRenderer<'a> = &'a dyn Fn(ChatInputs<'_>) -> Option<String>;

/// Calls as they are tried: most often the first alone.
pub(super) struct ToolCallTrial {
    pub(super) tools: [Tool; 2],
    pub(super) arguments: [Value; 2],
}

/// How a template is given calls.
pub(super) struct CallRendering {
    content: Value,
    /// Whether arguments are text.
    as_text: bool,
    /// Whether ids hold the names.
    named: bool,
    /// Whether the tools' answers follow.
    pub(super) answered: bool,
}

/// What became of a call of the past.
pub(super) enum CallsRead {
    /// It is read in a form, and how the template was given it.
    As(Calls, CallRendering),
    /// The template writes it in a form that is not known.
    Unknown,
    /// The template writes none.
    Nowhere,
}

impl ToolCallTrial {
    /// Ids of nine letters, as some templates want them.
    pub(super) const IDS: [&str; 2] = ["a1B2c3D4e", "f5G6h7J8k"];

    pub(super) fn new() -> ToolCallTrial {
        let tool = |name: &str, words: &str, text: &str, number: &str| {
            let properties = json!({
                text: {"type": "string", "description": "where"},
                number: {"type": "integer", "description": "for how long"},
            });
            let parameters = json!({"type": "object", "properties": properties, "required": [text, number]});
            let function = json!({"name": name, "description": words, "parameters": parameters});
            let shown = json!({"type": "function", "function": function});
            Tool { name: name.to_owned(), parameters, shown, strict: false }
        };
        ToolCallTrial {
            tools: [
                tool(NAME, "tides of a harbour", "harbour", "days"),
                tool(SECOND, "gulls on a beach", "beach", "times"),
            ],
            arguments: [json!({"harbour": "Vlissingen", "days": 31}), json!({"beach": "Zandvoort", "times": 47})],
        }
    }

    /// A question, so many calls, and what the tools say.
    pub(super) fn messages(&self, way: &CallRendering, calls: usize) -> Vec<Value> {
        // Some templates write the id in the place of the name.
        let id = |at: usize| match way.named {
            true => format!("functions.{}:{at}", self.tools[at].name),
            false => ToolCallTrial::IDS[at].to_owned(),
        };
        let call = |at: usize| {
            let arguments = &self.arguments[at];
            let arguments = if way.as_text { arguments.to_string().into() } else { arguments.clone() };
            let function = json!({"name": self.tools[at].name, "arguments": arguments});
            json!({"id": id(at), "type": "function", "function": function})
        };
        let said: Vec<Value> = (0..calls).map(call).collect();
        let mut messages = vec![
            json!({"role": "user", "content": QUESTION}),
            json!({"role": "assistant", "content": way.content, "tool_calls": said}),
        ];
        let answer = |at: usize| json!({"role": "tool", "tool_call_id": id(at), "name": self.tools[at].name, "content": "04:12"});
        messages.extend((0..calls).map(answer));
        messages
    }

    /// The form of a call that the template writes, and how it was given that.
    pub(super) fn read_back(&self, render: TemplateRenderer<'_>) -> CallsRead {
        let mut written = false;
        let tools = [self.tools[0].shown.clone()];
        for content in [Value::Null, "".into()] {
            for as_text in [false, true] {
                for named in [false, true] {
                    for answered in [false, true] {
                        let way = CallRendering { content: content.clone(), as_text, named, answered };
                        let messages = self.messages(&way, 1);
                        let inputs = ChatInputs {
                            tools: Some(&tools),
                            add_generation_prompt: false,
                            ..ChatInputs::new(&messages[..if answered { 3 } else { 2 }])
                        };
                        let Some(text) = render(inputs) else { continue };
                        if let Some(calls) = self.read(&text) {
                            return CallsRead::As(calls, way);
                        }
                        written |= self.is_written(&text);
                    }
                }
            }
        }
        if written { CallsRead::Unknown } else { CallsRead::Nowhere }
    }

    /// Whether a rendered conversation shows the call behind the question, in whatever form.
    fn is_written(&self, text: &str) -> bool {
        let behind = text.rfind(QUESTION).and_then(|at| text.get(at..)).unwrap_or_default();
        behind.contains(NAME) && self.arguments[0]["harbour"].as_str().is_some_and(|value| behind.contains(value))
    }

    /// The form by which a rendered conversation holds the call behind the question.
    fn read(&self, text: &str) -> Option<Calls> {
        let answer = &text[text.rfind(QUESTION)? + QUESTION.len()..];
        if answer.contains("<|channel|>") {
            let begin = answer.find("<|start|>assistant")? + "<|start|>assistant".len();
            return self.reads(Calls::Harmony, &answer[begin..]).then_some(Calls::Harmony);
        }
        // A form may also be read without its opener: the one counts whose opener is there.
        let opened = |form: &&'static ToolCallForm| self.appears_in(form, answer, false);
        forms::all()
            .find(opened)
            .or_else(|| forms::all().find(|form| self.appears_in(form, answer, true)))
            .map(Calls::Form)
    }

    /// Whether the call stands somewhere in `text` in a form, whose openers may stay where they are part of the call.
    fn appears_in(&self, form: &'static ToolCallForm, text: &str, stays: bool) -> bool {
        let calls = Calls::Form(form);
        let mut openers = form.openers.iter().filter(|opener| stays || !opener.stays);
        if openers.any(|opener| text.contains(opener.text)) && self.reads(calls, text) {
            return true;
        }
        let mut starts = form.at_start.iter().flat_map(|mark| text.match_indices(mark).map(|(at, _)| at));
        starts.any(|at| self.reads(calls, &text[at..]))
    }

    /// Whether the first call that a parser finds is the one that was written.
    fn reads(&self, calls: Calls, text: &str) -> bool {
        let family = OutputFormat { calls: Some(calls), thoughts: None };
        let mut parser = ResponseParser::new(&family, false, DeclaredTools::new(&self.tools[..1]));
        let mut pieces = parser.push(text);
        pieces.extend(parser.finish());
        let (mut name, mut arguments) = (None, String::new());
        for piece in pieces {
            match piece {
                ResponsePiece::Call(CallPart::Begin(text)) => name = Some(text),
                ResponsePiece::Call(CallPart::Arguments(text)) => arguments.push_str(&text),
                ResponsePiece::Call(CallPart::End) => break,
                ResponsePiece::Content(_) | ResponsePiece::Reasoning(_) => {}
            }
        }
        name.as_deref() == Some(NAME)
            && serde_json::from_str::<Value>(&arguments).is_ok_and(|found| found == self.arguments[0])
    }

    /// The form of which a prompt with tools tells the model.
    pub(super) fn described_form(&self, render: TemplateRenderer<'_>) -> Option<Calls> {
        let tools = [self.tools[0].shown.clone()];
        let messages = [json!({"role": "user", "content": QUESTION})];
        let with_tools = render(ChatInputs { tools: Some(&tools), ..ChatInputs::new(&messages) })?;
        // A template that shows the tool to nobody calls none.
        if !with_tools.contains(NAME) {
            return None;
        }
        let told = |form: &&'static ToolCallForm| {
            form.prompt_marks.iter().any(|marks| marks.iter().all(|mark| with_tools.contains(mark)))
        };
        forms::all().find(told).map(Calls::Form)
    }
}
