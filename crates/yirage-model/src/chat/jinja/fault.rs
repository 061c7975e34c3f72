//! Why a template stopped, before it is known which template it was.

/// A fault and the line it happened in.
#[derive(Debug)]
pub(in crate::chat) struct Fault(Box<FaultInner>);

#[derive(Debug)]
struct FaultInner {
    line: u32,
    cause: Cause,
}

/// What stopped the template.
#[derive(Debug)]
pub(in crate::chat) enum Cause {
    /// A budget ran out.
    Limit { what: &'static str, limit: u64 },
    /// The template called `raise_exception`.
    Raised(String),
    /// Anything else, in words.
    Wrong(String),
}

pub(super) type JinjaResult<T> = Result<T, Fault>;

/// Longest text of a template that goes into a message.
const MAX_WORDS: usize = 4_096;

impl Fault {
    fn new(cause: Cause) -> Self {
        Self(Box::new(FaultInner { line: 0, cause }))
    }

    pub(super) fn limit(what: &'static str, limit: u64) -> Self {
        Self::new(Cause::Limit { what, limit })
    }

    pub(super) fn wrong(words: impl AsRef<str>) -> Self {
        Self::new(Cause::Wrong(shorten(words.as_ref())))
    }

    pub(super) fn raised(message: &str) -> Self {
        Self::new(Cause::Raised(shorten(message)))
    }

    /// Says the line, unless one is known already.
    pub(super) fn at(mut self, line: u32) -> Self {
        if self.0.line == 0 {
            self.0.line = line;
        }
        self
    }

    /// The line, 0 where unknown, and what happened.
    pub(in crate::chat) fn into_parts(self) -> (usize, Cause) {
        (self.0.line as usize, self.0.cause)
    }
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(MAX_WORDS) {
        Some((cut, _)) => format!("{}...", &text[..cut]),
        None => text.to_owned(),
    }
}
