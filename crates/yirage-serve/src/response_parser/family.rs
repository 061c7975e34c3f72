//! How a model marks thoughts and calls.

use super::forms::{self, ToolCallForm};
use super::frame::CallFrame;
use super::harmony;
use super::thoughts::ThoughtMarks;

/// What a template says of its model's output.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OutputFormat {
    /// How it calls tools; none where the template knows no tools, or no form that is known.
    pub(crate) calls: Option<Calls>,
    /// How it marks thoughts.
    pub(crate) thoughts: Option<ThoughtMarks>,
}

/// How calls are written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Calls {
    /// Between marks, in one of the forms.
    Form(&'static ToolCallForm),
    /// As messages to tools.
    Harmony,
}

impl OutputFormat {
    /// The same model where it is asked for no calls; messages to tools and to the user are told apart all the same.
    pub(crate) fn without_calls(self) -> OutputFormat {
        OutputFormat { calls: self.calls.filter(|calls| matches!(calls, Calls::Harmony)), ..self }
    }

    /// The same model where its answer has to be calls and cannot be in its own form: bare objects.
    pub(crate) fn with_bare_calls(self) -> OutputFormat {
        OutputFormat { calls: Some(Calls::Form(forms::bare())), ..self }
    }

    /// Whether a special token of this text marks something: then it is part of the text.
    pub(crate) fn marks(&self, token: &str) -> bool {
        let thoughts = self.thoughts.is_some_and(|of| of.open.contains(token) || of.close.contains(token));
        thoughts
            || match self.calls {
                Some(Calls::Form(form)) => form.marks(token),
                Some(Calls::Harmony) => harmony::MARKS.contains(&token),
                None => false,
            }
    }
}

impl Calls {
    /// All that are known.
    #[cfg(test)]
    pub(crate) fn all() -> impl Iterator<Item = Calls> {
        forms::all().map(Calls::Form).chain([Calls::Harmony])
    }

    /// How calls are written that have to come, where the template shows no other way.
    pub(crate) fn written(self) -> CallFrame {
        match self {
            Calls::Form(form) => form.written.owned(),
            Calls::Harmony => harmony::WRITTEN.owned(),
        }
    }

    /// What the form is called.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Calls::Form(form) => form.name,
            Calls::Harmony => "harmony",
        }
    }
}
