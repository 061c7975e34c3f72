//! Qwen3-Coder and Nemotron 3: an element for the function and one for each parameter. The opener is at times forgotten.

use super::{Form, Opener};
use crate::response_parser::syntax::{Elements, Syntax};

pub(super) const FORM: Form = Form {
    name: "qwen3_coder",
    openers: &[Opener::new("<tool_call>"), Opener::stays("<function=")],
    syntaxes: &[Syntax::Elements(&CALLS)],
    told: &[&["<function=", "<parameter="]],
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
