//! Nemotron: a list of objects in an element.

use super::{Form, Opener};
use crate::response_parser::frame::{Arguments, Frame};
use crate::response_parser::syntax::{Objects, Syntax};

pub(super) const FORM: Form = Form {
    name: "nemotron",
    openers: &[Opener::new("<TOOLCALL>")],
    syntaxes: &[Syntax::Objects(&LIST)],
    told: &[&["<TOOLCALL>"]],
    written: WRITTEN,
    ..Form::NONE
};

const LIST: Objects = Objects {
    names: &["name"],
    arguments: &["arguments", "parameters"],
    list: true,
    before: &[],
    end: Some("</TOOLCALL>"),
};

const WRITTEN: Frame<&str> = Frame {
    first: "<TOOLCALL>[{\"name\": \"",
    between: "\", \"arguments\": ",
    next: Some("}, {\"name\": \""),
    last: "}]</TOOLCALL>",
    arguments: Arguments::Json,
    ..Frame::NONE
};
