//! Apertus: a list of objects whose only key is the tool's name.

use super::{Form, Opener};
use crate::response_parser::frame::{Arguments, Frame};
use crate::response_parser::syntax::{Objects, Syntax};

pub(super) const FORM: Form = Form {
    name: "apertus",
    openers: &[Opener::new("<|tools_prefix|>")],
    syntaxes: &[Syntax::Objects(&LIST)],
    told: &[&["<|tools_prefix|>"]],
    written: WRITTEN,
    ..Form::NONE
};

const LIST: Objects = Objects { names: &[], arguments: &[], list: true, before: &[], end: Some("<|tools_suffix|>") };

const WRITTEN: Frame<&str> = Frame {
    first: "<|tools_prefix|>[{\"",
    between: "\": ",
    next: Some("}, {\""),
    last: "}]<|tools_suffix|>",
    arguments: Arguments::Json,
    ..Frame::NONE
};
