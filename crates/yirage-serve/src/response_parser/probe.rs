//! Which family a model is of, found by trying its chat template.
//!
//! A call is rendered as one of the past, and the form whose parser reads that very call back is the model's. A template
//! that writes no calls of the past is taken at its word: what it tells the model of tools has the form's marks.

use super::family::{Calls, OutputFormat};
use super::frame::CallFrame;
use super::rendered::Rendered;
use super::thoughts::ThoughtMarks;
use super::trial::{CallsRead, TemplateRenderer, ToolCallTrial};
use yirage_model::chat::{ChatInputs, ChatTemplate, MAX_TRIAL_STEPS, TrialSteps};
use yirage_session::TextProcessor;

impl OutputFormat {
    /// What a template says of its model, found by rendering it, and how calls are written that have to come.
    pub(crate) fn of(
        texts: &TextProcessor,
        template: &ChatTemplate,
        source: &str,
    ) -> (OutputFormat, Option<CallFrame>) {
        OutputFormat::by(source, &|inputs| texts.render(template, inputs).ok().map(|rendered| rendered.text))
    }

    /// What a template of this source says, which `render` renders; none where it refuses.
    pub(crate) fn by(source: &str, render: TemplateRenderer<'_>) -> (OutputFormat, Option<CallFrame>) {
        let thoughts = ThoughtMarks::of(source);
        let of = |calls: Calls| (OutputFormat { calls: Some(calls), thoughts }, Some(calls.written()));
        let none = (OutputFormat { calls: None, thoughts }, None);
        if !source.contains("tools") {
            return if is_harmony(source) { of(Calls::Harmony) } else { none };
        }
        let trial = ToolCallTrial::new();
        let steps = TrialSteps::default();
        let render: TemplateRenderer<'_> = &|inputs| {
            let inputs = ChatInputs { trial: Some(&steps), ..inputs };
            (!steps.are_spent()).then(|| render(inputs))?
        };
        match trial.read_back(render) {
            CallsRead::As(calls, way) => {
                let (family, written) = of(calls);
                let Calls::Form(form) = calls else { return (family, written) };
                let rendered = Rendered { trial: &trial, rendering: &way, form, thoughts, render };
                return (family, rendered.frame().or(written));
            }
            // What it tells the model of tools may look like a form that it is not.
            CallsRead::Unknown => return none,
            CallsRead::Nowhere => {}
        }
        let told = trial.described_form(render).or_else(|| is_harmony(source).then_some(Calls::Harmony));
        if told.is_none() && steps.are_spent() {
            tracing::warn!(
                steps = MAX_TRIAL_STEPS,
                "the chat template takes too many steps to be found out: no calls of tools are read; use a simpler template"
            );
        }
        told.map_or(none, of)
    }
}

fn is_harmony(source: &str) -> bool {
    ["<|channel|>", "<|message|>", "final"].iter().all(|mark| source.contains(mark))
}
