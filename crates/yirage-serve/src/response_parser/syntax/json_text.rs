//! Where a JSON value ends in a text that comes in parts. What is within is passed on as it was written, digits and all.

/// Levels of a value that are followed.
const MAX_DEPTH: usize = 128;

/// A JSON object or list as it comes.
#[derive(Clone, Debug, Default)]
pub(in crate::response_parser) struct JsonText {
    /// What closes each level that is open.
    open: Vec<u8>,
    in_text: bool,
    escaped: bool,
}

/// How far it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::response_parser) enum JsonProgress {
    /// All that was shown is part of it, and more is.
    Open,
    /// It ended with so many of the bytes that were shown.
    Ended(usize),
    /// It is none.
    Broken,
}

impl JsonText {
    /// Takes more of it, which begins with a bracket.
    pub(in crate::response_parser) fn take(&mut self, text: &str) -> JsonProgress {
        for (at, byte) in text.bytes().enumerate() {
            if self.in_text {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' if self.open.is_empty() => return JsonProgress::Ended(at + 1),
                    b'"' => self.in_text = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_text = true,
                b'{' => self.open.push(b'}'),
                b'[' => self.open.push(b']'),
                b'}' | b']' if self.open.pop() != Some(byte) => return JsonProgress::Broken,
                _ => {}
            }
            if self.open.len() > MAX_DEPTH {
                return JsonProgress::Broken;
            }
            if self.open.is_empty() && !self.in_text {
                return JsonProgress::Ended(at + 1);
            }
        }
        JsonProgress::Open
    }
}

/// The length of the JSON value at the beginning of `text`; none where it has not ended.
///
/// # Errors
/// What is no value.
pub(super) fn value(text: &str, whole: bool) -> Result<Option<usize>, ()> {
    match text.bytes().next() {
        None => Ok(None),
        Some(b'{' | b'[' | b'"') => match JsonText::default().take(text) {
            JsonProgress::Ended(length) => Ok(Some(length)),
            JsonProgress::Open => Ok(None),
            JsonProgress::Broken => Err(()),
        },
        Some(_) => {
            let ends = |c: char| c.is_whitespace() || matches!(c, ',' | '}' | ']' | ':');
            let length = text.find(ends).or(whole.then_some(text.len()));
            match length {
                Some(length) if serde_json::from_str::<serde_json::Value>(&text[..length]).is_err() => Err(()),
                length => Ok(length),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_end_where_they_end() {
        assert_eq!(JsonText::default().take(r#"{"a": "}\"]", "b": [1]} x"#), JsonProgress::Ended(23));
        let mut parts = JsonText::default();
        assert_eq!(parts.take(r#"{"a": "\"#), JsonProgress::Open);
        assert_eq!(parts.take(r#"""#), JsonProgress::Open);
        assert_eq!(parts.take(r#""}"#), JsonProgress::Ended(2));
        assert_eq!(JsonText::default().take("{]"), JsonProgress::Broken);
        assert_eq!(JsonText::default().take(&"[".repeat(1000)), JsonProgress::Broken);
        assert_eq!(value("12, ", false), Ok(Some(2)));
        assert_eq!(value("12", false), Ok(None));
        assert_eq!(value("12", true), Ok(Some(2)));
        assert_eq!(value("nope,", false), Err(()));
        assert_eq!(value("\"a\\\"b\" c", false), Ok(Some(6)));
    }
}
