//! Philox4x32-10, a counter-based random number generator.
//!
//! J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011. A bijection
//! of 128-bit counters under a 64-bit key that passes BigCrush; any number of the stream is one function call away.

const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
const ROUNDS: usize = 10;

/// The block of four random words at `counter` of the stream with `key`.
pub fn philox4x32_10(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let mut words = counter;
    let mut key = key;
    for _ in 0..ROUNDS {
        let low = u64::from(MULTIPLIERS[0]) * u64::from(words[0]);
        let high = u64::from(MULTIPLIERS[1]) * u64::from(words[2]);
        words =
            [(high >> 32) as u32 ^ words[1] ^ key[0], high as u32, (low >> 32) as u32 ^ words[3] ^ key[1], low as u32];
        key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
    }
    words
}

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
    /// A number in [0, 1) with 53 random bits.
    pub fn uniform(self) -> f64 {
        let counter = [self.position, 0, self.salt as u32, (self.salt >> 32) as u32];
        let words = philox4x32_10(counter, [self.seed as u32, (self.seed >> 32) as u32]);
        let bits = (u64::from(words[0]) << 32 | u64::from(words[1])) >> 11;
        bits as f64 / (1u64 << 53) as f64
    }
}
