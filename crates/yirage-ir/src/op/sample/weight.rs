//! Weights of tokens: exponentials and sums in a fixed order, the same bits on every device.

/// Logits whose weights are added in f32 before they go into the f64 total: logit i of a chunk goes to partial sum
/// `i % 16`, and the partial sums are added in their order.
pub const CHUNK: usize = 1024;

/// Top-p measures weights in units of 2^-40 of the likeliest token's: integers, whose sum does not depend on its order
/// and fits 64 bits for a vocabulary of 2^22 tokens.
pub const MASS_UNIT: f64 = (1u64 << 40) as f64;

/// e^x for x <= 0 to about 1e-7 relative, and exactly 0 below -87. Plain multiplications and additions only, so every
/// device gives the same bits. The polynomial is that of the Cephes library's `expf` (S. Moshier, 1989).
pub fn exp(x: f32) -> f32 {
    // Adding and subtracting 1.5 * 2^23 rounds to the nearest integer, which is then in the low bits.
    const ROUND: f32 = 12_582_912.0;
    let clamped = if x > -87.0 { x } else { -87.0 };
    let shifted = clamped * std::f32::consts::LOG2_E + ROUND;
    let whole = shifted - ROUND;
    let r = clamped - whole * 0.693_359_4 + whole * 2.121_944_4e-4;
    let mut poly = 1.987_569_1e-4;
    for factor in [1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5] {
        poly = poly * r + factor;
    }
    let power = f32::from_bits(shifted.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127) << 23);
    let value = (poly * r * r + r + 1.0) * power;
    if x > -87.0 { value } else { 0.0 }
}

/// The weight of a logit: `exp((logit - max) * inverse)`, or 0 below `floor`. The likeliest token has weight 1.
pub fn weight(logit: f32, max: f32, inverse: f32, floor: f32) -> f32 {
    let weight = exp((logit - max) * inverse);
    if weight >= floor { weight } else { 0.0 }
}

/// The logit below which no token can be among those that `top_p` keeps of a whole row, given the sum of its weights.
///
/// The kept tokens all lie above `(1 - p) * total / vocabulary`, because the tokens below that have less than 1 - p of
/// the total together. A quarter of it is used, so that rounding cannot lose one.
pub fn nucleus_floor(max: f32, temperature: f32, top_p: f32, total: f64, vocabulary: usize) -> f64 {
    let least = 0.25 * (1.0 - f64::from(top_p)) * total / vocabulary as f64;
    f64::from(max) + least.ln() * f64::from(temperature)
}

/// The log-probability of a logit in a row with this largest logit and sum of weights at temperature 1.
pub fn logprob(logit: f32, max: f32, total: f64) -> f32 {
    (f64::from(logit) - f64::from(max) - total.ln()) as f32
}

/// The sums of the weights of each chunk.
pub(super) fn chunk_sums(weights: &[f32]) -> Vec<f64> {
    let sum = |chunk: &[f32]| {
        let mut partial = [0f32; 16];
        chunk.iter().enumerate().for_each(|(i, w)| partial[i % 16] += w);
        partial.iter().map(|&p| f64::from(p)).sum::<f64>()
    };
    weights.chunks(CHUNK).map(sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_close_to_the_real_one_everywhere() {
        let mut x = 0f32;
        while x > -87.0 {
            let (got, real) = (f64::from(exp(x)), f64::from(x).exp());
            assert!((got - real).abs() <= 2e-7 * real, "exp({x}) = {got}, really {real}");
            x -= 0.000_37;
        }
        assert_eq!(exp(0.0), 1.0);
        assert_eq!((exp(-87.5), exp(-1e30), exp(f32::NEG_INFINITY)), (0.0, 0.0, 0.0));
    }

    #[test]
    fn sums_of_all_lengths_match_f64() {
        for length in [0, 1, 15, 16, 17, 1023, 1024, 1025, 5000] {
            let row: Vec<f32> = (0..length).map(|at| ((at * 37) % 101) as f32 * 0.1 - 10.0).collect();
            let weights: Vec<f32> = row.iter().map(|&x| weight(x, 0.0, 1.0, 0.0)).collect();
            let real: f64 = row.iter().map(|&logit| f64::from(logit).exp()).sum();
            assert!((chunk_sums(&weights).iter().sum::<f64>() - real).abs() <= 1e-6 * real, "{length}");
        }
    }
}
