//! Comparing rows of logits.

/// Index of the largest value, the first among equals.
#[must_use]
pub fn argmax(row: &[f32]) -> u32 {
    let best = row.iter().enumerate().reduce(|best, x| if x.1 > best.1 { x } else { best });
    best.unwrap().0 as u32
}

/// Logarithm of the sum of exponentials.
#[must_use]
pub fn logsumexp(row: &[f32]) -> f64 {
    let max = f64::from(row.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    max + row.iter().map(|&x| (f64::from(x) - max).exp()).sum::<f64>().ln()
}

/// Mean negative log-likelihood of `ids`, each given by the row before it.
#[must_use]
pub fn mean_nll(rows: &[Vec<f32>], ids: &[u32]) -> f64 {
    let of = |i: usize| logsumexp(&rows[i - 1]) - f64::from(rows[i - 1][ids[i] as usize]);
    (1..ids.len()).map(of).sum::<f64>() / (ids.len() - 1) as f64
}

/// The largest difference.
#[must_use]
pub fn worst(a: &[Vec<f32>], b: &[Vec<f32>]) -> f64 {
    pairs(a, b).map(|(a, b)| f64::from((a - b).abs())).fold(0.0, f64::max)
}

/// Root of the mean squared difference.
#[must_use]
pub fn rms(a: &[Vec<f32>], b: &[Vec<f32>]) -> f64 {
    (pairs(a, b).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>() / pairs(a, b).count() as f64).sqrt()
}

fn pairs<'a>(a: &'a [Vec<f32>], b: &'a [Vec<f32>]) -> impl Iterator<Item = (&'a f32, &'a f32)> {
    assert!(a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.len() == b.len()), "rows of other sizes");
    a.iter().flatten().zip(b.iter().flatten())
}

/// Standard deviation of all values.
#[must_use]
pub fn spread(rows: &[Vec<f32>]) -> f64 {
    let all = || rows.iter().flatten().map(|x| f64::from(*x));
    let n = all().count() as f64;
    let mean = all().sum::<f64>() / n;
    (all().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt()
}
