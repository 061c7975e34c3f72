//! Command R: a list of objects in a block of code behind `Action:`.

use super::{Form, Opener};
use crate::response_parser::syntax::{Objects, Syntax};

pub(super) const FORM: Form = Form {
    name: "command_r",
    openers: &[Opener::new("Action:")],
    syntaxes: &[Syntax::Objects(&LIST)],
    told: &[&["Action:", "tool_name"]],
    ..Form::NONE
};

const LIST: Objects =
    Objects { names: &["tool_name"], arguments: &["parameters"], list: true, before: &["```json"], end: Some("```") };
