//! Hermes, Qwen 2.5 and 3, Granite 4, SmolLM3, ERNIE and others: an object in an element.

use super::{Form, Opener};
use crate::response_parser::frame::{Arguments, Frame};
use crate::response_parser::syntax::{Objects, Syntax};

pub(super) const FORM: Form = Form {
    name: "hermes",
    openers: &[Opener::new("<tool_call>")],
    syntaxes: &[Syntax::Objects(&CALL)],
    told: &[&["<tool_call>"]],
    written: WRITTEN,
    ..Form::NONE
};

const CALL: Objects = Objects {
    names: &["name"],
    arguments: &["arguments", "parameters"],
    list: true,
    before: &["```json"],
    end: Some("</tool_call>"),
};

const WRITTEN: Frame<&str> = Frame {
    first: "<tool_call>\n{\"name\": \"",
    between: "\", \"arguments\": ",
    next: Some("}\n</tool_call>\n<tool_call>\n{\"name\": \""),
    last: "}\n</tool_call>",
    arguments: Arguments::Json,
    ..Frame::NONE
};
