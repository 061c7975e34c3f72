//! How a template writes calls of the past, by which those are written that have to come.
//!
//! One call is rendered, and two: what stands between the end of a generation prompt and the name, between name and
//! arguments, between calls and behind them is the frame. It counts where the form's own parser reads calls in it back;
//! else the form's table says how they are written.

use super::declared::DeclaredTools;
use super::family::{Calls, OutputFormat};
use super::forms::ToolCallForm;
use super::frame::{ArgumentElement, ArgumentSyntax, CallFrame, ID, NUMBER};
use super::parser::ResponseParser;
use super::piece::{ResponsePiece, ToolCall};
use super::syntax::{ElementsSyntax, Syntax};
use super::thoughts::ThoughtMarks;
use super::trial::{CallRendering, QUESTION, TemplateRenderer, ToolCallTrial};
use serde_json::Value;
use std::ops::Range;
use yirage_model::chat::ChatInputs;

/// Bytes behind the last arguments that may belong to the calls.
const MAX_LAST: usize = 256;

/// What one way to render calls gives.
pub(super) struct Rendered<'a> {
    pub(super) trial: &'a ToolCallTrial,
    pub(super) rendering: &'a CallRendering,
    pub(super) form: &'static ToolCallForm,
    pub(super) thoughts: Option<ThoughtMarks>,
    pub(super) render: TemplateRenderer<'a>,
}

/// Where a call stands in an answer.
struct Spans {
    name: Range<usize>,
    arguments: Range<usize>,
}

