//! Random numbers from a seed, the same on every machine.
//!
//! The generator is SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014). Gamma
//! variates are by Marsaglia and Tsang ("A simple method for generating gamma variables", ACM TOMS 26, 2000).

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// The stream of this seed and purpose: streams of different purposes have nothing in common.
    pub(crate) fn new(seed: u64, purpose: u64) -> Random {
        let mut first = Random(seed);
        Random(first.next() ^ purpose.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Above 0 and at most 1.
    pub(crate) fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Below `end`, which is above 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        // The high half of the product is even to 1 in 2^32 for the ends that occur here.
        ((u128::from(self.next()) * u128::from(end.max(1))) >> 64) as u64
    }

    /// Of the standard normal distribution, by Box and Muller.
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.unit().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Of the gamma distribution with this shape (above 0) and the mean 1.
    pub(crate) fn gamma(&mut self, shape: f64) -> f64 {
        // Below 1, one of a greater shape is made smaller.
        let boosted = if shape < 1.0 { shape + 1.0 } else { shape };
        let d = boosted - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        let sample = loop {
            let x = self.normal();
            let v = (1.0 + c * x).powi(3);
            if v > 0.0 && self.unit().ln() < 0.5 * x * x + d - d * v + d * v.ln() {
                break d * v;
            }
        };
        let sample = if shape < 1.0 { sample * self.unit().powf(1.0 / shape) } else { sample };
        sample / shape
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    // The first numbers of SplitMix64 for the seed 1234567, from the reference implementation's published test vector.
    #[test]
    fn the_generator_is_splitmix() {
        let mut random = Random(1_234_567);
        assert_eq!(
            [random.next(), random.next(), random.next()],
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    /// The gamma distribution of mean 1 has the variance 1/shape, and with shape 1 it is the exponential one, of which
    /// exp(-1) lies above its mean.
    #[test]
    fn gamma_has_its_moments() {
        const MANY: usize = 200_000;
        for shape in [0.25, 1.0, 4.0, 50.0] {
            let mut random = Random::new(7, 1);
            let samples: Vec<f64> = (0..MANY).map(|_| random.gamma(shape)).collect();
            let mean = samples.iter().sum::<f64>() / MANY as f64;
            let variance = samples.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / MANY as f64;
            assert!((mean - 1.0).abs() < 0.02, "{shape}: {mean}");
            assert!((variance * shape - 1.0).abs() < 0.05, "{shape}: {variance}");
            if shape == 1.0 {
                let above = samples.iter().filter(|x| **x > 1.0).count() as f64 / MANY as f64;
                assert!((above - (-1f64).exp()).abs() < 0.01, "{above}");
            }
        }
    }
}
