//! DeepSeek V3.1: a name, and arguments behind a separator.

use super::{CallOpener, ToolCallForm};
use crate::response_parser::frame::{ArgumentSyntax, CallFrame};
use crate::response_parser::syntax::{NamedSyntax, Syntax};

pub(super) const FORM: ToolCallForm = ToolCallForm {
    name: "deepseek_v31",
    openers: &[CallOpener::new("<｜tool▁calls▁begin｜>"), CallOpener::stays("<｜tool▁call▁begin｜>")],
    syntaxes: &[Syntax::Named(&CALLS)],
    prompt_marks: &[&["<｜tool▁call▁begin｜>", "<｜tool▁sep｜>"]],
    written: WRITTEN,
    ..ToolCallForm::NONE
};

const CALLS: NamedSyntax = NamedSyntax {
    open: "<｜tool▁call▁begin｜>",
    name_ends: &["<｜tool▁sep｜>"],
    before_arguments: &[],
    close: &["<｜tool▁call▁end｜>"],
    end: Some("<｜tool▁calls▁end｜>"),
    name: |text| text,
};

const WRITTEN: CallFrame<&str> = CallFrame {
    first: "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>",
    between: "<｜tool▁sep｜>",
    next: Some("<｜tool▁call▁end｜><｜tool▁call▁begin｜>"),
    last: "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    arguments: ArgumentSyntax::Json,
    ..CallFrame::NONE
};
