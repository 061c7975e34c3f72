//! Stop strings and stop ids over a stream of tokens.

use crate::limits::{MAX_STOP_BYTES, MAX_STOP_IDS, MAX_STOP_STRINGS};

/// Stop conditions that cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StopError {
    /// Too many stop strings.
    #[error("the request has {count} stop strings; at most {MAX_STOP_STRINGS} are supported")]
    TooManyStrings {
        /// Strings given.
        count: usize,
    },
    /// An empty stop string would end every text before it begins.
    #[error("stop string {index} is empty; leave it out or give it at least one character")]
    EmptyString {
        /// Its index in the request.
        index: usize,
    },
    /// A stop string that is too long.
    #[error("stop string {index} has {bytes} bytes; at most {MAX_STOP_BYTES} are supported")]
    LongString {
        /// Its index in the request.
        index: usize,
        /// Its length.
        bytes: usize,
    },
    /// Too many stop ids.
    #[error("the request has {count} stop token ids; at most {MAX_STOP_IDS} are supported")]
    TooManyIds {
        /// Ids given.
        count: usize,
    },
}

/// What ended a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopHit {
    /// This stop id was sampled; its text is not part of the output.
    Id(u32),
    /// The stop string with this index (in the order given) was completed.
    Text(usize),
}

/// What one token gives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EmittedText {
    /// Text that is certainly part of the output. May be empty, and may belong to earlier tokens.
    pub text: String,
    /// Set once, by the token that ends the text.
    pub hit: Option<StopHit>,
}

/// Follows a text towards its first stop.
///
/// Text that could still turn out to be the beginning of a stop string is held back until it cannot, so no part of the
/// stop string that ends the text is ever emitted. The stop string that is completed first ends the text (the longest
/// of those completed by the same character), so the output does not depend on how the text is cut into pieces.
///
/// Each stop string is followed by its own Knuth-Morris-Pratt automaton (Knuth, Morris, Pratt 1977): the work per byte
/// is constant per string, whatever the text.
///
/// ```
/// use yirage_engine::text::{StopHit, StopMatcher};
///
/// let mut stop = StopMatcher::new(&["\n\nUser:"], &[2])?;
/// assert_eq!(stop.push(10, "Hello.\n").text, "Hello.");
/// assert_eq!(stop.push(11, "\nUser").text, "");
/// let end = stop.push(12, ": Hi");
/// assert_eq!((end.text.as_str(), end.hit), ("", Some(StopHit::Text(0))));
/// ```
#[derive(Clone, Debug)]
pub struct StopMatcher {
    ids: Vec<u32>,
    strings: Vec<Automaton>,
    /// Text not emitted yet.
    pending: String,
    done: bool,
}

impl StopMatcher {
    /// A matcher for a new text.
    ///
    /// # Errors
    /// [`StopError`] for an empty or too long string, and for too many strings or ids.
    pub fn new<S: AsRef<str>>(strings: &[S], ids: &[u32]) -> Result<Self, StopError> {
        if strings.len() > MAX_STOP_STRINGS {
            return Err(StopError::TooManyStrings { count: strings.len() });
        }
        if ids.len() > MAX_STOP_IDS {
            return Err(StopError::TooManyIds { count: ids.len() });
        }
        for (index, string) in strings.iter().map(AsRef::as_ref).enumerate() {
            if string.is_empty() {
                return Err(StopError::EmptyString { index });
            }
            if string.len() > MAX_STOP_BYTES {
                return Err(StopError::LongString { index, bytes: string.len() });
            }
        }
        let mut ids = ids.to_vec();
        ids.sort_unstable();
        let strings = strings.iter().map(|string| Automaton::new(string.as_ref())).collect();
        Ok(StopMatcher { ids, strings, pending: String::new(), done: false })
    }

