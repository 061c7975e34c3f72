//! DeepSeek V3 and R1: a kind, a name, and arguments in a block of code.

use super::{CallOpener, ToolCallForm};
use crate::response_parser::frame::{ArgumentSyntax, CallFrame};
use crate::response_parser::syntax::{NamedSyntax, Syntax};

pub(super) const FORM: ToolCallForm = ToolCallForm {
    name: "deepseek_v3",
    openers: &[CallOpener::new("<｜tool▁calls▁begin｜>"), CallOpener::stays("<｜tool▁call▁begin｜>")],
    syntaxes: &[Syntax::Named(&CALLS)],
    written: WRITTEN,
    ..ToolCallForm::NONE
};

const CALLS: NamedSyntax = NamedSyntax {
    open: "<｜tool▁call▁begin｜>",
    name_ends: &["\n", "```", "{"],
    before_arguments: &["```json", "```"],
    close: &["```", "<｜tool▁call▁end｜>"],
    end: Some("<｜tool▁calls▁end｜>"),
    name: |text| text.rsplit("<｜tool▁sep｜>").next().unwrap_or(text),
};

const WRITTEN: CallFrame<&str> = CallFrame {
    first: "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>",
    between: "\n```json\n",
    next: Some("\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>"),
    last: "\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    arguments: ArgumentSyntax::Json,
    ..CallFrame::NONE
};
