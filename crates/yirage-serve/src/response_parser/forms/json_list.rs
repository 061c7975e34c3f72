//! xLAM and others: a list of objects that is all there is.

use super::Form;
use crate::response_parser::frame::{Arguments, Frame};
use crate::response_parser::syntax::{Objects, Syntax};

pub(super) const FORM: Form = Form {
    name: "json_list",
    openers: &[],
    at_start: &["[", "```json"],
    syntaxes: &[Syntax::Objects(&LIST)],
    written: WRITTEN,
    ..Form::NONE
};

const LIST: Objects =
    Objects { names: &["name"], arguments: &["arguments", "parameters"], list: true, before: &["```json"], end: None };

const WRITTEN: Frame<&str> = Frame {
    first: "[{\"name\": \"",
    between: "\", \"arguments\": ",
    next: Some("}, {\"name\": \""),
    last: "}]",
    arguments: Arguments::Json,
    ..Frame::NONE
};
