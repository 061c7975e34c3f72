//! Nemotron: a list of objects in an element.

use super::{CallOpener, ToolCallForm};
use crate::response_parser::frame::{ArgumentSyntax, CallFrame};
use crate::response_parser::syntax::{ObjectsSyntax, Syntax};

pub(super) const FORM: ToolCallForm = ToolCallForm {
    name: "nemotron",
    openers: &[CallOpener::new("<TOOLCALL>")],
    syntaxes: &[Syntax::Objects(&LIST)],
    prompt_marks: &[&["<TOOLCALL>"]],
    written: WRITTEN,
    ..ToolCallForm::NONE
};

const LIST: ObjectsSyntax = ObjectsSyntax {
    names: &["name"],
    arguments: &["arguments", "parameters"],
    list: true,
    before: &[],
    end: Some("</TOOLCALL>"),
};

const WRITTEN: CallFrame<&str> = CallFrame {
    first: "<TOOLCALL>[{\"name\": \"",
    between: "\", \"arguments\": ",
    next: Some("}, {\"name\": \""),
    last: "}]</TOOLCALL>",
    arguments: ArgumentSyntax::Json,
    ..CallFrame::NONE
};
