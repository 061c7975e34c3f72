//! Nemotron: a list of objects in an element.

use super::{Form, Opener};
use crate::response_parser::syntax::{Objects, Syntax};

pub(super) const FORM: Form = Form {
    name: "nemotron",
    openers: &[Opener::new("<TOOLCALL>")],
    syntaxes: &[Syntax::Objects(&LIST)],
    told: &[&["<TOOLCALL>"]],
    ..Form::NONE
};

const LIST: Objects = Objects {
    names: &["name"],
    arguments: &["arguments", "parameters"],
    list: true,
    before: &[],
    end: Some("</TOOLCALL>"),
};
