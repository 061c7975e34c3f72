//! What a model says, piece by piece.

/// A piece of what a model says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ResponsePiece {
    /// Thought, and not for the user.
    Reasoning(String),
    /// Said.
    Content(String),
    /// A part of a call of a tool.
    Call(CallPart),
}

/// A part of a call of a tool. Between its beginning and its end come its arguments and nothing else; joined, they are
/// JSON text of an object. The answer may end before the call does.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CallPart {
    /// A tool of this name is called.
    Begin(String),
    /// More text of its arguments.
    Arguments(String),
    /// Its arguments are whole.
    End,
}

/// A call as far as it has come.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ToolCall {
    pub(crate) name: String,
    /// Arguments as JSON text.
    pub(crate) arguments: String,
    /// Whether they are whole.
    pub(crate) ended: bool,
}

impl ToolCall {
    /// Adds a part to the calls that it belongs to, the last one of `calls` or a new one.
    pub(crate) fn add(calls: &mut Vec<ToolCall>, part: CallPart) {
        match (part, calls.last_mut()) {
            (CallPart::Begin(name), _) => calls.push(ToolCall { name, ..ToolCall::default() }),
            (CallPart::Arguments(text), Some(call)) => call.arguments.push_str(&text),
            (CallPart::End, Some(call)) => call.ended = true,
            // Nothing of a call comes before its beginning.
            (CallPart::Arguments(_) | CallPart::End, None) => {}
        }
    }
}

impl ResponsePiece {
    /// Adds a piece of text to `pieces`, if there is any.
    pub(super) fn give(pieces: &mut Vec<ResponsePiece>, piece: fn(String) -> ResponsePiece, text: impl Into<String>) {
        let text = text.into();
        if !text.is_empty() {
            pieces.push(piece(text));
        }
    }
}
