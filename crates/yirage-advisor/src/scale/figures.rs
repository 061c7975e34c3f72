//! What a device and a link do, as figures.

use super::rank_step::{Collective, CollectiveKind};
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
    /// Seconds of a collective of so many ranks: messages one after the other, and the bytes that each rank gets.
    ///
    /// The counts are those of recursive doubling for gathers and broadcasts, and of a reduce-scatter with a gather behind it
    /// for sums (Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication Operations in MPICH", 2005).
    pub fn collective_seconds(&self, collective: &Collective, ranks: u32) -> f64 {
        if ranks < 2 {
            return 0.0;
        }
        let hops = f64::from(ranks.next_power_of_two().trailing_zeros());
        let others = f64::from(ranks - 1) / f64::from(ranks);
        let (messages, parts) = match collective.kind {
            CollectiveKind::AllReduce => (2.0 * hops, 2.0 * others),
            CollectiveKind::AllGather | CollectiveKind::ReduceScatter => (hops, others),
            CollectiveKind::Broadcast => (hops, 1.0),
            CollectiveKind::SendRecv => (1.0, 1.0),
        };
        messages * self.seconds + parts * collective.bytes / self.bytes_per_second
    }

    /// The link whose collectives of two sizes took so many seconds each.
    pub(super) fn fitted(small: (f64, Collective), large: (f64, Collective), ranks: u32) -> LinkFigures {
        let unit = LinkFigures { seconds: 0.0, bytes_per_second: 1.0 };
        let bytes = |collective: &Collective| unit.collective_seconds(collective, ranks);
        let of_messages = LinkFigures { seconds: 1.0, bytes_per_second: f64::INFINITY };
        let messages = |collective: &Collective| of_messages.collective_seconds(collective, ranks);
        // A small one that takes longer than its share of the large one takes its messages.
        let (more, longer) = (bytes(&large.1) - bytes(&small.1), large.0 - small.0);
        let bytes_per_second = if longer > 0.0 { more / longer } else { bytes(&large.1) / large.0 };
        let seconds = (small.0 - bytes(&small.1) / bytes_per_second) / messages(&small.1);
        LinkFigures { seconds: seconds.max(0.0), bytes_per_second }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: CollectiveKind, bytes: f64) -> Collective {
        Collective { kind, bytes }
    }

    #[test]
    fn collectives_take_their_messages_and_their_bytes() {
        let link = LinkFigures { seconds: 1.0, bytes_per_second: 100.0 };
        let took = |kind, ranks| link.collective_seconds(&of(kind, 800.0), ranks);
        assert_eq!(took(CollectiveKind::AllGather, 1), 0.0, "nobody to talk to");
        assert_eq!(took(CollectiveKind::AllGather, 2), 1.0 + 4.0);
        assert_eq!(took(CollectiveKind::AllGather, 8), 3.0 + 7.0);
        assert_eq!(took(CollectiveKind::AllGather, 5), 3.0 + 6.4, "as many messages as eight");
        assert_eq!(took(CollectiveKind::ReduceScatter, 4), 2.0 + 6.0);
        assert_eq!(took(CollectiveKind::AllReduce, 4), 4.0 + 12.0);
        assert_eq!(took(CollectiveKind::Broadcast, 4), 2.0 + 8.0);
        assert_eq!(took(CollectiveKind::SendRecv, 4), 1.0 + 8.0);
    }

    #[test]
    fn a_link_is_found_again_in_the_times_of_its_collectives() {
        let link = LinkFigures { seconds: 3e-6, bytes_per_second: 2e9 };
        for kind in [CollectiveKind::AllGather, CollectiveKind::AllReduce] {
            for ranks in [2, 3, 8] {
                let (small, large) = (of(kind, 4096.0), of(kind, 1e6));
                let timed = |one: Collective| (link.collective_seconds(&one, ranks), one);
                let found = LinkFigures::fitted(timed(small), timed(large), ranks);
                assert!((found.seconds / link.seconds - 1.0).abs() < 1e-9, "{found:?}");
                assert!((found.bytes_per_second / link.bytes_per_second - 1.0).abs() < 1e-9, "{found:?}");
            }
        }
        let (small, large) = (of(CollectiveKind::AllGather, 4e3), of(CollectiveKind::AllGather, 1e6));
        let noisy = LinkFigures::fitted((2e-3, small), (1e-3, large), 2);
        assert!(noisy.seconds > 0.0 && noisy.bytes_per_second == 5e5 / 1e-3, "{noisy:?}");
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
