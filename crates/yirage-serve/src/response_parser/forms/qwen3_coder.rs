//! Qwen3-Coder and Nemotron 3: an element for the function and one for each parameter. The opener is at times forgotten.

use super::{Form, Opener};
use crate::response_parser::frame::{Arguments, Element, Frame};
use crate::response_parser::syntax::{Elements, Syntax};

pub(super) const FORM: Form = Form {
    name: "qwen3_coder",
    openers: &[Opener::new("<tool_call>"), Opener::stays("<function=")],
    syntaxes: &[Syntax::Elements(&CALLS)],
    told: &[&["<function=", "<parameter="]],
    written: WRITTEN,
    ..Form::NONE
};

const CALLS: Elements = Elements {
    open: "<function=",
    name_ends: &[">"],
    key_open: "<parameter=",
    key_close: ">",
    value_open: "",
    value_close: "</parameter>",
    close: "</function>",
    end: "</tool_call>",
};

const WRITTEN: Frame<&str> = Frame {
    first: "<tool_call>\n<function=",
    between: ">\n",
    next: Some("</function>\n</tool_call>\n<tool_call>\n<function="),
    last: "</function>\n</tool_call>",
    arguments: Arguments::Elements(ELEMENT),
    ..Frame::NONE
};

const ELEMENT: Element<&str> = Element {
    open: "<parameter=",
    text: ">\n",
    json: ">\n",
    close: "\n</parameter>\n",
    mark: CALLS.value_close,
    says: false,
};
