//! What a device and a link do, as figures.

use super::rank_step::StepCollective;
use serde::{Deserialize, Serialize};
use yirage_plan::work::Work;

/// What a device does in a step.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceFigures {
    /// Bytes of weights and of cached positions a second, as its kernels read them.
    pub bytes_per_second: f64,
    /// Operations of products a second, a multiplication and its addition being two. None where `bytes_per_second` was
    /// measured with as many tokens as the step has.
    pub ops_per_second: Option<f64>,
    /// Seconds that a step takes that does nothing.
    pub step_seconds: f64,
    /// Seconds that each step of a plan takes beside what it reads.
    pub kernel_seconds: f64,
}

/// What it takes to tell another device something.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkFigures {
    /// Seconds of a message of nothing.
    pub seconds: f64,
    /// Bytes a second that a device gets.
    pub bytes_per_second: f64,
}

impl DeviceFigures {
    /// Seconds of reading or of arithmetic, whichever takes longer.
    pub fn work_seconds(&self, work: &Work) -> f64 {
        let reading = work.bytes() / self.bytes_per_second;
        self.ops_per_second.map_or(reading, |rate| reading.max(work.ops() / rate))
    }
}

impl LinkFigures {
    /// Seconds of a collective.
    pub fn collective_seconds(&self, collective: &StepCollective) -> f64 {
        collective.messages * self.seconds + collective.bytes / self.bytes_per_second
    }

    /// The link whose collectives of two sizes took so many seconds each.
    pub(super) fn fitted(small: (f64, StepCollective), large: (f64, StepCollective)) -> LinkFigures {
        // A small one that takes longer than its share of the large one takes its messages.
        let (more, longer) = (large.1.bytes - small.1.bytes, large.0 - small.0);
        let bytes_per_second = if longer > 0.0 { more / longer } else { large.1.bytes / large.0 };
        let seconds = (small.0 - small.1.bytes / bytes_per_second) / small.1.messages;
        LinkFigures { seconds: seconds.max(0.0), bytes_per_second }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_found_again_in_the_times_of_its_collectives() {
        let link = LinkFigures { seconds: 3e-6, bytes_per_second: 2e9 };
        let of = |bytes| StepCollective { messages: 3.0, bytes };
        let timed = |bytes| (link.collective_seconds(&of(bytes)), of(bytes));
        let found = LinkFigures::fitted(timed(4096.0), timed(1e6));
        assert!((found.seconds / link.seconds - 1.0).abs() < 1e-9, "{found:?}");
        assert!((found.bytes_per_second / link.bytes_per_second - 1.0).abs() < 1e-9, "{found:?}");
        let noisy = LinkFigures::fitted((2e-3, of(4e3)), (1e-3, of(1e6)));
        assert!(noisy.seconds > 0.0 && noisy.bytes_per_second == 1e6 / 1e-3, "{noisy:?}");
    }

    #[test]
    fn work_takes_the_longer_of_reading_and_arithmetic() {
        let work = Work { weight_bytes: 60.0, cache_bytes: 40.0, matmul_ops: Vec::new(), f32_ops: 400.0 };
        let device =
            DeviceFigures { bytes_per_second: 10.0, ops_per_second: None, step_seconds: 0.0, kernel_seconds: 0.0 };
        assert_eq!(device.work_seconds(&work), 10.0);
        let slow = DeviceFigures { ops_per_second: Some(20.0), ..device };
        assert_eq!(slow.work_seconds(&work), 20.0);
    }
}
