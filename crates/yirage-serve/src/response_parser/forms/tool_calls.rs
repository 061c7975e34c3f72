//! `<tool_calls>` around objects (MiniMax M1, Jamba, Hunyuan A13B), or around names with arguments in blocks of code
//! (Hunyuan).

use super::{Form, Opener};
use crate::response_parser::frame::{Arguments, Frame};
use crate::response_parser::syntax::{Named, Objects, Syntax};

pub(super) const FORM: Form = Form {
    name: "tool_calls",
    openers: &[Opener::new("<tool_calls>")],
    syntaxes: &[Syntax::Objects(&OBJECTS), Syntax::Named(&NAMED)],
    told: &[&["<tool_calls>"]],
    written: WRITTEN,
    ..Form::NONE
};

const OBJECTS: Objects = Objects {
    names: &["name"],
    arguments: &["arguments", "parameters"],
    list: true,
    before: &[],
    end: Some("</tool_calls>"),
};

const NAMED: Named = Named {
    open: "<tool_call>",
    name_ends: &["\n", "```", "{"],
    before_arguments: &["```json", "```"],
    close: &["```", "</tool_call>"],
    end: Some("</tool_calls>"),
    // A kind may stand before the name, or a separator behind it.
    name: |text| text.trim_start_matches("function<tool_sep>").trim_end_matches("<tool_sep>"),
};

const WRITTEN: Frame<&str> = Frame {
    first: "<tool_calls>\n{\"name\": \"",
    between: "\", \"arguments\": ",
    next: Some("}\n{\"name\": \""),
    last: "}\n</tool_calls>",
    arguments: Arguments::Json,
    ..Frame::NONE
};
