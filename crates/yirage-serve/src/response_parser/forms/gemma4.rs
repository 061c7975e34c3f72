//! Gemma 4: a call in braces, texts between quotation marks that are special tokens.

use super::{Form, Opener};
use crate::response_parser::syntax::{Braces, Syntax};

pub(super) const FORM: Form = Form {
    name: "gemma4",
    openers: &[Opener::new("<|tool_call>")],
    syntaxes: &[Syntax::Braces(&CALLS)],
    told: &[&["<|tool>"]],
    ..Form::NONE
};

const CALLS: Braces = Braces { open: "call:", quote: "<|\"|>", end: "<tool_call|>" };
