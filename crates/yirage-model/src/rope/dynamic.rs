//! Dynamic NTK scaling (as first published by users of Llama in July 2023; `rope_type` "dynamic").

/// The base for sequences of `context` positions. Up to the original context it is the unscaled one.
pub(super) fn base(theta: f64, factor: f64, original: u32, context: u32, rotary: u32) -> f64 {
    // A single pair has the frequency 1 whatever the base.
    if rotary <= 2 || context <= original {
        return theta;
    }
    let growth = factor * f64::from(context) / f64::from(original) - (factor - 1.0);
    theta * growth.powf(f64::from(rotary) / (f64::from(rotary) - 2.0))
}
