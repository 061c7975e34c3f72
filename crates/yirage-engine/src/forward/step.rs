//! One call: rows of tokens to logits.

use super::core::Forward;
use super::inputs::inputs;
use super::row::ForwardRow;
use crate::block_positions::block_positions;
use crate::error::EngineError;
use crate::forward_error::ForwardError;
use crate::scheduler::LogitsWanted;
use yirage_hal::HalError;
use yirage_plancache::{CacheNotice, CallOutcome, HostArray, Mode};

/// What a call gave.
#[derive(Clone, Debug)]
pub struct ForwardStep {
    /// f32 `[n, vocabulary]`: of every token or of the last one of each row, in their order.
    pub logits: HostArray,
    /// What [`ForwardOptions::beside`](crate::ForwardOptions) asks for, of all tokens in the order of the rows.
    pub beside: Vec<HostArray>,
    /// How it ran.
    pub mode: Mode,
    /// What happened beside the result.
    pub notices: Vec<CacheNotice>,
    /// Whether positions that were cached had to be forgotten to make room for more sequences.
    pub forgot: bool,
}

impl Forward {
    /// Computes rows of tokens, each of another sequence, and keeps their keys and values.
    ///
    /// # Errors
    /// [`ForwardError`] for rows that cannot be computed, which change nothing; what compiler and device say, after which
    /// nothing is cached of these sequences from where the rows begin.
    pub fn forward(&mut self, rows: &[ForwardRow<'_>], wanted: LogitsWanted) -> Result<ForwardStep, EngineError> {
        if self.loaded_weights.is_none() {
            return Err(ForwardError::NoWeights.into());
        }
        self.check(rows)?;
        let forgot = self.reserve(rows.iter().map(|row| row.sequence + 1).max().unwrap_or(0))?;
        // A recurrent state that a step has begun to carry on is there no longer.
        let kept = if self.is_recurrent() { block_positions(&self.model) as u32 } else { 1 };
        let room = self.reservation.as_mut().ok_or(ForwardError::NoWeights)?;
        let inputs = inputs(room, rows, wanted, self.model.dynamic_rope.as_ref())?;
        for row in rows {
            let length = &mut room.lengths[row.sequence];
            *length = (row.start / kept * kept).min(*length);
        }
        let CallOutcome { outputs, mode, notices: told, .. } = self.plans.call(&room.graph, &inputs, Mode::Fusion)?;
        let mut outputs = outputs.into_iter();
        let logits = outputs.next();
        let logits = logits.ok_or_else(|| HalError::Step("the model's plan has no output".into()))?;
        for row in rows {
            room.lengths[row.sequence] = row.start + row.tokens.len() as u32;
        }
        Ok(ForwardStep { logits, beside: outputs.collect(), mode, notices: told, forgot })
    }
}
