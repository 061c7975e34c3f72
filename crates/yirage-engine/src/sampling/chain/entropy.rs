//! The entropy of probabilities, in nats.

/// The sum of `-p ln p`; tokens of probability 0 add nothing.
pub(super) fn entropy(probabilities: &[f64]) -> f64 {
    probabilities.iter().filter(|p| **p > 0.0).map(|&p| -p * libm::log(p)).sum()
}
