//! How far what a model gave is from what it gave elsewhere: hidden states, distributions, tokens.

use super::record::TokenDifference;
use crate::logit_row::{argmax, logsumexp};

/// Rows of f32, one a token.
pub(super) type TokenRows = Vec<Vec<f32>>;

/// The largest difference of a token's hidden state from the expected one, over the root of that one's mean square.
pub(super) fn drift(got: &TokenRows, expected: &TokenRows) -> f64 {
    let of_token = |(got, expected): (&Vec<f32>, &Vec<f32>)| {
        let square: f64 = expected.iter().map(|&x| f64::from(x).powi(2)).sum();
        let rms = (square / expected.len().max(1) as f64).sqrt();
        let differences = got.iter().zip(expected).map(|(&g, &e)| no_less((f64::from(g) - f64::from(e)).abs()));
        let largest = differences.fold(0.0, f64::max);
        if largest == 0.0 { 0.0 } else { largest / rms }
    };
    got.iter().zip(expected).map(of_token).map(no_less).fold(0.0, f64::max)
}

/// What is no number is as far away as can be: the larger of two numbers would pass over it.
fn no_less(distance: f64) -> f64 {
    if distance.is_nan() { f64::INFINITY } else { distance }
}

/// The Kullback-Leibler divergence of a token's distribution from the expected one, in nats.
pub(super) fn divergence(got: &[f32], expected: &[f32]) -> f64 {
    let (of_got, of_expected) = (logsumexp(got), logsumexp(expected));
    let terms = got.iter().zip(expected).map(|(&g, &e)| {
        let (q, p) = (f64::from(g) - of_got, f64::from(e) - of_expected);
        if p == f64::NEG_INFINITY { 0.0 } else { p.exp() * (p - q) }
    });
    // What rounding leaves of equal distributions may lie below 0.
    no_less(terms.sum::<f64>()).max(0.0)
}

/// The tokens behind which the likeliest next one is another.
pub(super) fn differences(got: &TokenRows, expected: &TokenRows) -> Vec<TokenDifference> {
    let different = |(position, (got, expected)): (usize, (&Vec<f32>, &Vec<f32>))| {
        let (of_got, of_expected) = (argmax(got), argmax(expected));
        let margin = f64::from(expected[of_expected]) - f64::from(expected[of_got]);
        (of_got != of_expected).then_some(TokenDifference { position, expected: of_expected, got: of_got, margin })
    };
    got.iter().zip(expected).enumerate().filter_map(different).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drift_is_of_the_token_that_is_furthest_away() {
        let expected = vec![vec![3.0, -3.0], vec![1.0, 1.0]];
        assert_eq!(drift(&expected, &expected), 0.0);
        assert_eq!(drift(&vec![vec![3.0, -4.5], vec![1.0, 1.25]], &expected), 0.5);
        assert_eq!(drift(&vec![vec![3.0, -3.0], vec![f32::NAN, 1.0]], &expected), f64::INFINITY);
        assert_eq!(drift(&vec![vec![0.0, 0.0]], &vec![vec![0.0, 0.0]]), 0.0);
    }

    #[test]
    fn divergence_is_that_of_the_formula() {
        let expected = [0.0, (3.0f32).ln()];
        assert_eq!(divergence(&expected, &expected), 0.0);
        let wanted = 0.25 * (0.25f64 / 0.5).ln() + 0.75 * (0.75f64 / 0.5).ln();
        assert!((divergence(&[7.0, 7.0], &expected) - wanted).abs() < 1e-7);
        assert_eq!(divergence(&[f32::NAN, 0.0], &expected), f64::INFINITY);
        let masked = [f32::NEG_INFINITY, 1.0];
        assert_eq!(divergence(&masked, &masked), 0.0);
    }

    #[test]
    fn tokens_that_differ_have_the_margin_of_the_reference() {
        let (got, expected) = (vec![vec![1.0, 2.0], vec![5.0, 4.0]], vec![vec![1.0, 2.0], vec![3.5, 4.0]]);
        let first = TokenDifference { position: 1, expected: 1, got: 0, margin: 0.5 };
        assert_eq!(differences(&got, &expected), [first]);
        assert_eq!(differences(&expected, &expected), []);
    }
}