impl Rendered<'_> {
    /// The frame in which the template writes calls; none where it writes them in no way that is read back.
    pub(super) fn frame(&self) -> Option<CallFrame> {
        let one = self.answer(1)?;
        let two = self.answer(2);
        self.form.syntaxes.iter().find_map(|syntax| {
            let frame = self.by(syntax, &one, two.as_deref())?;
            self.is_read_back(&frame).then_some(frame)
        })
    }

    /// What the assistant says where it makes so many calls, without its thoughts.
    fn answer(&self, calls: usize) -> Option<String> {
        let tools: Vec<Value> = self.trial.tools.iter().map(|tool| tool.shown.clone()).collect();
        let messages = self.trial.messages(self.rendering, calls);
        let inputs = |messages, add_generation_prompt| ChatInputs {
            tools: Some(&tools),
            add_generation_prompt,
            ..ChatInputs::new(messages)
        };
        let prompt = (self.render)(inputs(&messages[..1], true))?;
        let until = if self.rendering.answered { messages.len() } else { 2 };
        let text = (self.render)(inputs(&messages[..until], false))?;
        let asked = prompt.rfind(QUESTION)?;
        // What the prompt says of thoughts is not what an answer with calls has there.
        let open = self.thoughts.map(|thoughts| thoughts.open.trim_end());
        let thought = open.and_then(|open| prompt.rfind(open)).filter(|at| *at > asked);
        let answer = text.strip_prefix(&prompt[..thought.unwrap_or(prompt.len())])?;
        let thought = self.thoughts.filter(|thoughts| answer.trim_start().starts_with(thoughts.open.trim_end()));
        Some(match thought.and_then(|thoughts| answer.split_once(thoughts.close)) {
            Some((_, said)) => said.trim_start().to_owned(),
            None => answer.to_owned(),
        })
    }

    fn by(&self, syntax: &Syntax, one: &str, two: Option<&str>) -> Option<CallFrame> {
        let arguments = match syntax {
            Syntax::Objects(_) | Syntax::Named(_) => ArgumentSyntax::Json,
            Syntax::Elements(of) => ArgumentSyntax::Elements(self.element(of, one)?),
            Syntax::Python(_) => ArgumentSyntax::Python,
            Syntax::Braces(of) => ArgumentSyntax::Braces { quote: of.quote },
        };
        let call = self.spans(&arguments, one, 0, 0)?;
        let mut frame = CallFrame {
            first: one[..call.name.start].to_owned(),
            between: one[call.name.end..call.arguments.start].to_owned(),
            next: None,
            last: self.last(one, call.arguments.end)?,
            arguments,
            thought: None,
        };
        if let Some((text, a, b)) = two.and_then(|text| {
            let a = self.spans(&frame.arguments, text, 0, 0)?;
            let b = self.spans(&frame.arguments, text, 1, a.arguments.end)?;
            Some((text, a, b))
        }) {
            let mut next = text[a.arguments.end..b.name.start].to_owned();
            counted(&mut frame.first, &mut next);
            let between = text[b.name.end..b.arguments.start].to_owned();
            number(&mut frame.between, &between);
            frame.next = Some(next);
        }
        for text in [&mut frame.first, &mut frame.between, &mut frame.last].into_iter().chain(&mut frame.next) {
            ToolCallTrial::IDS.iter().for_each(|id| *text = text.replace(id, ID.encode_utf8(&mut [0; 4])));
        }
        Some(frame)
    }

    /// Where the call of this number stands behind `from`.
    fn spans(&self, kind: &ArgumentSyntax, text: &str, call: usize, from: usize) -> Option<Spans> {
        let (tool, arguments) = (&self.trial.tools[call], &self.trial.arguments[call]);
        let name = find_word(text, &tool.name, from)?;
        let begin = name.end;
        let closed = |open: char, close: char| {
            let values = values(text, begin, arguments)?;
            let end = values.iter().map(|(_, value)| value.end).max()?;
            let close = find_word(text, close.encode_utf8(&mut [0; 4]), end)?.start;
            text[begin..].starts_with(open).then_some(begin + open.len_utf8()..close)
        };
        let arguments = match kind {
            ArgumentSyntax::Json => json(text, begin, arguments)?,
            ArgumentSyntax::Python => closed('(', ')')?,
            ArgumentSyntax::Braces { .. } => closed('{', '}')?,
            ArgumentSyntax::Elements(of) => {
                let values = values(text, begin, arguments)?;
                let (first, last) = (values.first()?, values.last()?);
                text[last.1.end..].starts_with(&of.close).then_some(())?;
                let open = first.0.start.checked_sub(of.open.len()).filter(|at| *at >= begin)?;
                open..last.1.end + of.close.len()
            }
        };
        Some(Spans { name, arguments })
    }

    /// What stands around an argument.
    fn element(&self, of: &ElementsSyntax, text: &str) -> Option<ArgumentElement> {
        let name = find_word(text, &self.trial.tools[0].name, 0)?;
        let values = values(text, name.end, &self.trial.arguments[0])?;
        let [(key, value), (next_key, next_value)] = values.as_slice() else { return None };
        let around = text.get(value.end..next_key.start)?;
        let (close, open) = around.split_at(around.rfind(of.key_open)?);
        let ArgumentSyntax::Elements(written) = self.form.written.arguments else { return None };
        close.contains(of.value_close).then(|| ArgumentElement {
            open: open.to_owned(),
            text: text[key.end..value.start].to_owned(),
            json: text[next_key.end..next_value.start].to_owned(),
            close: close.to_owned(),
            mark: of.value_close,
            says: written.says,
        })
    }

    /// What of the text behind the arguments belongs to the calls: as much as is not said to the user.
    fn last(&self, text: &str, from: usize) -> Option<String> {
        let most = text.len().min(from + MAX_LAST);
        let ends = (from..=most).rev().filter(|end| text.is_char_boundary(*end));
        let is_call = |end: &usize| {
            let (calls, said) = self.parsed(&text[..*end]);
            said.is_empty() && calls.len() == 1 && calls[0].ended
        };
        ends.into_iter().find(is_call).map(|end| text[from..end].trim_end().to_owned())
    }

    /// Calls and what else is said in a text.
    fn parsed(&self, text: &str) -> (Vec<ToolCall>, String) {
        let family = OutputFormat { calls: Some(Calls::Form(self.form)), thoughts: None };
        let mut parser = ResponseParser::new(&family, false, DeclaredTools::new(&self.trial.tools));
        let mut pieces = parser.push(text);
        pieces.extend(parser.finish());
        let (mut calls, mut said) = (Vec::new(), String::new());
        for piece in pieces {
            match piece {
                ResponsePiece::Call(part) => ToolCall::add(&mut calls, part),
                ResponsePiece::Content(text) | ResponsePiece::Reasoning(text) => said.push_str(&text),
            }
        }
        (calls, said)
    }

    /// Whether the form's parser reads calls in this frame as what they are.
    fn is_read_back(&self, frame: &CallFrame) -> bool {
        let most = if frame.next.is_some() { 2 } else { 1 };
        (1..=most).all(|count| {
            let (calls, said) = self.parsed(&self.trial.written(frame, count));
            let is_same = |(at, call): (usize, &ToolCall)| {
                call.ended
                    && call.name == self.trial.tools[at].name
                    && serde_json::from_str::<Value>(&call.arguments).is_ok_and(|is| is == self.trial.arguments[at])
            };
            said.is_empty() && calls.len() == count && calls.iter().enumerate().all(is_same)
        })
    }
}

