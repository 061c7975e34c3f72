//! LongCat: the name, then each key and value in an element of its own, all with its maker's name.

use super::{Form, Opener};
use crate::response_parser::frame::{Arguments, Element, Frame};
use crate::response_parser::syntax::{Elements, Syntax};

pub(super) const FORM: Form = Form {
    name: "longcat",
    openers: &[Opener::new("<longcat_tool_call>")],
    syntaxes: &[Syntax::Elements(&CALLS)],
    told: &[&["<longcat_tool_call>"]],
    written: WRITTEN,
    ..Form::NONE
};

const CALLS: Elements = Elements {
    open: "",
    name_ends: &["\n", "<longcat_arg_key>", "</longcat_tool_call>"],
    key_open: "<longcat_arg_key>",
    key_close: "</longcat_arg_key>",
    value_open: "<longcat_arg_value>",
    value_close: "</longcat_arg_value>",
    close: "",
    end: "</longcat_tool_call>",
};

const WRITTEN: Frame<&str> = Frame {
    first: "<longcat_tool_call>",
    between: "\n",
    next: Some("</longcat_tool_call>\n<longcat_tool_call>"),
    last: "</longcat_tool_call>",
    arguments: Arguments::Elements(ELEMENT),
    ..Frame::NONE
};

const ELEMENT: Element<&str> = Element {
    open: "<longcat_arg_key>",
    text: "</longcat_arg_key>\n<longcat_arg_value>",
    json: "</longcat_arg_key>\n<longcat_arg_value>",
    close: "</longcat_arg_value>\n",
    mark: CALLS.value_close,
    says: false,
};
