//! Rotations that depend on how long a sequence will be, so that each sequence has its own: dynamic NTK scaling (as first
//! published by users of Llama in July 2023; `rope_type` "dynamic") and LongRoPE (arXiv 2402.13753).

use super::{Frequencies, base_frequencies};

/// The scaling of a model by the length of sequences.
#[derive(Clone, PartialEq, Debug)]
pub struct Dynamic {
    /// Positions the model was first trained with: sequences within them are all rotated alike.
    pub original: u32,
    /// What becomes of longer ones.
    pub longer: LongerSequences,
}

/// How sequences beyond the original context are rotated.
#[derive(Clone, PartialEq, Debug)]
pub enum LongerSequences {
    /// The base grows with the length.
    Ntk {
        /// The base of sequences within the original context.
        theta: f64,
        /// How fast the base grows with the length.
        factor: f64,
        /// Elements of a head that rotate.
        rotary: u32,
    },
    /// Other frequencies, the same for all of them, for which the model was trained further.
    LongRope {
        /// The frequencies of sequences within the original context.
        short: Frequencies,
        /// Those of longer ones.
        long: Frequencies,
    },
}

impl Dynamic {
    /// The length for which a sequence of so many positions is rotated: none where it is within the original context, the
    /// same for all sequences that are rotated alike.
    pub fn rotated_for(&self, positions: u32) -> Option<u32> {
        let length = match self.longer {
            LongerSequences::Ntk { .. } => positions,
            LongerSequences::LongRope { .. } => self.original.saturating_add(1),
        };
        (positions > self.original).then_some(length)
    }

    /// Whether longer sequences are rotated in a way that the model was never trained for.
    pub fn is_beyond_training(&self) -> bool {
        matches!(self.longer, LongerSequences::Ntk { .. })
    }

    /// The frequencies of sequences of so many positions.
    pub fn frequencies(&self, positions: u32) -> Frequencies {
        let is_longer = positions > self.original;
        match &self.longer {
            LongerSequences::LongRope { long, .. } if is_longer => long.clone(),
            LongerSequences::LongRope { short, .. } => short.clone(),
            &LongerSequences::Ntk { theta, factor, rotary } => {
                // A single pair has the frequency 1 whatever the base.
                let growth = if rotary <= 2 || !is_longer {
                    1.0
                } else {
                    let growth = factor * f64::from(positions) / f64::from(self.original) - (factor - 1.0);
                    growth.powf(f64::from(rotary) / (f64::from(rotary) - 2.0))
                };
                Frequencies { per_position: base_frequencies(theta * growth, rotary), factor: 1.0, growth: None }
            }
        }
    }
}
