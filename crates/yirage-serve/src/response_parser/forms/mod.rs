//! The forms in which models write calls of tools: one file each, and a line in the table.

mod apertus;
mod command_r;
mod command_r7b;
mod deepseek_dsml;
mod deepseek_v3;
mod deepseek_v31;
mod function_gemma;
mod functionary_v31;
mod functionary_v32;
mod gemma4;
mod gigachat3;
mod glm;
mod granite;
mod hermes;
mod hunyuan3;
mod internlm;
mod json_list;
mod kimi_k2;
mod lfm2;
mod llama3;
mod llama_pythonic;
mod longcat;
mod minimax_m2;
mod mistral;
mod nemotron;
mod olmo3;
mod qwen3_coder;
mod seed_oss;
mod solar_open;
mod tool_calls;

use super::frame::CallFrame;
use super::syntax::{Syntax, SyntaxReader};

/// A form of calls.
#[derive(Debug)]
pub(crate) struct ToolCallForm {
    /// What it is called, as users see it.
    pub(super) name: &'static str,
    /// What calls stand behind, anywhere in an answer.
    pub(super) openers: &'static [CallOpener],
    /// What an answer begins with that is a call from its beginning. Such a call has to be of a tool that there is.
    pub(super) at_start: &'static [&'static str],
    /// How calls are written, in the order in which they are tried.
    pub(super) syntaxes: &'static [Syntax],
    /// What a prompt with tools holds, all of one of these, where the template writes no calls of the past.
    pub(super) prompt_marks: &'static [&'static [&'static str]],
    /// Whether the prompt ends behind an opener.
    pub(super) begins_open: bool,
    /// What stands behind an opener in the place of a call where text for the user follows.
    pub(super) for_user: Option<&'static str>,
    /// How calls that have to come are written, unless the template writes them in another way.
    pub(super) written: CallFrame<&'static str>,
}

/// What stands before calls.
#[derive(Debug)]
pub(super) struct CallOpener {
    pub(super) text: &'static str,
    /// Whether it is part of the call.
    pub(super) stays: bool,
}

/// All of them. Where the calls of a template are read by several, the first one counts, so what has no marks comes last.
const FORMS: &[&ToolCallForm] = &[
    &deepseek_dsml::FORM,
    &deepseek_v3::FORM,
    &deepseek_v31::FORM,
    &kimi_k2::FORM,
    &mistral::FORM,
    &glm::FORM,
    &longcat::FORM,
    &seed_oss::FORM,
    &qwen3_coder::FORM,
    &minimax_m2::FORM,
    &hunyuan3::FORM,
    &solar_open::FORM,
    &tool_calls::FORM,
    &granite::FORM,
    &nemotron::FORM,
    &lfm2::FORM,
    &olmo3::FORM,
    &function_gemma::FORM,
    &gemma4::FORM,
    &command_r7b::FORM,
    &command_r::FORM,
    &apertus::FORM,
    &internlm::FORM,
    &gigachat3::FORM,
    &hermes::FORM,
    &functionary_v31::FORM,
    &functionary_v32::FORM,
    &llama3::FORM,
    &llama_pythonic::FORM,
    &json_list::FORM,
];

impl CallOpener {
    const fn new(text: &'static str) -> CallOpener {
        CallOpener { text, stays: false }
    }

    const fn stays(text: &'static str) -> CallOpener {
        CallOpener { text, stays: true }
    }
}

impl ToolCallForm {
    const NONE: ToolCallForm = ToolCallForm {
        name: "",
        openers: &[],
        at_start: &[],
        syntaxes: &[],
        prompt_marks: &[],
        begins_open: false,
        for_user: None,
        written: CallFrame::NONE,
    };

    /// A reader of calls by one of the form's kinds of syntax; `known` takes no tool that was not declared.
    pub(super) fn reader(&self, syntax: usize, known: bool) -> Option<SyntaxReader> {
        self.syntaxes.get(syntax).map(|syntax| syntax.reader(known))
    }

    /// Whether a special token's text is one of the form's marks, or a part of one.
    pub(super) fn marks(&self, token: &str) -> bool {
        let mut openers = self.openers.iter().map(|opener| opener.text);
        openers.any(|text| text.contains(token)) || self.syntaxes.iter().any(|syntax| syntax.marks(token))
    }
}

/// The forms that are known.
pub(super) fn all() -> impl Iterator<Item = &'static ToolCallForm> {
    FORMS.iter().copied()
}

/// The form of calls that have to come and cannot come in the model's own: objects that are all there is.
pub(super) fn bare() -> &'static ToolCallForm {
    &llama3::FORM
}
