//! Kimi K2: an id that holds the name, and arguments behind a separator.

use super::{CallOpener, ToolCallForm};
use crate::response_parser::frame::{ArgumentSyntax, CallFrame};
use crate::response_parser::syntax::{NamedSyntax, Syntax};

pub(super) const FORM: ToolCallForm = ToolCallForm {
    name: "kimi_k2",
    openers: &[
        CallOpener::new("<|tool_calls_section_begin|>"),
        CallOpener::new("<|tool_call_section_begin|>"),
        CallOpener::stays("<|tool_call_begin|>"),
    ],
    syntaxes: &[Syntax::Named(&CALLS)],
    // Its templates for llama.cpp write calls of the past by changing a list, which other renderers refuse.
    prompt_marks: &[&["<|im_system|>tool_declare<|im_middle|>"]],
    written: WRITTEN,
    ..ToolCallForm::NONE
};

const CALLS: NamedSyntax = NamedSyntax {
    open: "<|tool_call_begin|>",
    name_ends: &["<|tool_call_argument_begin|>"],
    before_arguments: &[],
    close: &["<|tool_call_end|>"],
    end: Some("<|tool_calls_section_end|>"),
    // `functions.name:0`
    name: |id| {
        let id = id.strip_prefix("functions.").unwrap_or(id);
        id.rsplit_once(':').filter(|(_, at)| at.bytes().all(|byte| byte.is_ascii_digit())).map_or(id, |(name, _)| name)
    },
};

const WRITTEN: CallFrame<&str> = CallFrame {
    first: "<|tool_calls_section_begin|><|tool_call_begin|>functions.",
    between: ":\u{1}<|tool_call_argument_begin|>",
    next: Some("<|tool_call_end|><|tool_call_begin|>functions."),
    last: "<|tool_call_end|><|tool_calls_section_end|>",
    arguments: ArgumentSyntax::Json,
    ..CallFrame::NONE
};
