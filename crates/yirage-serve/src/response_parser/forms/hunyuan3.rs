//! Hunyuan 3: the name, then each key and value in an element of its own, all of whose marks end alike.

use super::{CallOpener, ToolCallForm};
use crate::response_parser::frame::{ArgumentElement, ArgumentSyntax, CallFrame};
use crate::response_parser::syntax::{ElementsSyntax, Syntax};

pub(super) const FORM: ToolCallForm = ToolCallForm {
    name: "hunyuan3",
    openers: &[CallOpener::new("<tool_calls:opensource>"), CallOpener::stays("<tool_call:opensource>")],
    syntaxes: &[Syntax::Elements(&CALLS)],
    prompt_marks: &[&["<tool_call:opensource>"]],
    written: WRITTEN,
    ..ToolCallForm::NONE
};

const CALLS: ElementsSyntax = ElementsSyntax {
    open: "<tool_call:opensource>",
    name_ends: &["<tool_sep:opensource>", "<arg_key:opensource>", "</tool_call:opensource>"],
    key_open: "<arg_key:opensource>",
    key_close: "</arg_key:opensource>",
    value_open: "<arg_value:opensource>",
    value_close: "</arg_value:opensource>",
    close: "</tool_call:opensource>",
    end: "</tool_calls:opensource>",
};

const WRITTEN: CallFrame<&str> = CallFrame {
    first: "<tool_calls:opensource>\n<tool_call:opensource>",
    between: "<tool_sep:opensource>\n",
    next: Some("</tool_call:opensource>\n<tool_call:opensource>"),
    last: "</tool_call:opensource>\n</tool_calls:opensource>",
    arguments: ArgumentSyntax::Elements(ELEMENT),
    ..CallFrame::NONE
};

const ELEMENT: ArgumentElement<&str> = ArgumentElement {
    open: "<arg_key:opensource>",
    text: "</arg_key:opensource>\n<arg_value:opensource>",
    json: "</arg_key:opensource>\n<arg_value:opensource>",
    close: "</arg_value:opensource>\n",
    mark: CALLS.value_close,
    says: false,
};
