//! `<tool_calls>` around objects (MiniMax M1, Jamba, Hunyuan A13B), or around names with arguments in blocks of code
//! (Hunyuan).

use super::{CallOpener, ToolCallForm};
use crate::response_parser::frame::{ArgumentSyntax, CallFrame};
use crate::response_parser::syntax::{NamedSyntax, ObjectsSyntax, Syntax};

pub(super) const FORM: ToolCallForm = ToolCallForm {
    name: "tool_calls",
    openers: &[CallOpener::new("<tool_calls>")],
    syntaxes: &[Syntax::Objects(&OBJECTS), Syntax::Named(&NAMED)],
    prompt_marks: &[&["<tool_calls>"]],
    written: WRITTEN,
    ..ToolCallForm::NONE
};

const OBJECTS: ObjectsSyntax = ObjectsSyntax {
    names: &["name"],
    arguments: &["arguments", "parameters"],
    list: true,
    before: &[],
    end: Some("</tool_calls>"),
};

const NAMED: NamedSyntax = NamedSyntax {
    open: "<tool_call>",
    name_ends: &["\n", "```", "{"],
    before_arguments: &["```json", "```"],
    close: &["```", "</tool_call>"],
    end: Some("</tool_calls>"),
    // A kind may stand before the name, or a separator behind it.
    name: |text| text.trim_start_matches("function<tool_sep>").trim_end_matches("<tool_sep>"),
};

const WRITTEN: CallFrame<&str> = CallFrame {
    first: "<tool_calls>\n{\"name\": \"",
    between: "\", \"arguments\": ",
    next: Some("}\n{\"name\": \""),
    last: "}\n</tool_calls>",
    arguments: ArgumentSyntax::Json,
    ..CallFrame::NONE
};
