//! Gemma 4: a call in braces, texts between quotation marks that are special tokens.

use super::{CallOpener, ToolCallForm};
use crate::response_parser::frame::{ArgumentSyntax, CallFrame};
use crate::response_parser::syntax::{BracesSyntax, Syntax};

pub(super) const FORM: ToolCallForm = ToolCallForm {
    name: "gemma4",
    openers: &[CallOpener::new("<|tool_call>")],
    syntaxes: &[Syntax::Braces(&CALLS)],
    prompt_marks: &[&["<|tool>"]],
    written: WRITTEN,
    ..ToolCallForm::NONE
};

const CALLS: BracesSyntax = BracesSyntax { open: "call:", quote: "<|\"|>", end: "<tool_call|>" };

const WRITTEN: CallFrame<&str> = CallFrame {
    first: "<|tool_call>call:",
    between: "{",
    next: Some("}<tool_call|><|tool_call>call:"),
    last: "}<tool_call|>",
    arguments: ArgumentSyntax::Braces { quote: CALLS.quote },
    ..CallFrame::NONE
};
