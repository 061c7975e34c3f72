//! Mirostat, both versions: a limit that moves so that the surprise of the tokens stays at a target (Basu et al., "Mirostat: a
//! neural text decoding algorithm that directly controls perplexity", ICLR 2021). After the temperature it is all that chooses.

use super::candidates::Candidates;
use super::input::StageInput;
use super::temperature::divide;

/// Likeliest tokens by which the first version estimates the exponent of Zipf's law.
const ESTIMATED_BY: usize = 100;

/// Keeps what the limit allows of a row of `vocabulary` logits.
pub(super) fn apply(candidates: &mut Candidates, input: &StageInput<'_>, limit: f64, vocabulary: usize) {
    divide(candidates, f64::from(input.temperature));
    candidates.sort();
    let probabilities = candidates.probabilities();
    let kept = match input.chain.mirostat.version {
        1 => likeliest_by_zipf(&probabilities, limit, vocabulary),
        _ => probabilities.iter().take_while(|p| -libm::log2(**p) <= limit).count(),
    };
    candidates.keep_likeliest(kept.max(1));
}

/// How many likeliest tokens have the expected surprise `limit` if their probabilities follow Zipf's law.
fn likeliest_by_zipf(probabilities: &[f64], limit: f64, vocabulary: usize) -> usize {
    let (mut products, mut squares) = (0.0, 0.0);
    for (at, pair) in probabilities.windows(2).take(ESTIMATED_BY - 1).enumerate() {
        let step = libm::log((at + 2) as f64 / (at + 1) as f64);
        products += step * libm::log(pair[0] / pair[1]);
        squares += step * step;
    }
    let exponent: f64 = products / squares;
    let excess = exponent - 1.0;
    let base = excess * libm::exp2(limit) / (1.0 - libm::pow(vocabulary as f64, -excess));
    // What is no number becomes 0, and so the likeliest token alone.
    libm::pow(base, 1.0 / exponent) as usize
}
