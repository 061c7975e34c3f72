//! Llama 3: an object that is all there is, behind a special token or not.

use super::{CallOpener, ToolCallForm};
use crate::response_parser::frame::{ArgumentSyntax, CallFrame};
use crate::response_parser::syntax::{ObjectsSyntax, Syntax};

pub(super) const FORM: ToolCallForm = ToolCallForm {
    name: "llama3",
    openers: &[CallOpener::new("<|python_tag|>")],
    at_start: &["{"],
    syntaxes: &[Syntax::Objects(&CALL)],
    prompt_marks: &[&["<|python_tag|>"], &["Environment: ipython"]],
    written: WRITTEN,
    ..ToolCallForm::NONE
};

const CALL: ObjectsSyntax =
    ObjectsSyntax { names: &["name"], arguments: &["parameters", "arguments"], list: false, before: &[], end: None };

const WRITTEN: CallFrame<&str> = CallFrame {
    first: "{\"name\": \"",
    between: "\", \"parameters\": ",
    next: Some("}; {\"name\": \""),
    last: "}",
    arguments: ArgumentSyntax::Json,
    ..CallFrame::NONE
};
