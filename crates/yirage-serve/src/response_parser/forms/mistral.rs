//! Mistral: a list of objects, or since 2025 a name and arguments behind `[ARGS]`.

use super::{CallOpener, ToolCallForm};
use crate::response_parser::frame::{ArgumentSyntax, CallFrame};
use crate::response_parser::syntax::{NamedSyntax, ObjectsSyntax, Syntax};

pub(super) const FORM: ToolCallForm = ToolCallForm {
    name: "mistral",
    openers: &[CallOpener::new("[TOOL_CALLS]")],
    syntaxes: &[Syntax::Objects(&LIST), Syntax::Named(&CALL)],
    prompt_marks: &[&["[TOOL_CALLS]"]],
    written: WRITTEN,
    ..ToolCallForm::NONE
};

const LIST: ObjectsSyntax =
    ObjectsSyntax { names: &["name"], arguments: &["arguments", "parameters"], list: true, before: &[], end: None };

const CALL: NamedSyntax = NamedSyntax {
    open: "",
    name_ends: &["[ARGS]", "{"],
    before_arguments: &[],
    close: &[],
    end: None,
    // An id may stand behind the name.
    name: |text| text.split("[CALL_ID]").next().unwrap_or(text),
};

const WRITTEN: CallFrame<&str> = CallFrame {
    first: "[TOOL_CALLS]",
    between: "[ARGS]",
    next: Some("[TOOL_CALLS]"),
    last: "",
    arguments: ArgumentSyntax::Json,
    ..CallFrame::NONE
};
