//! LFM2: a list of Python's calls between special tokens, or of objects.

use super::{CallOpener, ToolCallForm};
use crate::response_parser::frame::{ArgumentSyntax, CallFrame};
use crate::response_parser::syntax::{ObjectsSyntax, PythonSyntax, Syntax};

pub(super) const FORM: ToolCallForm = ToolCallForm {
    name: "lfm2",
    openers: &[CallOpener::new("<|tool_call_start|>")],
    syntaxes: &[Syntax::Python(&CALLS), Syntax::Objects(&OBJECTS)],
    // LFM2.5 lists tools without marks around them.
    prompt_marks: &[&["<|tool_call_start|>"], &["<|tool_list_start|>"], &["List of tools: ["]],
    written: WRITTEN,
    ..ToolCallForm::NONE
};

const CALLS: PythonSyntax = PythonSyntax { end: Some("<|tool_call_end|>") };

const OBJECTS: ObjectsSyntax = ObjectsSyntax {
    names: &["name"],
    arguments: &["arguments", "parameters"],
    list: true,
    before: &[],
    end: Some("<|tool_call_end|>"),
};

const WRITTEN: CallFrame<&str> = CallFrame {
    first: "<|tool_call_start|>[",
    between: "(",
    next: Some("), "),
    last: ")]<|tool_call_end|>",
    arguments: ArgumentSyntax::Python,
    ..CallFrame::NONE
};
