//! Random numbers for cases of ops and for tests: each is a pure function of a seed and a counter, the same on every
//! machine. Sampling has a generator of its own ([`crate::op::Sample`]).
//!
//! [`at`] is the `counter`-th output of SplitMix64 (G. Steele, D. Lea and C. Flood, "Fast splittable pseudorandom number
//! generators", OOPSLA 2014), whose state is only a counter: any number can be had without those before it. [`Rng`] counts
//! for its user. `tools/oracle/counter_rng.py` computes the same numbers.

/// The step of the counter: 2^64 divided by the golden ratio, made odd.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The number at place `counter` of the sequence of `seed`.
#[must_use]
pub const fn at(seed: u64, counter: u64) -> u64 {
    mix(seed.wrapping_add(counter.wrapping_add(1).wrapping_mul(STEP)))
}

/// The finaliser of SplitMix64 (D. Stafford's variant 13): every bit of the result depends on every bit of `z`.
#[must_use]
pub const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The numbers of a seed, one after the other; a failing test can be run again from its seed.
#[derive(Clone, Debug)]
pub struct Rng {
    seed: u64,
    counter: u64,
}

impl Rng {
    /// The sequence of `seed`, from its beginning.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { seed, counter: 0 }
    }

    /// The next number, all 64 bits of it.
    pub const fn next_u64(&mut self) -> u64 {
        let value = at(self.seed, self.counter);
        self.counter = self.counter.wrapping_add(1);
        value
    }

    /// A whole number below `n`; larger ones are less likely by at most `n` of 2^64.
    ///
    /// # Panics
    /// `n` is 0.
    pub const fn below(&mut self, n: u64) -> u64 {
        self.next_u64() % n
    }

    /// True once in `n` times.
    pub const fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// One of `items`.
    ///
    /// # Panics
    /// There are none.
    pub const fn choose<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.index(items.len())]
    }

    /// An index of something `n` long.
    ///
    /// # Panics
    /// `n` is 0.
    pub const fn index(&mut self, n: usize) -> usize {
        self.below(n as u64) as usize
    }

    /// From -1 to below 1, in steps of 2^-23.
    pub const fn signed_f32(&mut self) -> f32 {
        2.0 * self.unit_f32() - 1.0
    }

    /// From 0 to below 1, in steps of 2^-24.
    pub const fn unit_f32(&mut self) -> f32 {
        (self.next_u64() >> 40) as f32 / (1u64 << 24) as f32
    }

    /// From 0 to below 1, in steps of 2^-53.
    pub const fn unit_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Of mean 0 and variance 1: twelve uniform numbers less their mean. Additions only, so every machine gets the same
    /// bits; the tails end at 6.
    pub const fn normal(&mut self) -> f64 {
        let mut sum = -6.0;
        let mut left = 12;
        while left > 0 {
            sum += self.unit_f64();
            left -= 1;
        }
        sum
    }

    /// `items` in another order (R. Fisher and F. Yates).
    pub const fn shuffle<T>(&mut self, items: &mut [T]) {
        let mut left = items.len();
        while left > 1 {
            let chosen = self.index(left);
            left -= 1;
            items.swap(chosen, left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Rng, at};

    /// The first outputs of the published generator for the seed 1234567.
    const KNOWN: [u64; 5] = [
        6_457_827_717_110_365_317,
        3_203_168_211_198_807_973,
        9_817_491_932_198_370_423,
        4_593_380_528_125_082_431,
        16_408_922_859_458_223_821,
    ];

    #[test]
    fn the_numbers_are_those_of_the_published_generator() {
        let mut rng = Rng::new(1_234_567);
        for (counter, known) in KNOWN.into_iter().enumerate() {
            assert_eq!((rng.next_u64(), at(1_234_567, counter as u64)), (known, known));
        }
    }

    #[test]
    fn ranges_and_moments_are_right() {
        let mut rng = Rng::new(7);
        let n = 100_000;
        let normal: Vec<f64> = (0..n).map(|_| rng.normal()).collect();
        let mean = normal.iter().sum::<f64>() / f64::from(n);
        let variance = normal.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / f64::from(n);
        assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.03, "{mean}, {variance}");
        for _ in 0..n {
            let (f, d) = (rng.unit_f32(), rng.unit_f64());
            assert!((0.0..1.0).contains(&f) && (0.0..1.0).contains(&d) && rng.below(7) < 7);
        }
    }

    #[test]
    fn shuffling_loses_nothing_and_moves() {
        let mut items: Vec<u32> = (0..100).collect();
        Rng::new(3).shuffle(&mut items);
        assert!(items.iter().zip(0..).filter(|(a, b)| **a != *b).count() > 80);
        items.sort_unstable();
        assert!(items.into_iter().eq(0..100));
    }
}
