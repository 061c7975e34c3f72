//! Functionary 3.1 and Llama's custom functions: arguments as JSON in an element that has the name.

use super::{Form, Opener};
use crate::response_parser::frame::{Arguments, Frame};
use crate::response_parser::syntax::{Named, Syntax};

pub(super) const FORM: Form = Form {
    name: "functionary_v31",
    openers: &[Opener::new("<function=")],
    syntaxes: &[Syntax::Named(&CALL)],
    told: &[&["<function="]],
    written: WRITTEN,
    ..Form::NONE
};

const CALL: Named =
    Named { open: "", name_ends: &[">"], before_arguments: &[], close: &["</function>"], end: None, name: |text| text };

const WRITTEN: Frame<&str> = Frame {
    first: "<function=",
    between: ">",
    next: Some("</function><function="),
    last: "</function>",
    arguments: Arguments::Json,
    ..Frame::NONE
};
