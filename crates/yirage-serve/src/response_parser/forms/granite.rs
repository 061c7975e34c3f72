//! Granite 3 and Phi-4-mini: a list of objects behind a special token.

use super::{Form, Opener};
use crate::response_parser::frame::{Arguments, Frame};
use crate::response_parser::syntax::{Objects, Syntax};

pub(super) const FORM: Form = Form {
    name: "granite",
    openers: &[Opener::new("<|tool_call|>")],
    syntaxes: &[Syntax::Objects(&LIST)],
    told: &[&["<|tool_call|>"]],
    written: WRITTEN,
    ..Form::NONE
};

const LIST: Objects = Objects {
    names: &["name"],
    arguments: &["arguments", "parameters"],
    list: true,
    before: &["<tool_call>"],
    end: Some("<|/tool_call|>"),
};

const WRITTEN: Frame<&str> = Frame {
    first: "<|tool_call|>[{\"name\": \"",
    between: "\", \"arguments\": ",
    next: Some("}, {\"name\": \""),
    last: "}]",
    arguments: Arguments::Json,
    ..Frame::NONE
};
