//! Whether a call can be computed, before anything of it is.

use super::core::Forward;
use super::row::ForwardRow;
use crate::block_positions::block_positions;
use crate::forward_error::ForwardError;
use crate::limits::{MAX_SEQS, MAX_STEP_TOKENS};
use std::collections::HashSet;

impl Forward {
    /// Checks the rows of a call.
    pub(super) fn check(&self, rows: &[ForwardRow<'_>]) -> Result<(), ForwardError> {
        if rows.is_empty() || rows.len() > MAX_SEQS as usize {
            return Err(ForwardError::Rows { rows: rows.len(), most: MAX_SEQS });
        }
        let (mut seen, mut all) = (HashSet::new(), 0usize);
        for (row, given) in rows.iter().enumerate() {
            let (sequence, tokens) = (given.sequence, given.tokens.len());
            all = all.saturating_add(tokens);
            if tokens == 0 || all > MAX_STEP_TOKENS as usize {
                return Err(ForwardError::Tokens { row, tokens, most: MAX_STEP_TOKENS });
            }
            if sequence >= MAX_SEQS as usize {
                return Err(ForwardError::Rows { rows: sequence.saturating_add(1), most: MAX_SEQS });
            }
            if !seen.insert(sequence) {
                return Err(ForwardError::Twice { row, sequence });
            }
            let cached = self.cached().get(sequence).copied().unwrap_or(0);
            if given.start > cached {
                return Err(ForwardError::Position { row, start: given.start, cached });
            }
            let block = block_positions(&self.model) as u32;
            if self.is_recurrent() && given.start != cached && !given.start.is_multiple_of(block) {
                return Err(ForwardError::NoState { row, start: given.start, cached, block });
            }
            let end = u64::from(given.start) + tokens as u64;
            if end > u64::from(self.context) {
                return Err(ForwardError::TooLong { row, end, context: self.context });
            }
            let vocabulary = self.vocabulary();
            if let Some(at) = given.tokens.iter().position(|&id| id >= vocabulary) {
                return Err(ForwardError::Token { row, at, id: given.tokens[at], vocabulary });
            }
        }
        // Room for more sequences has none of the cached positions.
        let (most, there) = (rows.iter().map(|row| row.sequence + 1).max().unwrap_or(0), self.cached().len());
        match rows.iter().enumerate().find(|(_, given)| most > there && given.start > 0) {
            Some((row, given)) => Err(ForwardError::Position { row, start: given.start, cached: 0 }),
            None => Ok(()),
        }
    }
}
