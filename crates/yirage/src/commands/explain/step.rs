//! The step that is explained.

use crate::failure::CliFailure;
use crate::options::Layers;
use yirage_engine::limits::{BLOCK, MAX_STEP_TOKENS};
use yirage_ir::Dims;
use yirage_plan::work::SequenceSpan;

/// How many tokens of how many sequences.
pub(crate) struct StepSizeOptions {
    /// Tokens, at least one a sequence.
    pub(super) tokens: u32,
    /// Sequences, at least one.
    pub(super) seqs: u32,
    /// The largest sizes of the plan, where there is one already.
    bucket: Option<Dims>,
}

impl StepSizeOptions {
    /// Reads the options.
    ///
    /// # Errors
    /// [`CliFailure::Usage`] naming the option.
    pub(crate) fn resolve(layers: &Layers) -> Result<StepSizeOptions, CliFailure> {
        let allowed = 1..=MAX_STEP_TOKENS;
        let seqs = layers.number("seqs", &format!("a number from 1 to {MAX_STEP_TOKENS}"), |n| allowed.contains(n))?;
        let seqs = seqs.unwrap_or(1);
        let expected = format!("a number from {seqs}, one for each sequence, to {MAX_STEP_TOKENS}");
        let tokens = layers.number("tokens", &expected, |n| (seqs..=MAX_STEP_TOKENS).contains(n))?;
        Ok(StepSizeOptions { tokens: tokens.unwrap_or(seqs), seqs, bucket: None })
    }

    /// Each sequence's part of the step, from its first position on.
    pub(super) fn spans(&self) -> Vec<SequenceSpan> {
        let (each, more) = (self.tokens / self.seqs, self.tokens % self.seqs);
        (0..self.seqs).map(|i| SequenceSpan { start: 0, tokens: each + u32::from(i < more), rows: 1 }).collect()
    }

    /// Tokens of the longest sequence.
    pub(super) fn longest(&self) -> u32 {
        self.tokens.div_ceil(self.seqs)
    }

    /// Those of a plan, at most: what the options do not say is as large as the plan allows.
    ///
    /// # Errors
    /// [`CliFailure::Usage`] for options that say more than the plan takes.
    pub(super) fn of_plan(layers: &Layers, bucket: Dims) -> Result<StepSizeOptions, CliFailure> {
        let given = StepSizeOptions::resolve(layers)?;
        let or = |name: &str, given: u32, most: u32| if layers.raw_value(name).is_some() { given } else { most };
        let tokens = or("tokens", given.tokens, bucket.tokens);
        let seqs = or("seqs", given.seqs, bucket.seqs.min(tokens));
        for (name, wanted, most) in [("tokens", tokens, bucket.tokens), ("seqs", seqs, bucket.seqs.min(tokens))] {
            if wanted > most {
                return Err(layers.wrong(name, format!("at most {most}, for which the plan is made")));
            }
        }
        Ok(StepSizeOptions { tokens, seqs, bucket: Some(bucket) })
    }

    /// The sizes as a plan has them.
    pub(crate) fn dims(&self) -> Dims {
        let blocks = self.longest().div_ceil(BLOCK as u32);
        let dims = Dims { tokens: self.tokens, seqs: self.seqs, blocks, rows: self.seqs };
        match self.bucket {
            None => dims,
            Some(most) => Dims { blocks: blocks.min(most.blocks), rows: self.seqs.min(most.rows), ..dims },
        }
    }
}
