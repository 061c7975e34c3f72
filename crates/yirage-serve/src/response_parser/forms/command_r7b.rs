//! Command R7B and Command A: a list of objects between special tokens.

use super::{Form, Opener};
use crate::response_parser::frame::{Arguments, Frame};
use crate::response_parser::syntax::{Objects, Syntax};

pub(super) const FORM: Form = Form {
    name: "command_r7b",
    openers: &[Opener::new("<|START_ACTION|>")],
    syntaxes: &[Syntax::Objects(&LIST)],
    told: &[&["<|START_ACTION|>"]],
    written: WRITTEN,
    ..Form::NONE
};

const LIST: Objects =
    Objects { names: &["tool_name"], arguments: &["parameters"], list: true, before: &[], end: Some("<|END_ACTION|>") };

const WRITTEN: Frame<&str> = Frame {
    first: "<|START_ACTION|>[\n    {\"tool_call_id\": \"\u{1}\", \"tool_name\": \"",
    between: "\", \"parameters\": ",
    next: Some("},\n    {\"tool_call_id\": \"\u{1}\", \"tool_name\": \""),
    last: "}\n]<|END_ACTION|>",
    arguments: Arguments::Json,
    ..Frame::NONE
};
