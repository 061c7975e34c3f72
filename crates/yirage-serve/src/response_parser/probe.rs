//! Which family a model is of, found by trying its chat template.
//!
//! A call is rendered as one of the past, and the form whose parser reads that very call back is the model's. A template
//! that writes no calls of the past is taken at its word: what it tells the model of tools has the form's marks.

use super::declared::Declared;
use super::family::{Calls, Family};
use super::forms::{self, Form};
use super::parser::ResponseParser;
use super::piece::{CallPart, Piece};
use super::thoughts::Thoughts;
use crate::tools::Tool;
use serde_json::{Value, json};
use std::time::Instant;
use yirage_model::chat::{ChatInputs, ChatTemplate, MAX_TRIAL_TIME};
use yirage_session::Texts;

/// The call that is tried, of which no template speaks by itself.
const NAME: &str = "lookup_tides";
const ASKED: &str = "when-is-high-water-9137";

impl Family {
    /// What a template says of its model, found by rendering it.
    pub(crate) fn of(texts: &Texts, template: &ChatTemplate, source: &str) -> Family {
        Family::by(source, &|inputs| texts.render(template, inputs).ok().map(|rendered| rendered.text))
    }

    /// What a template of this source says, which `render` renders; none where it refuses.
    pub(super) fn by(source: &str, render: Render<'_>) -> Family {
        let thoughts = Thoughts::of(source);
        if !source.contains("tools") {
            return Family { calls: is_harmony(source).then_some(Calls::Harmony), thoughts };
        }
        let probe = Probe::new();
        let began = Instant::now();
        // What takes that long with so little is not tried again.
        let render: Render<'_> = &|inputs| (began.elapsed() < MAX_TRIAL_TIME).then(|| render(inputs))?;
        let calls = probe.written(render).or_else(|| probe.told(render));
        let calls = calls.or_else(|| is_harmony(source).then_some(Calls::Harmony));
        Family { calls, thoughts }
    }
}

/// Renders a conversation; none where the template refuses it.
pub(super) type Render<'a> = &'a dyn Fn(ChatInputs<'_>) -> Option<String>;

fn is_harmony(source: &str) -> bool {
    ["<|channel|>", "<|message|>", "final"].iter().all(|mark| source.contains(mark))
}

/// A call as it is tried.
struct Probe {
    tool: Tool,
    arguments: Value,
}

impl Probe {
    fn new() -> Probe {
        let properties = json!({
            "harbour": {"type": "string", "description": "where"},
            "days": {"type": "integer", "description": "for how long"},
        });
        let parameters = json!({"type": "object", "properties": properties, "required": ["harbour", "days"]});
        let function = json!({"name": NAME, "description": "tides of a harbour", "parameters": parameters});
        let shown = json!({"type": "function", "function": function});
        let tool = Tool { name: NAME.to_owned(), parameters, shown, strict: false };
        Probe { tool, arguments: json!({"harbour": "Vlissingen", "days": 31}) }
    }

    /// The form of a call that the template writes.
    fn written(&self, render: Render<'_>) -> Option<Calls> {
        let tools = [self.tool.shown.clone()];
        let shapes = [self.arguments.clone(), self.arguments.to_string().into()];
        // Some want ids of nine letters, others write the id in the place of the name.
        let ids = ["a1B2c3D4e".to_owned(), format!("functions.{NAME}:0")];
        for content in [Value::Null, "".into()] {
            for arguments in &shapes {
                for id in &ids {
                    let function = json!({"name": NAME, "arguments": arguments});
                    let call = json!({"id": id, "type": "function", "function": function});
                    let messages = [
                        json!({"role": "user", "content": ASKED}),
                        json!({"role": "assistant", "content": content, "tool_calls": [call]}),
                        json!({"role": "tool", "tool_call_id": id, "name": NAME, "content": "04:12"}),
                    ];
                    for until in [2, 3] {
                        let inputs = ChatInputs {
                            tools: Some(&tools),
                            add_generation_prompt: false,
                            ..ChatInputs::new(&messages[..until])
                        };
                        let found = render(inputs).and_then(|text| self.read(&text));
                        if found.is_some() {
                            return found;
                        }
                    }
                }
            }
        }
        None
    }

    /// The form by which a rendered conversation holds the call behind the question.
    fn read(&self, text: &str) -> Option<Calls> {
        let answer = &text[text.rfind(ASKED)? + ASKED.len()..];
        if answer.contains("<|channel|>") {
            let begin = answer.find("<|start|>assistant")? + "<|start|>assistant".len();
            return self.reads(Calls::Harmony, &answer[begin..]).then_some(Calls::Harmony);
        }
        // A form may also be read without its opener: the one counts whose opener is there.
        let opened = |form: &&'static Form| self.found(form, answer, false);
        forms::all().find(opened).or_else(|| forms::all().find(|form| self.found(form, answer, true))).map(Calls::Form)
    }

    /// Whether the call stands somewhere in `text` in a form, whose openers may stay where they are part of the call.
    fn found(&self, form: &'static Form, text: &str, stays: bool) -> bool {
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
        let family = Family { calls: Some(calls), thoughts: None };
        let mut parser = ResponseParser::new(&family, false, Declared::new(std::slice::from_ref(&self.tool)));
        let mut pieces = parser.push(text);
        pieces.extend(parser.finish());
        let (mut name, mut arguments) = (None, String::new());
        for piece in pieces {
            match piece {
                Piece::Call(CallPart::Begin(text)) => name = Some(text),
                Piece::Call(CallPart::Arguments(text)) => arguments.push_str(&text),
                Piece::Call(CallPart::End) => break,
                Piece::Content(_) | Piece::Reasoning(_) => {}
            }
        }
        name.as_deref() == Some(NAME)
            && serde_json::from_str::<Value>(&arguments).is_ok_and(|found| found == self.arguments)
    }

    /// The form of which a prompt with tools tells the model.
    fn told(&self, render: Render<'_>) -> Option<Calls> {
        let tools = [self.tool.shown.clone()];
        let messages = [json!({"role": "user", "content": ASKED})];
        let with_tools = render(ChatInputs { tools: Some(&tools), ..ChatInputs::new(&messages) })?;
        // A template that shows the tool to nobody calls none.
        if !with_tools.contains(NAME) {
            return None;
        }
        let told =
            |form: &&'static Form| form.told.iter().any(|marks| marks.iter().all(|mark| with_tools.contains(mark)));
        forms::all().find(told).map(Calls::Form)
    }
}
