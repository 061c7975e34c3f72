//! InternLM: an object between special tokens.

use super::{Form, Opener};
use crate::response_parser::syntax::{Objects, Syntax};

pub(super) const FORM: Form = Form {
    name: "internlm",
    openers: &[Opener::new("<|action_start|><|plugin|>"), Opener::new("<|action_start|> <|plugin|>")],
    syntaxes: &[Syntax::Objects(&CALL)],
    told: &[&["<|action_start|>", "<|plugin|>"]],
    ..Form::NONE
};

const CALL: Objects = Objects {
    names: &["name"],
    arguments: &["parameters", "arguments"],
    list: false,
    before: &[],
    end: Some("<|action_end|>"),
};
