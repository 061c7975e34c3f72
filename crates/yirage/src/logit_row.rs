//! What is read from a row of logits.

/// ln of the sum of exponentials, in f64.
pub(crate) fn logsumexp(row: &[f32]) -> f64 {
    let max = row.iter().fold(f32::NEG_INFINITY, |m, &x| m.max(x));
    if !max.is_finite() {
        return f64::from(max);
    }
    let max = f64::from(max);
    max + row.iter().map(|&x| (f64::from(x) - max).exp()).sum::<f64>().ln()
}

/// Index of the largest logit, the smallest among equals.
pub(crate) fn argmax(row: &[f32]) -> usize {
    let larger = |best: usize, i: usize| if row[i] > row[best] { i } else { best };
    (1..row.len()).fold(0, larger)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_exponentials_neither_overflow_nor_lose() {
        assert!((logsumexp(&[1000.0, 1000.0]) - (1000.0 + 2f64.ln())).abs() < 1e-12);
        assert!((logsumexp(&[0.0; 4]) - 4f64.ln()).abs() < 1e-15);
        assert_eq!(logsumexp(&[f32::NEG_INFINITY, 3.0]), 3.0);
        assert_eq!(logsumexp(&[f32::NEG_INFINITY]), f64::NEG_INFINITY);
    }

    #[test]
    fn equal_logits_go_to_the_smaller_id() {
        assert_eq!(argmax(&[1.0, 3.0, 3.0, 2.0]), 1);
        assert_eq!(argmax(&[-1.0]), 0);
    }
}
