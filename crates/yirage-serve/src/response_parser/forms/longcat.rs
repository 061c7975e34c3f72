//! LongCat: the name, then each key and value in an element of its own, all with its maker's name.

use super::{CallOpener, ToolCallForm};
use crate::response_parser::frame::{ArgumentElement, ArgumentSyntax, CallFrame};
use crate::response_parser::syntax::{ElementsSyntax, Syntax};

pub(super) const FORM: ToolCallForm = ToolCallForm {
    name: "longcat",
    openers: &[CallOpener::new("<longcat_tool_call>")],
    syntaxes: &[Syntax::Elements(&CALLS)],
    prompt_marks: &[&["<longcat_tool_call>"]],
    written: WRITTEN,
    ..ToolCallForm::NONE
};

const CALLS: ElementsSyntax = ElementsSyntax {
    open: "",
    name_ends: &["\n", "<longcat_arg_key>", "</longcat_tool_call>"],
    key_open: "<longcat_arg_key>",
    key_close: "</longcat_arg_key>",
    value_open: "<longcat_arg_value>",
    value_close: "</longcat_arg_value>",
    close: "",
    end: "</longcat_tool_call>",
};

const WRITTEN: CallFrame<&str> = CallFrame {
    first: "<longcat_tool_call>",
    between: "\n",
    next: Some("</longcat_tool_call>\n<longcat_tool_call>"),
    last: "</longcat_tool_call>",
    arguments: ArgumentSyntax::Elements(ELEMENT),
    ..CallFrame::NONE
};

const ELEMENT: ArgumentElement<&str> = ArgumentElement {
    open: "<longcat_arg_key>",
    text: "</longcat_arg_key>\n<longcat_arg_value>",
    json: "</longcat_arg_key>\n<longcat_arg_value>",
    close: "</longcat_arg_value>\n",
    mark: CALLS.value_close,
    says: false,
};
