//! GigaChat 3: an object behind a mark, or in its first revision behind a role of its own; one in an answer.

use super::{CallOpener, ToolCallForm};
use crate::response_parser::frame::{ArgumentSyntax, CallFrame};
use crate::response_parser::syntax::{ObjectsSyntax, Syntax};

pub(super) const FORM: ToolCallForm = ToolCallForm {
    name: "gigachat3",
    openers: &[
        CallOpener::new("<|function_call|>"),
        // Behind what is said to the user it is a message of its own.
        CallOpener::new("<|message_sep|>\n\nfunction call<|role_sep|>"),
        CallOpener::new("function call<|role_sep|>"),
    ],
    syntaxes: &[Syntax::Objects(&CALL)],
    prompt_marks: &[&["<|function_call|>"]],
    written: WRITTEN,
    ..ToolCallForm::NONE
};

const CALL: ObjectsSyntax = ObjectsSyntax {
    names: &["name"],
    arguments: &["arguments", "parameters"],
    list: false,
    before: &[],
    end: Some("<|message_sep|>"),
};

const WRITTEN: CallFrame<&str> = CallFrame {
    first: "<|function_call|>{\"name\": \"",
    between: "\", \"arguments\": ",
    last: "}",
    arguments: ArgumentSyntax::Json,
    ..CallFrame::NONE
};
