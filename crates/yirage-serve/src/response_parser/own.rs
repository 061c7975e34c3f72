//! How one model writes calls that have to come: the frame of its form, with its own tokens.

use super::frame::CallFrame;

/// How one model writes calls.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ModelCallFrame {
    pub(crate) frame: CallFrame,
    /// Marks of the frame that are tokens.
    pub(crate) tokens: Vec<(String, u32)>,
}

impl ModelCallFrame {
    /// A frame, whose marks are these tokens of a model; some of them end its answers.
    pub(crate) fn new(mut frame: CallFrame, tokens: Vec<(String, u32)>, ends: &[u32]) -> ModelCallFrame {
        for (text, _) in tokens.iter().filter(|(_, id)| ends.contains(id)) {
            // What ends an answer stands behind the calls and is not of the text.
            if let Some(at) = frame.last.find(text.as_str()) {
                frame.last.truncate(at);
            }
            frame.next = frame.next.filter(|next| !next.contains(text.as_str()));
        }
        ModelCallFrame { frame, tokens }
    }
}
