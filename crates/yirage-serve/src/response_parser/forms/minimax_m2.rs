//! MiniMax M2: an element for each invocation and one for each parameter.

use super::{Form, Opener};
use crate::response_parser::frame::{Arguments, Element, Frame};
use crate::response_parser::syntax::{Elements, Syntax};

pub(super) const FORM: Form = Form {
    name: "minimax_m2",
    openers: &[Opener::new("<minimax:tool_call>")],
    syntaxes: &[Syntax::Elements(&CALLS)],
    told: &[&["<minimax:tool_call>"]],
    written: WRITTEN,
    ..Form::NONE
};

const CALLS: Elements = Elements {
    open: "<invoke name=",
    name_ends: &[">"],
    key_open: "<parameter name=",
    key_close: ">",
    value_open: "",
    value_close: "</parameter>",
    close: "</invoke>",
    end: "</minimax:tool_call>",
};

const WRITTEN: Frame<&str> = Frame {
    first: "<minimax:tool_call>\n<invoke name=\"",
    between: "\">\n",
    next: Some("</invoke>\n<invoke name=\""),
    last: "</invoke>\n</minimax:tool_call>",
    arguments: Arguments::Elements(ELEMENT),
    ..Frame::NONE
};

const ELEMENT: Element<&str> = Element {
    open: "<parameter name=\"",
    text: "\">",
    json: "\">",
    close: "</parameter>\n",
    mark: CALLS.value_close,
    says: false,
};
