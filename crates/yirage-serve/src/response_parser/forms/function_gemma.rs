//! FunctionGemma: a call in braces, texts between `<escape>`.

use super::{Form, Opener};
use crate::response_parser::syntax::{Braces, Syntax};

pub(super) const FORM: Form = Form {
    name: "function_gemma",
    openers: &[Opener::new("<start_function_call>")],
    syntaxes: &[Syntax::Braces(&CALLS)],
    told: &[&["<start_function_declaration>"]],
    ..Form::NONE
};

const CALLS: Braces = Braces { open: "call:", quote: "<escape>", end: "<end_function_call>" };
