//! Llama 3.2 and 4: a list of Python's calls that is all there is.

use super::{Form, Opener};
use crate::response_parser::frame::{Arguments, Frame};
use crate::response_parser::syntax::{Python, Syntax};

pub(super) const FORM: Form = Form {
    name: "llama_pythonic",
    openers: &[Opener::new("<|python_start|>")],
    at_start: &["["],
    syntaxes: &[Syntax::Python(&CALLS)],
    told: &[&["[func_name1("], &["<|python_start|>"]],
    written: WRITTEN,
    ..Form::NONE
};

const CALLS: Python = Python { end: Some("<|python_end|>") };

const WRITTEN: Frame<&str> =
    Frame { first: "[", between: "(", next: Some("), "), last: ")]", arguments: Arguments::Python, ..Frame::NONE };
