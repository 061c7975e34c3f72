//! InternLM: an object between special tokens.

use super::{CallOpener, ToolCallForm};
use crate::response_parser::frame::{ArgumentSyntax, CallFrame};
use crate::response_parser::syntax::{ObjectsSyntax, Syntax};

pub(super) const FORM: ToolCallForm = ToolCallForm {
    name: "internlm",
    openers: &[CallOpener::new("<|action_start|><|plugin|>"), CallOpener::new("<|action_start|> <|plugin|>")],
    syntaxes: &[Syntax::Objects(&CALL)],
    prompt_marks: &[&["<|action_start|>", "<|plugin|>"]],
    written: WRITTEN,
    ..ToolCallForm::NONE
};

const CALL: ObjectsSyntax = ObjectsSyntax {
    names: &["name"],
    arguments: &["parameters", "arguments"],
    list: false,
    before: &[],
    end: Some("<|action_end|>"),
};

const WRITTEN: CallFrame<&str> = CallFrame {
    first: "<|action_start|><|plugin|>\n{\"name\": \"",
    between: "\", \"parameters\": ",
    next: Some("}<|action_end|>\n<|action_start|><|plugin|>\n{\"name\": \""),
    last: "}<|action_end|>",
    arguments: ArgumentSyntax::Json,
    ..CallFrame::NONE
};
