//! Functionary 3.1 and Llama's custom functions: arguments as JSON in an element that has the name.

use super::{CallOpener, ToolCallForm};
use crate::response_parser::frame::{ArgumentSyntax, CallFrame};
use crate::response_parser::syntax::{NamedSyntax, Syntax};

pub(super) const FORM: ToolCallForm = ToolCallForm {
    name: "functionary_v31",
    openers: &[CallOpener::new("<function=")],
    syntaxes: &[Syntax::Named(&CALL)],
    prompt_marks: &[&["<function="]],
    written: WRITTEN,
    ..ToolCallForm::NONE
};

const CALL: NamedSyntax = NamedSyntax {
    open: "",
    name_ends: &[">"],
    before_arguments: &[],
    close: &["</function>"],
    end: None,
    name: |text| text,
};

const WRITTEN: CallFrame<&str> = CallFrame {
    first: "<function=",
    between: ">",
    next: Some("</function><function="),
    last: "</function>",
    arguments: ArgumentSyntax::Json,
    ..CallFrame::NONE
};
