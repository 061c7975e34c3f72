//! FunctionGemma: a call in braces, texts between `<escape>`.

use super::{CallOpener, ToolCallForm};
use crate::response_parser::frame::{ArgumentSyntax, CallFrame};
use crate::response_parser::syntax::{BracesSyntax, Syntax};

pub(super) const FORM: ToolCallForm = ToolCallForm {
    name: "function_gemma",
    openers: &[CallOpener::new("<start_function_call>")],
    syntaxes: &[Syntax::Braces(&CALLS)],
    prompt_marks: &[&["<start_function_declaration>"]],
    written: WRITTEN,
    ..ToolCallForm::NONE
};

const CALLS: BracesSyntax = BracesSyntax { open: "call:", quote: "<escape>", end: "<end_function_call>" };

const WRITTEN: CallFrame<&str> = CallFrame {
    first: "<start_function_call>call:",
    between: "{",
    next: Some("}<end_function_call><start_function_call>call:"),
    last: "}<end_function_call>",
    arguments: ArgumentSyntax::Braces { quote: CALLS.quote },
    ..CallFrame::NONE
};
