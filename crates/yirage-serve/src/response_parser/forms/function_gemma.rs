//! FunctionGemma: a call in braces, texts between `<escape>`.

use super::{Form, Opener};
use crate::response_parser::frame::{Arguments, Frame};
use crate::response_parser::syntax::{Braces, Syntax};

pub(super) const FORM: Form = Form {
    name: "function_gemma",
    openers: &[Opener::new("<start_function_call>")],
    syntaxes: &[Syntax::Braces(&CALLS)],
    told: &[&["<start_function_declaration>"]],
    written: WRITTEN,
    ..Form::NONE
};

const CALLS: Braces = Braces { open: "call:", quote: "<escape>", end: "<end_function_call>" };

const WRITTEN: Frame<&str> = Frame {
    first: "<start_function_call>call:",
    between: "{",
    next: Some("}<end_function_call><start_function_call>call:"),
    last: "}<end_function_call>",
    arguments: Arguments::Braces { quote: CALLS.quote },
    ..Frame::NONE
};
