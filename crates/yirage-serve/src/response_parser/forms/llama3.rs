//! Llama 3: an object that is all there is, behind a special token or not.

use super::{Form, Opener};
use crate::response_parser::frame::{Arguments, Frame};
use crate::response_parser::syntax::{Objects, Syntax};

pub(super) const FORM: Form = Form {
    name: "llama3",
    openers: &[Opener::new("<|python_tag|>")],
    at_start: &["{"],
    syntaxes: &[Syntax::Objects(&CALL)],
    told: &[&["<|python_tag|>"], &["Environment: ipython"]],
    written: WRITTEN,
    ..Form::NONE
};

const CALL: Objects =
    Objects { names: &["name"], arguments: &["parameters", "arguments"], list: false, before: &[], end: None };

const WRITTEN: Frame<&str> = Frame {
    first: "{\"name\": \"",
    between: "\", \"parameters\": ",
    next: Some("}; {\"name\": \""),
    last: "}",
    arguments: Arguments::Json,
    ..Frame::NONE
};
