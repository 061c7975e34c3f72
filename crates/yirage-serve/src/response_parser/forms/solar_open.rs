//! Solar Open: an id, a name and arguments behind separators.

use super::{CallOpener, ToolCallForm};
use crate::response_parser::frame::{ArgumentSyntax, CallFrame};
use crate::response_parser::syntax::{NamedSyntax, Syntax};

pub(super) const FORM: ToolCallForm = ToolCallForm {
    name: "solar_open",
    openers: &[CallOpener::new("<|tool_calls|>"), CallOpener::stays("<|tool_call:begin|>")],
    syntaxes: &[Syntax::Named(&CALLS)],
    prompt_marks: &[&["<|tool_call:begin|>", "<|tool_call:args|>"]],
    written: WRITTEN,
    ..ToolCallForm::NONE
};

const CALLS: NamedSyntax = NamedSyntax {
    open: "<|tool_call:begin|>",
    name_ends: &["<|tool_call:args|>"],
    before_arguments: &[],
    close: &["<|tool_call:end|>"],
    end: Some("<|calls|>"),
    name: |text| text.rsplit("<|tool_call:name|>").next().unwrap_or(text),
};

const WRITTEN: CallFrame<&str> = CallFrame {
    first: "<|tool_calls|><|tool_call:begin|>\u{2}<|tool_call:name|>",
    between: "<|tool_call:args|>",
    next: Some("<|tool_call:end|><|tool_call:begin|>\u{2}<|tool_call:name|>"),
    last: "<|tool_call:end|><|calls|>",
    arguments: ArgumentSyntax::Json,
    ..CallFrame::NONE
};
