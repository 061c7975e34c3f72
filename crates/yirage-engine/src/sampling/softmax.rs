//! Unnormalised softmax weights of a row: fast, and equal on every machine.

use super::error::SampleError;

/// Logits whose weights are added in f32 before they go into the f64 total; also the unit in which a draw skips.
pub(super) const CHUNK: usize = 1024;

/// Independent partial results per chunk, so that the compiler can use vector registers without reordering sums.
const LANES: usize = 16;

/// e^x for x <= 0 to about 1e-7 relative, and exactly 0 below -87. Plain multiplications and additions only, so every
/// platform gives the same bits. The polynomial is that of the Cephes library's `expf` (S. Moshier, 1989).
pub(super) fn exp(x: f32) -> f32 {
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

/// How logits become weights: `exp((logit - max) / temperature)`, or 0 below the min-p floor. The likeliest token has
/// weight 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weights {
    pub(super) max: f32,
    pub(super) inverse_temperature: f32,
    /// Weights below this count as 0.
    pub(super) floor: f32,
}

impl Weights {
    /// The weight of one logit.
    pub(super) fn of(&self, logit: f32) -> f32 {
        let weight = exp((logit - self.max) * self.inverse_temperature);
        if weight >= self.floor { weight } else { 0.0 }
    }

    /// The sum of the weights of at most [`CHUNK`] logits, always added in the same order.
    pub(super) fn sum_chunk(&self, logits: &[f32]) -> f64 {
        let mut lanes = [0f32; LANES];
        let (groups, rest) = logits.as_chunks::<LANES>();
        for group in groups {
            for (lane, &logit) in lanes.iter_mut().zip(group) {
                *lane += self.of(logit);
            }
        }
        for (lane, &logit) in lanes.iter_mut().zip(rest) {
            *lane += self.of(logit);
        }
        lanes.iter().map(|&lane| f64::from(lane)).sum()
    }

    /// The sum of the weights of a row.
    pub(super) fn sum(&self, row: &[f32]) -> f64 {
        row.chunks(CHUNK).map(|chunk| self.sum_chunk(chunk)).sum()
    }
}

/// The largest logit of a row and the first token that has it.
///
/// # Errors
/// [`SampleError::NotFinite`] for a NaN or +infinity (with `stage` in the message), [`SampleError::NoCandidate`] when
/// there is nothing above -infinity.
pub(super) fn largest(row: &[f32], stage: &'static str) -> Result<(usize, f32), SampleError> {
    let mut best = (0, f32::NEG_INFINITY);
    for (at, chunk) in row.chunks(CHUNK).enumerate() {
        let (max, finite) = chunk_max(chunk);
        if !finite {
            let bad = |logit: &f32| logit.is_nan() || *logit == f32::INFINITY;
            let token = at * CHUNK + chunk.iter().position(bad).unwrap_or(0);
            return Err(SampleError::NotFinite { token, value: row[token], stage });
        }
        if max > best.1 {
            best = (at * CHUNK, max);
        }
    }
    let (from, max) = best;
    if max == f32::NEG_INFINITY {
        return Err(SampleError::NoCandidate { vocabulary: row.len() });
    }
    let within = row[from..].iter().position(|&logit| logit == max).unwrap_or(0);
    Ok((from + within, max))
}

/// The largest of some logits, and whether none is NaN or +infinity (else the first is meaningless).
pub(super) fn chunk_max(chunk: &[f32]) -> (f32, bool) {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let mut finite = [true; LANES];
    let (groups, rest) = chunk.as_chunks::<LANES>();
    for group in groups {
        for lane in 0..LANES {
            lanes[lane] = if group[lane] > lanes[lane] { group[lane] } else { lanes[lane] };
            finite[lane] &= group[lane] < f32::INFINITY;
        }
    }
    for (lane, &logit) in rest.iter().enumerate() {
        lanes[lane] = if logit > lanes[lane] { logit } else { lanes[lane] };
        finite[lane] &= logit < f32::INFINITY;
    }
    let max = lanes.iter().fold(f32::NEG_INFINITY, |max, &lane| if lane > max { lane } else { max });
    (max, finite.iter().all(|&finite| finite))
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
            let weights = Weights { max: 0.0, inverse_temperature: 1.0, floor: 0.0 };
            let real: f64 = row.iter().map(|&logit| f64::from(logit).exp()).sum();
            assert!((weights.sum(&row) - real).abs() <= 1e-6 * real, "{length}");
        }
    }
}
