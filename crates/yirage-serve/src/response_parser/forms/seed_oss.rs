//! Seed-OSS: Qwen3-Coder's elements between marks of its own.

use super::{Form, Opener};
use crate::response_parser::frame::{Arguments, Element, Frame};
use crate::response_parser::syntax::{Elements, Syntax};

pub(super) const FORM: Form = Form {
    name: "seed_oss",
    openers: &[Opener::new("<seed:tool_call>"), Opener::stays("<function=")],
    syntaxes: &[Syntax::Elements(&CALLS)],
    told: &[&["<seed:tool_call>"]],
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
    end: "</seed:tool_call>",
};

const WRITTEN: Frame<&str> = Frame {
    first: "<seed:tool_call>\n<function=",
    between: ">\n",
    next: Some("</function>\n<function="),
    last: "</function>\n</seed:tool_call>",
    arguments: Arguments::Elements(ELEMENT),
    ..Frame::NONE
};

const ELEMENT: Element<&str> = Element {
    open: "<parameter=",
    text: ">",
    json: ">",
    close: "</parameter>\n",
    mark: CALLS.value_close,
    says: false,
};
