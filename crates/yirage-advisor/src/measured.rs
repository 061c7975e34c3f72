//! The ceilings of an open device: what it says of its hardware when it is asked to measure itself, and what a step costs
//! at least.

use crate::error::AdvisorError;
use crate::loaded::LoadedWorkload;
use crate::workload::smallest;
use yirage_hal::{Device, HalError, Limit, Readings};
use yirage_tune::Timing;

/// One ceiling, or why the device does not have it.
#[derive(Clone, PartialEq, Debug)]
pub struct Measurement {
    /// Which ceiling.
    pub limit: Limit,
    /// What was read; the reason where the hardware or the device has no such thing.
    pub read: Result<CeilingReadings, String>,
}

/// What was read of a ceiling.
#[derive(Clone, PartialEq, Debug)]
pub struct CeilingReadings {
    /// Bytes or operations a second.
    pub readings: Readings,
    /// What one reading does and counts.
    pub method: String,
}

/// The time of the smallest step.
#[derive(Clone, PartialEq, Debug)]
pub struct Latency {
    /// The steps.
    pub timing: Timing,
    /// What one of them is.
    pub method: String,
}

/// Reads one ceiling so many times. That the device does not have it is a result.
///
/// # Errors
/// What the device met.
pub fn measure(device: &dyn Device, limit: Limit, readings: usize) -> Result<Measurement, HalError> {
    let mut probe = match device.probe(limit) {
        Ok(probe) => probe,
        Err(HalError::Unsupported { why, .. }) => return Ok(Measurement { limit, read: Err(why) }),
        Err(e) => return Err(e),
    };
    let readings = Readings::take(&mut *probe, readings)?;
    Ok(Measurement { limit, read: Ok(CeilingReadings { readings, method: probe.method().to_owned() }) })
}

/// Times so many of the smallest steps, from submission to the result in the host's memory.
///
/// # Errors
/// What the compiler or the device says.
pub fn latency(device: &dyn Device, steps: usize) -> Result<Latency, AdvisorError> {
    let workload = smallest()?;
    let method = format!("{steps} steps of {} of {}, from submission to result", workload.op.name(), workload.shape);
    let timing = Timing::of_steps(steps, &mut LoadedWorkload::new(device, workload)?)?;
    Ok(Latency { timing, method })
}

#[cfg(test)]
mod tests {
    use super::*;
    use yirage_hal::reference::Reference;
    use yirage_hal::{Backend, OpenOptions};

    #[test]
    fn a_device_that_does_not_measure_itself_says_so() {
        let (device, _) = Reference::new().open(0, &OpenOptions::default()).unwrap();
        let measured = measure(&*device, Limit::MemoryRead, 3).unwrap();
        assert!(measured.read.unwrap_err().contains("does not measure itself"));
        let latency = latency(&*device, 5).unwrap();
        assert_eq!(latency.timing.steps(), 5);
        assert!(latency.timing.lowest() > 0.0 && latency.method.contains("softmax"), "{}", latency.method);
    }
}
