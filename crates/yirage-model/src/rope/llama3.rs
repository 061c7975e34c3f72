//! The scaling of Llama 3.1 (arXiv 2407.21783; `rope_type` "llama3"): low frequencies are divided, high ones kept.

use crate::config::RopeScaling;
use std::f64::consts::TAU;

/// The scaled frequencies; other scalings leave them as they are.
pub(super) fn scale(plain: Vec<f64>, scaling: &RopeScaling) -> Vec<f64> {
    let RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, original } = *scaling else { return plain };
    let original = f64::from(original);
    let one = |f: f64| {
        // How many times the wave fits into the original context.
        let turns = original * f / TAU;
        let smooth = ((turns - low_freq_factor) / (high_freq_factor - low_freq_factor)).clamp(0.0, 1.0);
        (1.0 - smooth) * f / factor + smooth * f
    };
    plain.into_iter().map(one).collect()
}
