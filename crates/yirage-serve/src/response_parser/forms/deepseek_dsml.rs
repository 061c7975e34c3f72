//! DeepSeek V3.2: elements of its own markup language, which say of each value whether it is text.

use super::{Form, Opener};
use crate::response_parser::frame::{Arguments, Element, Frame};
use crate::response_parser::syntax::{Elements, Syntax};

pub(super) const FORM: Form = Form {
    name: "deepseek_dsml",
    openers: &[
        Opener::new("<｜DSML｜function_calls>"),
        Opener::new("<｜DSML｜tool_calls>"),
        Opener::stays("<｜DSML｜invoke name=\""),
    ],
    syntaxes: &[Syntax::Elements(&CALLS), Syntax::Elements(&TOOL_CALLS)],
    told: &[&["<｜DSML｜invoke"]],
    written: WRITTEN,
    ..Form::NONE
};

const CALLS: Elements = Elements {
    open: "<｜DSML｜invoke name=\"",
    name_ends: &[">"],
    key_open: "<｜DSML｜parameter name=\"",
    key_close: ">",
    value_open: "",
    value_close: "</｜DSML｜parameter>",
    close: "</｜DSML｜invoke>",
    end: "</｜DSML｜function_calls>",
};

const TOOL_CALLS: Elements = Elements { end: "</｜DSML｜tool_calls>", ..CALLS };

const WRITTEN: Frame<&str> = Frame {
    first: "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"",
    between: "\">\n",
    next: Some("</｜DSML｜invoke>\n<｜DSML｜invoke name=\""),
    last: "</｜DSML｜invoke>\n</｜DSML｜function_calls>",
    arguments: Arguments::Elements(ELEMENT),
    ..Frame::NONE
};

const ELEMENT: Element<&str> = Element {
    open: "<｜DSML｜parameter name=\"",
    text: "\" string=\"true\">",
    json: "\" string=\"false\">",
    close: "</｜DSML｜parameter>\n",
    mark: CALLS.value_close,
    says: true,
};
