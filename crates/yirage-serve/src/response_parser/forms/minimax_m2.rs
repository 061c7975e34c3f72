//! MiniMax M2: an element for each invocation and one for each parameter.

use super::{CallOpener, ToolCallForm};
use crate::response_parser::frame::{ArgumentElement, ArgumentSyntax, CallFrame};
use crate::response_parser::syntax::{ElementsSyntax, Syntax};

pub(super) const FORM: ToolCallForm = ToolCallForm {
    name: "minimax_m2",
    openers: &[CallOpener::new("<minimax:tool_call>")],
    syntaxes: &[Syntax::Elements(&CALLS)],
    prompt_marks: &[&["<minimax:tool_call>"]],
    written: WRITTEN,
    ..ToolCallForm::NONE
};

const CALLS: ElementsSyntax = ElementsSyntax {
    open: "<invoke name=",
    name_ends: &[">"],
    key_open: "<parameter name=",
    key_close: ">",
    value_open: "",
    value_close: "</parameter>",
    close: "</invoke>",
    end: "</minimax:tool_call>",
};

const WRITTEN: CallFrame<&str> = CallFrame {
    first: "<minimax:tool_call>\n<invoke name=\"",
    between: "\">\n",
    next: Some("</invoke>\n<invoke name=\""),
    last: "</invoke>\n</minimax:tool_call>",
    arguments: ArgumentSyntax::Elements(ELEMENT),
    ..CallFrame::NONE
};

const ELEMENT: ArgumentElement<&str> = ArgumentElement {
    open: "<parameter name=\"",
    text: "\">",
    json: "\">",
    close: "</parameter>\n",
    mark: CALLS.value_close,
    says: false,
};
