//! GLM 4.5 to 4.7: the name, then each key and value in an element of its own.

use super::{CallOpener, ToolCallForm};
use crate::response_parser::frame::{ArgumentElement, ArgumentSyntax, CallFrame};
use crate::response_parser::syntax::{ElementsSyntax, Syntax};

pub(super) const FORM: ToolCallForm = ToolCallForm {
    name: "glm",
    openers: &[CallOpener::new("<tool_call>")],
    syntaxes: &[Syntax::Elements(&CALLS)],
    prompt_marks: &[&["<tool_call>", "<arg_key>"]],
    written: WRITTEN,
    ..ToolCallForm::NONE
};

const CALLS: ElementsSyntax = ElementsSyntax {
    open: "",
    name_ends: &["\n", "<arg_key>", "</tool_call>"],
    key_open: "<arg_key>",
    key_close: "</arg_key>",
    value_open: "<arg_value>",
    value_close: "</arg_value>",
    close: "",
    end: "</tool_call>",
};

const WRITTEN: CallFrame<&str> = CallFrame {
    first: "<tool_call>",
    between: "\n",
    next: Some("</tool_call>\n<tool_call>"),
    last: "</tool_call>",
    arguments: ArgumentSyntax::Elements(ELEMENT),
    ..CallFrame::NONE
};

const ELEMENT: ArgumentElement<&str> = ArgumentElement {
    open: "<arg_key>",
    text: "</arg_key>\n<arg_value>",
    json: "</arg_key>\n<arg_value>",
    close: "</arg_value>\n",
    mark: CALLS.value_close,
    says: false,
};
