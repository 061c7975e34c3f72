//! xLAM and others: a list of objects that is all there is.

use super::ToolCallForm;
use crate::response_parser::frame::{ArgumentSyntax, CallFrame};
use crate::response_parser::syntax::{ObjectsSyntax, Syntax};

pub(super) const FORM: ToolCallForm = ToolCallForm {
    name: "json_list",
    openers: &[],
    at_start: &["[", "```json"],
    syntaxes: &[Syntax::Objects(&LIST)],
    written: WRITTEN,
    ..ToolCallForm::NONE
};

const LIST: ObjectsSyntax = ObjectsSyntax {
    names: &["name"],
    arguments: &["arguments", "parameters"],
    list: true,
    before: &["```json"],
    end: None,
};

const WRITTEN: CallFrame<&str> = CallFrame {
    first: "[{\"name\": \"",
    between: "\", \"arguments\": ",
    next: Some("}, {\"name\": \""),
    last: "}]",
    arguments: ArgumentSyntax::Json,
    ..CallFrame::NONE
};
