//! Command R: a list of objects in a block of code behind `Action:`.

use super::{CallOpener, ToolCallForm};
use crate::response_parser::frame::{ArgumentSyntax, CallFrame};
use crate::response_parser::syntax::{ObjectsSyntax, Syntax};

pub(super) const FORM: ToolCallForm = ToolCallForm {
    name: "command_r",
    openers: &[CallOpener::new("Action:")],
    syntaxes: &[Syntax::Objects(&LIST)],
    prompt_marks: &[&["Action:", "tool_name"]],
    written: WRITTEN,
    ..ToolCallForm::NONE
};

const LIST: ObjectsSyntax = ObjectsSyntax {
    names: &["tool_name"],
    arguments: &["parameters"],
    list: true,
    before: &["```json"],
    end: Some("```"),
};

const WRITTEN: CallFrame<&str> = CallFrame {
    first: "Action: ```json\n[\n    {\n        \"tool_name\": \"",
    between: "\",\n        \"parameters\": ",
    next: Some("\n    },\n    {\n        \"tool_name\": \""),
    last: "\n    }\n]```",
    arguments: ArgumentSyntax::Json,
    ..CallFrame::NONE
};
