//! Orders of threads and groups.

/// In which order threads and groups run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ThreadSchedule {
    /// All threads of a group in step, the first one first.
    Ascending,
    /// All threads of a group in step, the last one first.
    Descending,
    /// Thread by thread from barrier to barrier, threads and groups in orders of a seed.
    OneByOne(u64),
}

impl ThreadSchedule {
    /// The numbers below `n` in an order; of a seed, each `draw` has its own.
    pub(super) fn order(self, n: u64, draw: u64) -> impl Iterator<Item = u64> {
        let (first, step) = match self {
            ThreadSchedule::Ascending => (0, 1),
            ThreadSchedule::Descending => (n.saturating_sub(1), n.saturating_sub(1)),
            ThreadSchedule::OneByOne(seed) => {
                let drawn = mix(seed.wrapping_add(draw.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
                (drawn % n.max(1), coprime(mix(drawn), n))
            }
        };
        // Products of two numbers below 2^64 fit 128 bits.
        (0..n).map(move |at| ((u128::from(first) + u128::from(at) * u128::from(step)) % u128::from(n)) as u64)
    }
}

/// A number that has no factor in common with `n`: its multiples reach all numbers below `n`.
fn coprime(drawn: u64, n: u64) -> u64 {
    let n = n.max(1);
    (0..n).map(|more| (drawn % n + more) % n).find(|&step| divisor(step, n) == 1).unwrap_or(1)
}

/// The greatest common divisor.
fn divisor(a: u64, b: u64) -> u64 {
    if a == 0 { b } else { divisor(b % a, a) }
}

/// The finaliser of SplitMix64.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_once() {
        for n in [0, 1, 2, 3, 7, 12, 64, 100] {
            let schedules = [ThreadSchedule::Ascending, ThreadSchedule::Descending];
            for schedule in schedules.into_iter().chain((0..50).map(ThreadSchedule::OneByOne)) {
                let mut order: Vec<u64> = schedule.order(n, 3).collect();
                order.sort_unstable();
                assert!(order.into_iter().eq(0..n), "{n} {schedule:?}");
            }
        }
    }

    #[test]
    fn orders_are_those_that_are_asked_for() {
        assert!(ThreadSchedule::Ascending.order(5, 1).eq(0..5));
        assert!(ThreadSchedule::Descending.order(5, 1).eq((0..5).rev()));
        let drawn: std::collections::BTreeSet<Vec<u64>> =
            (0..100).map(|draw| ThreadSchedule::OneByOne(1).order(13, draw).collect()).collect();
        assert!(drawn.len() > 50, "{}", drawn.len());
    }
}
