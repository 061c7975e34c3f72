//! Calls as a model writes them: names and arguments in the frame of its form.

use super::lark::{Lark, LarkText, one_of};
use super::{braces, elements, python};
use crate::response_parser::{ArgumentSyntax, ModelCallFrame};
use serde_json::Value;
use std::sync::Arc;

/// Calls that have to come.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OwnCalls {
    pub(super) own: Arc<ModelCallFrame>,
    /// Names with the schemas of arguments.
    pub(super) tools: Vec<(String, Value)>,
    /// How many there may be.
    pub(super) most: usize,
    /// Whether they follow a thought.
    pub(super) thought: bool,
}

impl OwnCalls {
    /// The grammar of them.
    ///
    /// # Errors
    /// Arguments that cannot be written in the form, or not be held to their schema, by their place.
    pub(crate) fn lark(&self) -> Result<String, String> {
        let ModelCallFrame { frame, tokens } = &*self.own;
        let mut lark = Lark::new(tokens);
        let calls = self.tools.iter().map(|(name, parameters)| {
            let arguments = arguments(&mut lark, &frame.arguments, parameters);
            let arguments = arguments.map_err(|why| format!("{name}: {why}"))?;
            Ok(lark.rule(&format!("{} {arguments}", lark.text(&format!("{name}{}", frame.between)))))
        });
        let calls = calls.collect::<Result<Vec<_>, String>>()?;
        let call = lark.rule(&one_of(calls));
        let first = if self.thought { frame.first.trim_start() } else { &frame.first };
        let mut start = format!("{} {call}", lark.text(first));
        if let Some(next) = frame.next.as_deref().filter(|_| self.most > 1) {
            let next = lark.text(next);
            start.push_str(&format!(" ({next} {call}){{0,{}}}", self.most - 1));
        }
        start.push_str(&format!(" {}", lark.text(&frame.last)));
        let before = match &frame.thought {
            Some([open, close]) => {
                let text = LarkText { least: 0, most: None, mark: "<|", close, trimmed: false };
                format!("({} {})? ", lark.text(open), lark.free(&text))
            }
            // Models leave lines between thoughts and calls.
            None if self.thought => "/\\n{1,2}/? ".to_owned(),
            None => String::new(),
        };
        Ok(lark.whole(&(before + &start)))
    }
}

fn arguments(lark: &mut Lark<'_>, kind: &ArgumentSyntax, parameters: &Value) -> Result<String, String> {
    match kind {
        ArgumentSyntax::Json => lark.json(parameters),
        ArgumentSyntax::Elements(of) => elements::arguments(lark, of, parameters),
        ArgumentSyntax::Python => python::arguments(lark, parameters),
        ArgumentSyntax::Braces { quote } => braces::arguments(lark, quote, parameters),
    }
}
