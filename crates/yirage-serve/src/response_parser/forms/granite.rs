//! Granite 3 and Phi-4-mini: a list of objects behind a special token.

use super::{CallOpener, ToolCallForm};
use crate::response_parser::frame::{ArgumentSyntax, CallFrame};
use crate::response_parser::syntax::{ObjectsSyntax, Syntax};

pub(super) const FORM: ToolCallForm = ToolCallForm {
    name: "granite",
    openers: &[CallOpener::new("<|tool_call|>")],
    syntaxes: &[Syntax::Objects(&LIST)],
    prompt_marks: &[&["<|tool_call|>"]],
    written: WRITTEN,
    ..ToolCallForm::NONE
};

const LIST: ObjectsSyntax = ObjectsSyntax {
    names: &["name"],
    arguments: &["arguments", "parameters"],
    list: true,
    before: &["<tool_call>"],
    end: Some("<|/tool_call|>"),
};

const WRITTEN: CallFrame<&str> = CallFrame {
    first: "<|tool_call|>[{\"name\": \"",
    between: "\", \"arguments\": ",
    next: Some("}, {\"name\": \""),
    last: "}]",
    arguments: ArgumentSyntax::Json,
    ..CallFrame::NONE
};
