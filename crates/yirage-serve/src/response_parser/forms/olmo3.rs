//! OLMo 3: Python's calls, one a line, in an element.

use super::{CallOpener, ToolCallForm};
use crate::response_parser::frame::{ArgumentSyntax, CallFrame};
use crate::response_parser::syntax::{PythonSyntax, Syntax};

pub(super) const FORM: ToolCallForm = ToolCallForm {
    name: "olmo3",
    openers: &[CallOpener::new("<function_calls>")],
    syntaxes: &[Syntax::Python(&CALLS)],
    prompt_marks: &[&["<function_calls>"]],
    written: WRITTEN,
    ..ToolCallForm::NONE
};

const CALLS: PythonSyntax = PythonSyntax { end: Some("</function_calls>") };

const WRITTEN: CallFrame<&str> = CallFrame {
    first: "<function_calls>",
    between: "(",
    next: Some(")\n"),
    last: ")</function_calls>",
    arguments: ArgumentSyntax::Python,
    ..CallFrame::NONE
};
