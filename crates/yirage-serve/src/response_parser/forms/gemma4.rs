//! Gemma 4: a call in braces, texts between quotation marks that are special tokens.

use super::{Form, Opener};
use crate::response_parser::frame::{Arguments, Frame};
use crate::response_parser::syntax::{Braces, Syntax};

pub(super) const FORM: Form = Form {
    name: "gemma4",
    openers: &[Opener::new("<|tool_call>")],
    syntaxes: &[Syntax::Braces(&CALLS)],
    told: &[&["<|tool>"]],
    written: WRITTEN,
    ..Form::NONE
};

const CALLS: Braces = Braces { open: "call:", quote: "<|\"|>", end: "<tool_call|>" };

const WRITTEN: Frame<&str> = Frame {
    first: "<|tool_call>call:",
    between: "{",
    next: Some("}<tool_call|><|tool_call>call:"),
    last: "}<tool_call|>",
    arguments: Arguments::Braces { quote: CALLS.quote },
    ..Frame::NONE
};