    /// Takes a sampled token and the text that it completed (possibly none, possibly that of earlier tokens too). The
    /// text of a stop id is dropped; after a stop nothing is emitted any more.
    pub fn push(&mut self, token: u32, piece: &str) -> EmittedText {
        if self.done {
            return EmittedText::default();
        }
        if self.ids.binary_search(&token).is_ok() {
            self.done = true;
            return EmittedText { text: std::mem::take(&mut self.pending), hit: Some(StopHit::Id(token)) };
        }
        self.follow(piece)
    }

    /// Whether this token ends the text.
    pub fn ends_at(&self, token: u32) -> bool {
        self.ids.binary_search(&token).is_ok()
    }

    /// Takes a token that is no text but a mark in it, shown as `mark`. No stop string goes across one or is part of one, so
    /// what was held back comes first.
    /// `before` is what the detokeniser had left of the text before it.
    pub fn push_mark(&mut self, token: u32, before: &str, mark: &str) -> EmittedText {
        if self.done {
            return EmittedText::default();
        }
        let mut emitted = self.follow(before);
        if emitted.hit.is_some() {
            return emitted;
        }
        emitted.text.push_str(&std::mem::take(&mut self.pending));
        if self.ends_at(token) {
            self.done = true;
            return EmittedText { hit: Some(StopHit::Id(token)), ..emitted };
        }
        self.strings.iter_mut().for_each(|automaton| automaton.matched = 0);
        emitted.text.push_str(mark);
        emitted
    }

    /// Ends the text without a stop (length, cancellation): emits what is held back. `rest` is what the detokeniser had
    /// left; a stop string may still be completed by it.
    pub fn finish(&mut self, rest: &str) -> EmittedText {
        let mut emitted = if self.done { EmittedText::default() } else { self.follow(rest) };
        self.done = true;
        emitted.text.push_str(&std::mem::take(&mut self.pending));
        emitted
    }

    /// Bytes held back at the moment.
    pub fn pending_bytes(&self) -> usize {
        self.pending.len()
    }

    fn follow(&mut self, piece: &str) -> EmittedText {
        let before = self.pending.len();
        self.pending.push_str(piece);
        for (at, &byte) in piece.as_bytes().iter().enumerate() {
            let mut hit: Option<(usize, usize)> = None;
            for (index, automaton) in self.strings.iter_mut().enumerate() {
                let complete = automaton.step(byte);
                if complete && hit.is_none_or(|(_, length)| automaton.pattern.len() > length) {
                    hit = Some((index, automaton.pattern.len()));
                }
            }
            if let Some((index, length)) = hit {
                self.done = true;
                let mut text = std::mem::take(&mut self.pending);
                // A stop string begins with a whole character of the text, so this is a character boundary.
                text.truncate(before + at + 1 - length);
                return EmittedText { text, hit: Some(StopHit::Text(index)) };
            }
        }
        let keep = self.strings.iter().map(|automaton| automaton.matched).max().unwrap_or(0);
        let rest = self.pending.split_off(self.pending.len() - keep);
        EmittedText { text: std::mem::replace(&mut self.pending, rest), hit: None }
    }
}

/// How much of one stop string the end of the text matches.
#[derive(Clone, Debug)]
struct Automaton {
    pattern: Vec<u8>,
    /// For each length: the longest shorter beginning of the pattern that ends there as well.
    shorter: Vec<usize>,
    matched: usize,
}

impl Automaton {
    fn new(pattern: &str) -> Self {
        let pattern = pattern.as_bytes().to_vec();
        let mut shorter = vec![0; pattern.len() + 1];
        let mut matched = 0;
        for length in 1..pattern.len() {
            while matched > 0 && pattern[length] != pattern[matched] {
                matched = shorter[matched];
            }
            matched += usize::from(pattern[length] == pattern[matched]);
            shorter[length + 1] = matched;
        }
        Automaton { pattern, shorter, matched: 0 }
    }

    /// Takes the next byte of the text; whether it completes the pattern.
    fn step(&mut self, byte: u8) -> bool {
        while self.matched > 0 && self.pattern[self.matched] != byte {
            self.matched = self.shorter[self.matched];
        }
        self.matched += usize::from(self.pattern[self.matched] == byte);
        self.matched == self.pattern.len()
    }
}
