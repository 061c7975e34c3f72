//! What a function of a library answers, as a driver's error.

use crate::abi::RawMessage;
use yirage_hal::driver::DriverError;

/// Bytes of the longest message: a compiler has much to say.
const MESSAGE: usize = 8192;

/// `YIRAGE_OUT_OF_MEMORY`, of which the caller knows how much was wanted.
pub(crate) const OUT_OF_MEMORY: i32 = 2;
/// `YIRAGE_NOT_YET`.
pub(crate) const NOT_YET: i32 = 5;

/// An answer that is not `YIRAGE_DONE`.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) call: &'static str,
    pub(crate) code: i32,
    pub(crate) said: String,
}

/// Calls a function that says in a message what is wrong.
pub(crate) fn ask(call: &'static str, function: impl FnOnce(*mut RawMessage) -> i32) -> Result<(), Answer> {
    let mut text = vec![0u8; MESSAGE];
    let mut message = RawMessage { text: text.as_mut_ptr().cast(), bytes: text.len() };
    match function(&mut message) {
        0 => Ok(()),
        code => Err(Answer { call, code, said: text_of(&text) }),
    }
}

/// Bytes up to a 0, as text.
pub(crate) fn text_of(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).trim().to_owned()
}

impl Answer {
    /// What was said, or that nothing was.
    fn why(self) -> String {
        match self.said.is_empty() {
            true => format!("the plug-in answered {} without a word", self.code),
            false => self.said,
        }
    }
}

impl From<Answer> for DriverError {
    fn from(answer: Answer) -> DriverError {
        let Answer { call, code, .. } = answer;
        match code {
            3 => DriverError::Lost(answer.why()),
            4 => DriverError::Unsupported { what: format!("`{call}`"), why: answer.why() },
            1 | OUT_OF_MEMORY | NOT_YET => DriverError::Failed { call, why: answer.why() },
            other => refused(call, format!("expected a status from 0 to 5, got {other}: {}", answer.why())),
        }
    }
}

/// An error of ours in a call.
pub(crate) fn refused(call: &'static str, why: impl Into<String>) -> DriverError {
    DriverError::Failed { call, why: why.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(code: i32, said: &str) -> DriverError {
        Answer { call: "launch", code, said: said.into() }.into()
    }

    #[test]
    fn an_answer_is_a_drivers_error() {
        assert_eq!(answered(1, "no kernel"), refused("launch", "no kernel"));
        assert_eq!(answered(3, "gone"), DriverError::Lost("gone".into()));
        assert!(matches!(answered(4, "never"), DriverError::Unsupported { why, .. } if why == "never"));
        assert!(answered(1, "").to_string().contains("answered 1 without a word"));
        assert!(answered(77, "x").to_string().contains("expected a status from 0 to 5, got 77"));
    }

    #[test]
    fn a_text_ends_at_its_zero_or_with_its_bytes() {
        assert_eq!([text_of(b"ab\0cd"), text_of(b"abc"), text_of(b"\xff\0")], ["ab", "abc", "\u{fffd}"]);
    }
}
