//! The time of one encode call. Searches of any kind can be made to look at the same text again and again by a pattern
//! or a list of tokens from a file; no library counts that, so the clock ends it.

use std::cell::Cell;
use std::time::{Duration, Instant};

use super::error::{TokenizerError, shorten};
use super::limits;

/// Matches between two looks at the clock.
const MATCHES_PER_LOOK: u32 = 16;

#[derive(Debug)]
pub(super) struct EncodeDeadline {
    begun: Instant,
    allowed: Duration,
    until_look: Cell<u32>,
}

impl EncodeDeadline {
    /// Begins to encode a text of `bytes` bytes.
    pub(super) fn new(bytes: usize) -> Self {
        let allowed = limits::SEARCH_TIME + limits::SEARCH_TIME_PER_BYTE * u32::try_from(bytes).unwrap_or(u32::MAX);
        Self { begun: Instant::now(), allowed, until_look: Cell::new(MATCHES_PER_LOOK) }
    }

    /// Called for every match of `pattern` in a text, the match being at `offset`.
    pub(super) fn look(&self, pattern: &str, offset: usize) -> Result<(), TokenizerError> {
        match self.until_look.get() {
            0 => self.until_look.set(MATCHES_PER_LOOK),
            left => {
                self.until_look.set(left - 1);
                return Ok(());
            }
        }
        if self.begun.elapsed() <= self.allowed {
            return Ok(());
        }
        let detail = format!("more than {:.1} s spent on this text", self.allowed.as_secs_f64());
        Err(TokenizerError::Search { pattern: shorten(pattern), offset, detail })
    }
}
