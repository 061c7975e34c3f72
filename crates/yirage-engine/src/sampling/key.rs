//! Names of random numbers.

use yirage_ir::op::sample::uniform;

/// Names one random number. Equal keys give equal numbers, whatever else was drawn in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RngKey {
    /// The request's seed.
    pub seed: u64,
    /// Distinguishes sequences under one seed (the index of a choice, say). For outputs that can be reproduced it must
    /// come from the request and not from the order of arrival.
    pub salt: u64,
    /// Position of the token that is sampled.
    pub position: u32,
}

impl RngKey {
    /// The words of the op's slot `key`.
    pub fn words(self) -> [u32; 5] {
        let RngKey { seed, salt, position } = self;
        [seed as u32, (seed >> 32) as u32, salt as u32, (salt >> 32) as u32, position]
    }

    /// The number in [0, 1) that it names, with 53 random bits.
    pub fn uniform(self) -> f64 {
        uniform(self.words())
    }
}
