//! Llama 3.2 and 4: a list of Python's calls that is all there is.

use super::{CallOpener, ToolCallForm};
use crate::response_parser::frame::{ArgumentSyntax, CallFrame};
use crate::response_parser::syntax::{PythonSyntax, Syntax};

pub(super) const FORM: ToolCallForm = ToolCallForm {
    name: "llama_pythonic",
    openers: &[CallOpener::new("<|python_start|>")],
    at_start: &["["],
    syntaxes: &[Syntax::Python(&CALLS)],
    prompt_marks: &[&["[func_name1("], &["<|python_start|>"]],
    written: WRITTEN,
    ..ToolCallForm::NONE
};

const CALLS: PythonSyntax = PythonSyntax { end: Some("<|python_end|>") };

const WRITTEN: CallFrame<&str> = CallFrame {
    first: "[",
    between: "(",
    next: Some("), "),
    last: ")]",
    arguments: ArgumentSyntax::Python,
    ..CallFrame::NONE
};
