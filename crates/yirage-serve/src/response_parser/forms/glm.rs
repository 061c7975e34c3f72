//! GLM 4.5 to 4.7: the name, then each key and value in an element of its own.

use super::{Form, Opener};
use crate::response_parser::frame::{Arguments, Element, Frame};
use crate::response_parser::syntax::{Elements, Syntax};

pub(super) const FORM: Form = Form {
    name: "glm",
    openers: &[Opener::new("<tool_call>")],
    syntaxes: &[Syntax::Elements(&CALLS)],
    told: &[&["<tool_call>", "<arg_key>"]],
    written: WRITTEN,
    ..Form::NONE
};

const CALLS: Elements = Elements {
    open: "",
    name_ends: &["\n", "<arg_key>", "</tool_call>"],
    key_open: "<arg_key>",
    key_close: "</arg_key>",
    value_open: "<arg_value>",
    value_close: "</arg_value>",
    close: "",
    end: "</tool_call>",
};

const WRITTEN: Frame<&str> = Frame {
    first: "<tool_call>",
    between: "\n",
    next: Some("</tool_call>\n<tool_call>"),
    last: "</tool_call>",
    arguments: Arguments::Elements(ELEMENT),
    ..Frame::NONE
};

const ELEMENT: Element<&str> = Element {
    open: "<arg_key>",
    text: "</arg_key>\n<arg_value>",
    json: "</arg_key>\n<arg_value>",
    close: "</arg_value>\n",
    mark: CALLS.value_close,
    says: false,
};
