//! LFM2: a list of Python's calls between special tokens, or of objects.

use super::{Form, Opener};
use crate::response_parser::frame::{Arguments, Frame};
use crate::response_parser::syntax::{Objects, Python, Syntax};

pub(super) const FORM: Form = Form {
    name: "lfm2",
    openers: &[Opener::new("<|tool_call_start|>")],
    syntaxes: &[Syntax::Python(&CALLS), Syntax::Objects(&OBJECTS)],
    told: &[&["<|tool_call_start|>"], &["<|tool_list_start|>"]],
    written: WRITTEN,
    ..Form::NONE
};

const CALLS: Python = Python { end: Some("<|tool_call_end|>") };

const OBJECTS: Objects = Objects {
    names: &["name"],
    arguments: &["arguments", "parameters"],
    list: true,
    before: &[],
    end: Some("<|tool_call_end|>"),
};

const WRITTEN: Frame<&str> = Frame {
    first: "<|tool_call_start|>[",
    between: "(",
    next: Some("), "),
    last: ")]<|tool_call_end|>",
    arguments: Arguments::Python,
    ..Frame::NONE
};
