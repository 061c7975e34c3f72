//! Functionary 3.2: whom the text is for stands before it; the prompt ends with the mark before that.

use super::{CallOpener, ToolCallForm};
use crate::response_parser::frame::{ArgumentSyntax, CallFrame};
use crate::response_parser::syntax::{NamedSyntax, Syntax};

pub(super) const FORM: ToolCallForm = ToolCallForm {
    name: "functionary_v32",
    openers: &[CallOpener::new(">>>")],
    syntaxes: &[Syntax::Named(&CALL)],
    begins_open: true,
    for_user: Some("all\n"),
    written: WRITTEN,
    ..ToolCallForm::NONE
};

const CALL: NamedSyntax =
    NamedSyntax { open: "", name_ends: &["\n"], before_arguments: &[], close: &[], end: None, name: |text| text };

const WRITTEN: CallFrame<&str> = CallFrame {
    first: "",
    between: "\n",
    next: Some(">>>"),
    last: "",
    arguments: ArgumentSyntax::Json,
    ..CallFrame::NONE
};
