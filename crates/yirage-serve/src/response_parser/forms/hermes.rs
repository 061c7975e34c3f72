//! Hermes, Qwen 2.5 and 3, Granite 4, SmolLM3, ERNIE and others: an object in an element.

use super::{CallOpener, ToolCallForm};
use crate::response_parser::frame::{ArgumentSyntax, CallFrame};
use crate::response_parser::syntax::{ObjectsSyntax, Syntax};

pub(super) const FORM: ToolCallForm = ToolCallForm {
    name: "hermes",
    openers: &[CallOpener::new("<tool_call>")],
    syntaxes: &[Syntax::Objects(&CALL)],
    prompt_marks: &[&["<tool_call>"]],
    written: WRITTEN,
    ..ToolCallForm::NONE
};

const CALL: ObjectsSyntax = ObjectsSyntax {
    names: &["name"],
    arguments: &["arguments", "parameters"],
    list: true,
    before: &["```json"],
    end: Some("</tool_call>"),
};

const WRITTEN: CallFrame<&str> = CallFrame {
    first: "<tool_call>\n{\"name\": \"",
    between: "\", \"arguments\": ",
    next: Some("}\n</tool_call>\n<tool_call>\n{\"name\": \""),
    last: "}\n</tool_call>",
    arguments: ArgumentSyntax::Json,
    ..CallFrame::NONE
};
