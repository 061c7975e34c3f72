//! YaRN (Peng et al., arXiv 2309.00071; `rope_type` "yarn"): frequencies that turn often within the original context
//! are kept, those that turn rarely divided, with a ramp between; cosines and sines get a factor.

use crate::config::RopeScaling;
use std::f64::consts::TAU;

/// The blended frequencies; other scalings leave them as they are.
pub(super) fn blend(plain: Vec<f64>, theta: f64, rotary: u32, scaling: &RopeScaling) -> Vec<f64> {
    let RopeScaling::Yarn { factor, original, beta_fast, beta_slow, truncate, .. } = *scaling else { return plain };
    let dim = f64::from(rotary);
    // The (fractional) pair that turns `turns` times within the original context.
    let pair = |turns: f64| dim * (f64::from(original) / (turns * TAU)).ln() / (2.0 * theta.ln());
    let (low, high) = (pair(beta_fast), pair(beta_slow));
    let (low, high) = if truncate { (low.floor(), high.ceil()) } else { (low, high) };
    let (low, high) = (low.max(0.0), high.min(dim - 1.0));
    let width = if low == high { 0.001 } else { high - low };
    let one = |(i, f): (usize, f64)| {
        let divided = ((i as f64 - low) / width).clamp(0.0, 1.0);
        f / factor * divided + f * (1.0 - divided)
    };
    plain.into_iter().enumerate().map(one).collect()
}

/// The factor of cosines and sines: stated, a quotient of two (DeepSeek), or the paper's.
pub(super) fn factor(scaling: &RopeScaling) -> f64 {
    match *scaling {
        RopeScaling::Yarn { attention_factor: Some(stated), .. } => stated,
        RopeScaling::Yarn { factor, mscale: Some(m), mscale_all_dim: Some(all), .. } if m != 0.0 && all != 0.0 => {
            magnitude(factor, m) / magnitude(factor, all)
        }
        RopeScaling::Yarn { factor, .. } => magnitude(factor, 1.0),
        _ => 1.0,
    }
}

/// The factor that latent attention puts on its scores (DeepSeek-V2, arXiv 2405.04434): 1 for other scalings.
pub fn score_factor(scaling: &RopeScaling) -> f64 {
    match *scaling {
        RopeScaling::Yarn { factor, mscale_all_dim: Some(all), .. } if all != 0.0 => magnitude(factor, all).powi(2),
        _ => 1.0,
    }
}

/// `0.1 m ln(factor) + 1`.
fn magnitude(factor: f64, m: f64) -> f64 {
    if factor <= 1.0 { 1.0 } else { 0.1 * m * factor.ln() + 1.0 }
}
