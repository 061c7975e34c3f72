//! DeepSeek V3.2: elements of its own markup language, which say of each value whether it is text.

use super::{CallOpener, ToolCallForm};
use crate::response_parser::frame::{ArgumentElement, ArgumentSyntax, CallFrame};
use crate::response_parser::syntax::{ElementsSyntax, Syntax};

pub(super) const FORM: ToolCallForm = ToolCallForm {
    name: "deepseek_dsml",
    openers: &[
        CallOpener::new("<｜DSML｜function_calls>"),
        CallOpener::new("<｜DSML｜tool_calls>"),
        CallOpener::stays("<｜DSML｜invoke name=\""),
    ],
    syntaxes: &[Syntax::Elements(&CALLS), Syntax::Elements(&TOOL_CALLS)],
    prompt_marks: &[&["<｜DSML｜invoke"]],
    written: WRITTEN,
    ..ToolCallForm::NONE
};

const CALLS: ElementsSyntax = ElementsSyntax {
    open: "<｜DSML｜invoke name=\"",
    name_ends: &[">"],
    key_open: "<｜DSML｜parameter name=\"",
    key_close: ">",
    value_open: "",
    value_close: "</｜DSML｜parameter>",
    close: "</｜DSML｜invoke>",
    end: "</｜DSML｜function_calls>",
};

const TOOL_CALLS: ElementsSyntax = ElementsSyntax { end: "</｜DSML｜tool_calls>", ..CALLS };

const WRITTEN: CallFrame<&str> = CallFrame {
    first: "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"",
    between: "\">\n",
    next: Some("</｜DSML｜invoke>\n<｜DSML｜invoke name=\""),
    last: "</｜DSML｜invoke>\n</｜DSML｜function_calls>",
    arguments: ArgumentSyntax::Elements(ELEMENT),
    ..CallFrame::NONE
};

const ELEMENT: ArgumentElement<&str> = ArgumentElement {
    open: "<｜DSML｜parameter name=\"",
    text: "\" string=\"true\">",
    json: "\" string=\"false\">",
    close: "</｜DSML｜parameter>\n",
    mark: CALLS.value_close,
    says: true,
};
