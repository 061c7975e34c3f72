//! InternLM: an object between special tokens.

use super::{Form, Opener};
use crate::response_parser::frame::{Arguments, Frame};
use crate::response_parser::syntax::{Objects, Syntax};

pub(super) const FORM: Form = Form {
    name: "internlm",
    openers: &[Opener::new("<|action_start|><|plugin|>"), Opener::new("<|action_start|> <|plugin|>")],
    syntaxes: &[Syntax::Objects(&CALL)],
    told: &[&["<|action_start|>", "<|plugin|>"]],
    written: WRITTEN,
    ..Form::NONE
};

const CALL: Objects = Objects {
    names: &["name"],
    arguments: &["parameters", "arguments"],
    list: false,
    before: &[],
    end: Some("<|action_end|>"),
};

const WRITTEN: Frame<&str> = Frame {
    first: "<|action_start|><|plugin|>\n{\"name\": \"",
    between: "\", \"parameters\": ",
    next: Some("}<|action_end|>\n<|action_start|><|plugin|>\n{\"name\": \""),
    last: "}<|action_end|>",
    arguments: Arguments::Json,
    ..Frame::NONE
};
