//! Names of random numbers.

use yirage_ir::op::sample::uniform;

/// Names one random number. Equal keys give equal numbers, whatever else was drawn in between. All of it comes from the
/// request: the same request draws the same numbers whenever it arrives, and whatever arrived before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RngKey {
    /// The request's seed.
    pub seed: u64,
    /// Which of the request's choices it is drawn for, from 0.
    pub choice: u32,
    /// Position of the token that is sampled.
    pub position: u32,
}

impl RngKey {
    /// The words of the op's slot `key`.
    pub fn words(self) -> [u32; 5] {
        let RngKey { seed, choice, position } = self;
        [seed as u32, (seed >> 32) as u32, choice, 0, position]
    }

    /// The number in [0, 1) that it names, with 53 random bits.
    pub fn uniform(self) -> f64 {
        uniform(self.words())
    }

    /// The number of another stream, for who needs a second one at a position; stream 0 is [`RngKey::uniform`].
    pub(super) fn uniform_of(self, stream: u32) -> f64 {
        let mut words = self.words();
        words[3] = stream;
        uniform(words)
    }
}
