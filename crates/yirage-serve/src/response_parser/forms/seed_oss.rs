//! Seed-OSS: Qwen3-Coder's elements between marks of its own.

use super::{CallOpener, ToolCallForm};
use crate::response_parser::frame::{ArgumentElement, ArgumentSyntax, CallFrame};
use crate::response_parser::syntax::{ElementsSyntax, Syntax};

pub(super) const FORM: ToolCallForm = ToolCallForm {
    name: "seed_oss",
    openers: &[CallOpener::new("<seed:tool_call>"), CallOpener::stays("<function=")],
    syntaxes: &[Syntax::Elements(&CALLS)],
    prompt_marks: &[&["<seed:tool_call>"]],
    written: WRITTEN,
    ..ToolCallForm::NONE
};

const CALLS: ElementsSyntax = ElementsSyntax {
    open: "<function=",
    name_ends: &[">"],
    key_open: "<parameter=",
    key_close: ">",
    value_open: "",
    value_close: "</parameter>",
    close: "</function>",
    end: "</seed:tool_call>",
};

const WRITTEN: CallFrame<&str> = CallFrame {
    first: "<seed:tool_call>\n<function=",
    between: ">\n",
    next: Some("</function>\n<function="),
    last: "</function>\n</seed:tool_call>",
    arguments: ArgumentSyntax::Elements(ELEMENT),
    ..CallFrame::NONE
};

const ELEMENT: ArgumentElement<&str> = ArgumentElement {
    open: "<parameter=",
    text: ">",
    json: ">",
    close: "</parameter>\n",
    mark: CALLS.value_close,
    says: false,
};
