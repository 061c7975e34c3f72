//! Command R7B and Command A: a list of objects between special tokens.

use super::{Form, Opener};
use crate::response_parser::syntax::{Objects, Syntax};

pub(super) const FORM: Form = Form {
    name: "command_r7b",
    openers: &[Opener::new("<|START_ACTION|>")],
    syntaxes: &[Syntax::Objects(&LIST)],
    told: &[&["<|START_ACTION|>"]],
    ..Form::NONE
};

const LIST: Objects =
    Objects { names: &["tool_name"], arguments: &["parameters"], list: true, before: &[], end: Some("<|END_ACTION|>") };
