//! Command R7B and Command A: a list of objects between special tokens.

use super::{CallOpener, ToolCallForm};
use crate::response_parser::frame::{ArgumentSyntax, CallFrame};
use crate::response_parser::syntax::{ObjectsSyntax, Syntax};

pub(super) const FORM: ToolCallForm = ToolCallForm {
    name: "command_r7b",
    openers: &[CallOpener::new("<|START_ACTION|>")],
    syntaxes: &[Syntax::Objects(&LIST)],
    prompt_marks: &[&["<|START_ACTION|>"]],
    written: WRITTEN,
    ..ToolCallForm::NONE
};

const LIST: ObjectsSyntax = ObjectsSyntax {
    names: &["tool_name"],
    arguments: &["parameters"],
    list: true,
    before: &[],
    end: Some("<|END_ACTION|>"),
};

const WRITTEN: CallFrame<&str> = CallFrame {
    first: "<|START_ACTION|>[\n    {\"tool_call_id\": \"\u{1}\", \"tool_name\": \"",
    between: "\", \"parameters\": ",
    next: Some("},\n    {\"tool_call_id\": \"\u{1}\", \"tool_name\": \""),
    last: "}\n]<|END_ACTION|>",
    arguments: ArgumentSyntax::Json,
    ..CallFrame::NONE
};
