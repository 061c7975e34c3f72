//! Command R: a list of objects in a block of code behind `Action:`.

use super::{Form, Opener};
use crate::response_parser::frame::{Arguments, Frame};
use crate::response_parser::syntax::{Objects, Syntax};

pub(super) const FORM: Form = Form {
    name: "command_r",
    openers: &[Opener::new("Action:")],
    syntaxes: &[Syntax::Objects(&LIST)],
    told: &[&["Action:", "tool_name"]],
    written: WRITTEN,
    ..Form::NONE
};

const LIST: Objects =
    Objects { names: &["tool_name"], arguments: &["parameters"], list: true, before: &["```json"], end: Some("```") };

const WRITTEN: Frame<&str> = Frame {
    first: "Action: ```json\n[\n    {\n        \"tool_name\": \"",
    between: "\",\n        \"parameters\": ",
    next: Some("\n    },\n    {\n        \"tool_name\": \""),
    last: "\n    }\n]```",
    arguments: Arguments::Json,
    ..Frame::NONE
};
