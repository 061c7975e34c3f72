//! What can go wrong between an engine and a device.

use thiserror::Error;

/// An error of a device, or of how it was used.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum HalError {
    /// The device cannot do this at all.
    #[error("{what} is not supported: {why}")]
    Unsupported {
        /// What was asked for.
        what: String,
        /// Why it cannot be.
        why: String,
    },
    /// Memory ran out.
    #[error("{pool} memory: {wanted} bytes do not fit ({detail})")]
    OutOfMemory {
        /// Which pool: weights, cache or arena.
        pool: &'static str,
        /// Bytes asked for.
        wanted: u64,
        /// What the device says.
        detail: String,
    },
    /// A plan names what the device or the bindings do not have.
    #[error("the plan made for this model does not fit the device: {0}; please report this with the model's name")]
    Load(String),
    /// A weight's bytes do not fit its entry.
    #[error("weight `{name}`: {why}")]
    Weight {
        /// The weight.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// A step does not fit its plan.
    #[error("step: {0}")]
    Step(String),
    /// The device failed while running.
    #[error("the device failed: {0}")]
    Device(String),
    /// The device is gone, with everything that was on it. Other devices go on.
    #[error("the device is lost: {0}")]
    Lost(String),
    /// An option has a value the backend does not take.
    #[error("option `{option}`: {why}")]
    Option {
        /// The option.
        option: &'static str,
        /// What is wrong with its value.
        why: String,
    },
}
