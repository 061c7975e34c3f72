//! Learned positions of which the first rows are nobody's: RoBERTa counts from behind the number of the padding token.
//!
//! It does not know who reads the rows.

use super::RawConfig;
use crate::error::ModelError;

/// Types that count so.
const TYPES: &[&str] = &["roberta", "xlm-roberta"];

/// The number of the padding token where a file does not say it.
const PADDING: u32 = 1;

impl RawConfig {
    /// Rows of the table of positions in front of that of the first position.
    ///
    /// # Errors
    /// [`ModelError::Config`] for a padding token that is no number of a token.
    pub fn positions_before_first(&self) -> Result<u32, ModelError> {
        let before = self.u32_or("pad_token_id", PADDING)?.checked_add(1);
        before.ok_or_else(|| self.invalid("pad_token_id", "a token of the vocabulary"))
    }

    /// Leaves of the rows of the table the positions that a text may have.
    pub(super) fn count_learned_positions(&mut self, model_type: &str) -> Result<(), ModelError> {
        const KEY: &str = "max_position_embeddings";
        if !TYPES.contains(&model_type) {
            return Ok(());
        }
        let (before, rows) = (self.positions_before_first()?, self.u32(KEY)?);
        let positions = rows.checked_sub(before).filter(|&n| n > 0);
        let positions =
            positions.ok_or_else(|| self.invalid(KEY, &format!("more than {before}, the rows that are nobody's")))?;
        self.values.insert(KEY.into(), positions.into());
        Ok(())
    }
}
