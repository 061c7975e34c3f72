//! Qwen3-Coder and Nemotron 3: an element for the function and one for each parameter. The opener is at times forgotten.

use super::{CallOpener, ToolCallForm};
use crate::response_parser::frame::{ArgumentElement, ArgumentSyntax, CallFrame};
use crate::response_parser::syntax::{ElementsSyntax, Syntax};

pub(super) const FORM: ToolCallForm = ToolCallForm {
    name: "qwen3_coder",
    openers: &[CallOpener::new("<tool_call>"), CallOpener::stays("<function=")],
    syntaxes: &[Syntax::Elements(&CALLS)],
    prompt_marks: &[&["<function=", "<parameter="]],
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
    end: "</tool_call>",
};

const WRITTEN: CallFrame<&str> = CallFrame {
    first: "<tool_call>\n<function=",
    between: ">\n",
    next: Some("</function>\n</tool_call>\n<tool_call>\n<function="),
    last: "</function>\n</tool_call>",
    arguments: ArgumentSyntax::Elements(ELEMENT),
    ..CallFrame::NONE
};

const ELEMENT: ArgumentElement<&str> = ArgumentElement {
    open: "<parameter=",
    text: ">\n",
    json: ">\n",
    close: "\n</parameter>\n",
    mark: CALLS.value_close,
    says: false,
};
