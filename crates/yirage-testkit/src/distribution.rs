//! Whether counts are of a distribution.

/// The statistic of counts against probabilities, and its degrees of freedom; rare outcomes are counted together.
#[must_use]
pub fn chi_square(counts: &[usize], probabilities: &[f64]) -> (f64, f64) {
    let n = counts.iter().sum::<usize>() as f64;
    let (mut statistic, mut bins, mut rest) = (0.0, 0.0, (0.0, 0.0));
    for (&count, p) in counts.iter().zip(probabilities) {
        if n * p < 5.0 {
            rest = (rest.0 + count as f64, rest.1 + n * p);
        } else {
            statistic += (count as f64 - n * p).powi(2) / (n * p);
            bins += 1.0;
        }
    }
    if rest.1 > 0.0 {
        statistic += (rest.0 - rest.1).powi(2) / rest.1;
        bins += 1.0;
    }
    (statistic, bins - 1.0)
}

/// The value that the statistic exceeds once in ten thousand times (E. Wilson and M. Hilferty, 1931).
#[must_use]
pub fn critical(freedom: f64) -> f64 {
    const NORMAL: f64 = 3.719;
    let a = 2.0 / (9.0 * freedom);
    freedom * (1.0 - a + NORMAL * a.sqrt()).powi(3)
}

/// The probabilities of a row of logits at a temperature.
#[must_use]
pub fn softmax(row: &[f32], temperature: f64) -> Vec<f64> {
    let max = row.iter().copied().fold(f32::MIN, f32::max);
    let weights: Vec<f64> = row.iter().map(|&x| (f64::from(x - max) / temperature).exp()).collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|w| w / sum).collect()
}
