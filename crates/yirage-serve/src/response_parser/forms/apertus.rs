//! Apertus: a list of objects whose only key is the tool's name.

use super::{CallOpener, ToolCallForm};
use crate::response_parser::frame::{ArgumentSyntax, CallFrame};
use crate::response_parser::syntax::{ObjectsSyntax, Syntax};

pub(super) const FORM: ToolCallForm = ToolCallForm {
    name: "apertus",
    openers: &[CallOpener::new("<|tools_prefix|>")],
    syntaxes: &[Syntax::Objects(&LIST)],
    prompt_marks: &[&["<|tools_prefix|>"]],
    written: WRITTEN,
    ..ToolCallForm::NONE
};

const LIST: ObjectsSyntax =
    ObjectsSyntax { names: &[], arguments: &[], list: true, before: &[], end: Some("<|tools_suffix|>") };

const WRITTEN: CallFrame<&str> = CallFrame {
    first: "<|tools_prefix|>[{\"",
    between: "\": ",
    next: Some("}, {\""),
    last: "}]<|tools_suffix|>",
    arguments: ArgumentSyntax::Json,
    ..CallFrame::NONE
};
