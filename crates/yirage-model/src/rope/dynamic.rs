//! Dynamic NTK scaling (as first published by users of Llama in July 2023; `rope_type` "dynamic"): the frequencies of a
//! sequence depend on how long it will be, so each sequence has its own.

use super::{Frequencies, base_frequencies};

/// The dynamic scaling of a model.
#[derive(Clone, PartialEq, Debug)]
pub struct Dynamic {
    /// The base of sequences within the original context.
    pub theta: f64,
    /// How fast the base grows with the length.
    pub factor: f64,
    /// Positions the model was trained with.
    pub original: u32,
    /// Elements of a head that rotate.
    pub rotary: u32,
}

impl Dynamic {
    /// The length that decides the frequencies of a sequence of so many positions: all within the original context have
    /// the same.
    pub fn length(&self, positions: u32) -> u32 {
        positions.max(self.original)
    }

    /// The frequencies of sequences of so many positions.
    pub fn frequencies(&self, positions: u32) -> Frequencies {
        let per_position = base_frequencies(self.base(positions), self.rotary);
        Frequencies { per_position, factor: 1.0, growth: None }
    }

    fn base(&self, positions: u32) -> f64 {
        // A single pair has the frequency 1 whatever the base.
        if self.rotary <= 2 || positions <= self.original {
            return self.theta;
        }
        let growth = self.factor * f64::from(positions) / f64::from(self.original) - (self.factor - 1.0);
        self.theta * growth.powf(f64::from(self.rotary) / (f64::from(self.rotary) - 2.0))
    }
}