impl ToolCallTrial {
    /// The first calls in a frame.
    fn written(&self, frame: &CallFrame, count: usize) -> String {
        let mut text = frame.first.clone();
        for at in 0..count {
            text.push_str(if at == 0 { "" } else { frame.next.as_deref().unwrap_or_default() });
            text.push_str(&self.tools[at].name);
            text.push_str(&frame.between);
            text.push_str(&self.arguments_in(&frame.arguments, at));
        }
        (text + &frame.last).replace(NUMBER, "0").replace(ID, ToolCallTrial::IDS[0])
    }

    fn arguments_in(&self, kind: &ArgumentSyntax, at: usize) -> String {
        let members = self.arguments[at].as_object().into_iter().flatten();
        let one = |(key, value): (&String, &Value)| match kind {
            ArgumentSyntax::Python => format!("{key}={value}"),
            ArgumentSyntax::Braces { quote } => match value.as_str() {
                Some(text) => format!("{key}:{quote}{text}{quote}"),
                None => format!("{key}:{value}"),
            },
            ArgumentSyntax::Elements(of) => match value.as_str() {
                Some(text) => [of.open.as_str(), key, &of.text, text, &of.close].concat(),
                None => [of.open.as_str(), key, &of.json, &value.to_string(), &of.close].concat(),
            },
            ArgumentSyntax::Json => String::new(),
        };
        match kind {
            ArgumentSyntax::Json => self.arguments[at].to_string(),
            ArgumentSyntax::Elements(_) => members.map(one).collect(),
            ArgumentSyntax::Python | ArgumentSyntax::Braces { .. } => members.map(one).collect::<Vec<_>>().join(","),
        }
    }
}

fn find_word(text: &str, word: &str, from: usize) -> Option<Range<usize>> {
    let at = from + text.get(from..)?.find(word)?;
    Some(at..at + word.len())
}

/// Where the JSON text of these arguments stands.
fn json(text: &str, from: usize, arguments: &Value) -> Option<Range<usize>> {
    text.get(from..)?.match_indices('{').find_map(|(at, _)| {
        let at = from + at;
        let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
        let is = values.next()?.is_ok_and(|value| value == *arguments);
        is.then(|| at..at + values.byte_offset())
    })
}

/// Where each key and its value stand, in their order.
fn values(text: &str, from: usize, arguments: &Value) -> Option<Vec<(Range<usize>, Range<usize>)>> {
    let mut end = from;
    let one = |(key, value): (&String, &Value)| {
        let key = find_word(text, key, end)?;
        let value = find_word(text, &value.as_str().map_or_else(|| value.to_string(), str::to_owned), key.end)?;
        end = value.end;
        Some((key, value))
    };
    arguments.as_object()?.iter().map(one).collect()
}

/// Puts the sign of a number where the text before the first name says 0, and that before the second 1.
fn counted(first: &mut String, next: &mut String) {
    let same = first.chars().rev().zip(next.chars().rev()).take_while(|(a, b)| a == b);
    let same: usize = same.map(|(c, _)| c.len_utf8()).sum();
    let (a, b) = (first.len() - same, next.len() - same);
    if first[..a].ends_with('0') && next[..b].ends_with('1') {
        first.replace_range(a - 1..a, NUMBER.encode_utf8(&mut [0; 4]));
        next.replace_range(b - 1..b, NUMBER.encode_utf8(&mut [0; 4]));
    }
}

/// The same behind the name.
fn number(first: &mut String, next: &str) {
    let same = first.chars().zip(next.chars()).take_while(|(a, b)| a == b);
    let same: usize = same.map(|(c, _)| c.len_utf8()).sum();
    if first[same..].starts_with('0') && next[same..].starts_with('1') && first[same + 1..] == next[same + 1..] {
        first.replace_range(same..=same, NUMBER.encode_utf8(&mut [0; 4]));
    }
}
