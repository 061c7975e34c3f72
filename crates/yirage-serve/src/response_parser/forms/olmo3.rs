//! OLMo 3: Python's calls, one a line, in an element.

use super::{Form, Opener};
use crate::response_parser::frame::{Arguments, Frame};
use crate::response_parser::syntax::{Python, Syntax};

pub(super) const FORM: Form = Form {
    name: "olmo3",
    openers: &[Opener::new("<function_calls>")],
    syntaxes: &[Syntax::Python(&CALLS)],
    told: &[&["<function_calls>"]],
    written: WRITTEN,
    ..Form::NONE
};

const CALLS: Python = Python { end: Some("</function_calls>") };

const WRITTEN: Frame<&str> = Frame {
    first: "<function_calls>",
    between: "(",
    next: Some(")\n"),
    last: ")</function_calls>",
    arguments: Arguments::Python,
    ..Frame::NONE
};
