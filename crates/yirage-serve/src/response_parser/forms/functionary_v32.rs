//! Functionary 3.2: whom the text is for stands before it; the prompt ends with the mark before that.

use super::{Form, Opener};
use crate::response_parser::frame::{Arguments, Frame};
use crate::response_parser::syntax::{Named, Syntax};

pub(super) const FORM: Form = Form {
    name: "functionary_v32",
    openers: &[Opener::new(">>>")],
    syntaxes: &[Syntax::Named(&CALL)],
    begins_open: true,
    for_user: Some("all\n"),
    written: WRITTEN,
    ..Form::NONE
};

const CALL: Named =
    Named { open: "", name_ends: &["\n"], before_arguments: &[], close: &[], end: None, name: |text| text };

const WRITTEN: Frame<&str> =
    Frame { first: "", between: "\n", next: Some(">>>"), last: "", arguments: Arguments::Json, ..Frame::NONE };
