//! LongCat: the name, then each key and value in an element of its own, all with its maker's name.

use super::{Form, Opener};
use crate::response_parser::syntax::{Elements, Syntax};

pub(super) const FORM: Form = Form {
    name: "longcat",
    openers: &[Opener::new("<longcat_tool_call>")],
    syntaxes: &[Syntax::Elements(&CALLS)],
    told: &[&["<longcat_tool_call>"]],
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
