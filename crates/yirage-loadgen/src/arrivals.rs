//! When requests are sent.
//!
//! Gaps are of the gamma distribution whose shape is the burstiness: 1 is a Poisson process, less comes in bursts, more is
//! evener. As vLLM's `bench serve` does, all gaps are scaled so that the last request is sent when the rate says.

use crate::LoadError;
use crate::random::Random;
use std::time::Duration;

/// The purpose of these random numbers.
const ARRIVALS: u64 = 1;

/// Seconds that a schedule may last.
const LONGEST: f64 = 1e9;

/// How requests come.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ArrivalPattern {
    /// Requests a second; none is all at once.
    pub rate: Option<f64>,
    /// Shape of the gaps' distribution.
    pub burstiness: f64,
    /// Requests that are open at once, at most.
    pub max_concurrency: Option<usize>,
    /// What the gaps follow from.
    pub seed: u64,
}

/// When each request is sent, since the start.
#[derive(Clone, PartialEq, Debug)]
pub struct Schedule(Vec<Duration>);

impl Schedule {
    /// The schedule of so many requests.
    ///
    /// # Errors
    /// [`LoadError::Load`] for rates and shapes that are no numbers above 0, and for more seconds than can be waited.
    pub fn new(load: &ArrivalPattern, requests: usize) -> Result<Schedule, LoadError> {
        let Some(rate) = load.rate else { return Ok(Schedule(vec![Duration::ZERO; requests])) };
        let above = |what, value: f64| {
            let wrong = LoadError::Load { what, expected: "a number above 0", given: value.to_string() };
            if value > 0.0 && value.is_finite() { Ok(value) } else { Err(wrong) }
        };
        let (rate, shape) = (above("the request rate", rate)?, above("the burstiness", load.burstiness)?);
        let whole = requests as f64 / rate;
        if whole > LONGEST {
            let given = rate.to_string();
            return Err(LoadError::Load { what: "the request rate", expected: "one that ends within 30 years", given });
        }
        let mut random = Random::new(load.seed, ARRIVALS);
        let mut sum = 0.0;
        let sums: Vec<f64> = (0..requests)
            .map(|_| {
                sum += random.gamma(shape);
                sum
            })
            .collect();
        // With a very small shape all gaps may be too small for a number.
        let scale = if sum > 0.0 { whole / sum } else { 0.0 };
        Ok(Schedule(sums.iter().map(|at| Duration::from_secs_f64(at * scale)).collect()))
    }

    /// The moments, ascending.
    pub fn times(&self) -> &[Duration] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(rate: Option<f64>, burstiness: f64, seed: u64) -> ArrivalPattern {
        ArrivalPattern { rate, burstiness, max_concurrency: None, seed }
    }

    fn gaps(load: &ArrivalPattern) -> Vec<f64> {
        let schedule = Schedule::new(load, 5000).unwrap();
        schedule.times().windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect()
    }

    /// Standard deviation over mean: 1/sqrt(shape) for gamma distributions.
    fn variation(gaps: &[f64]) -> f64 {
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        (gaps.iter().map(|gap| (gap - mean) * (gap - mean)).sum::<f64>() / gaps.len() as f64).sqrt() / mean
    }

    #[test]
    fn the_last_is_sent_when_the_rate_says_and_gaps_vary_as_asked() {
        for shape in [0.25, 1.0, 16.0] {
            let load = load(Some(20.0), shape, 3);
            let last = *Schedule::new(&load, 5000).unwrap().times().last().unwrap();
            assert!((last.as_secs_f64() - 250.0).abs() < 1e-6, "{last:?}");
            let variation = variation(&gaps(&load));
            assert!((variation * shape.sqrt() - 1.0).abs() < 0.1, "{shape}: {variation}");
        }
    }

    #[test]
    fn a_seed_says_it_all() {
        let of = |seed| gaps(&load(Some(5.0), 1.0, seed));
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }

    #[test]
    fn without_a_rate_all_are_sent_at_once_and_nonsense_is_refused() {
        assert_eq!(Schedule::new(&load(None, 1.0, 0), 3).unwrap().times(), [Duration::ZERO; 3]);
        for (rate, shape) in [(0.0, 1.0), (-1.0, 1.0), (f64::NAN, 1.0), (1e-300, 1.0), (1.0, 0.0), (1.0, f64::INFINITY)]
        {
            assert!(Schedule::new(&load(Some(rate), shape, 0), 10).is_err(), "{rate} {shape}");
        }
        assert_eq!(Schedule::new(&load(Some(1.0), 1e-300, 0), 10).unwrap().times().len(), 10);
    }
}
