//! How many workers and schedulers a persistent kernel gets: YiRage's published numbers by kind of device.
//!
//! Two faults of the code behind these numbers are not repeated. It counts processors that the process may not use, and
//! gives one processor no scheduler. And it compares what a driver reports with 24 times 2^30 bytes, which hardly any
//! device sold with 24 GB does report.

use crate::hardware::Hardware;

/// How many workers and schedulers, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Workers {
    /// Workers, which run tasks.
    pub workers: u32,
    /// Schedulers on the same device, which hand tasks out.
    pub schedulers: u32,
    /// What the numbers follow from.
    pub reason: String,
}

/// Mirage's numbers: for GPUs of at least so many multiprocessors, those that run tasks. Each of the others has four
/// schedulers.
const BY_MULTIPROCESSORS: [(u32, u32); 5] = [(160, 144), (132, 128), (108, 96), (68, 64), (40, 30)];
/// Of GPUs with fewer.
const FEW: u32 = 20;

/// What a device's numbers follow from.
enum WorkerRule {
    /// The processors that a process may use.
    Processors,
    /// The processors beside a device that shares their memory.
    Shared,
    /// The device's own memory.
    Memory,
}

/// For devices sold with at least so many GB: workers and schedulers.
const BY_MEMORY: [(u64, u32, u32); 3] = [(24, 96, 48), (16, 64, 32), (8, 32, 16)];
/// For those with less, or of which the memory is not known.
const LEAST: (u32, u32) = (16, 8);
/// Of the memory sold, hundredths that a driver reports at least: it keeps some, and error correction takes some.
const REPORTED: u64 = 95;
const GB: u64 = 1_000_000_000;

/// The numbers for a device.
pub fn workers(hardware: &Hardware) -> Workers {
    match rule(&hardware.backend) {
        WorkerRule::Processors => by_processors(hardware.processors),
        WorkerRule::Shared => shared(hardware.processors),
        WorkerRule::Memory => by_memory(hardware.memory_bytes),
    }
}

/// Mirage's numbers for a GPU, by its multiprocessors. One is always left for schedulers: for a GPU of 20 or fewer its own
/// code has none, or fewer than none.
pub fn workers_of_multiprocessors(count: u32) -> Workers {
    let row = BY_MULTIPROCESSORS.iter().find(|&&(least, _)| count >= least);
    let most = count.saturating_sub(1).max(1);
    let workers = row.map_or(FEW, |&(_, workers)| workers).min(most);
    let reason = format!("{workers} of {count} multiprocessors run tasks, each of the others has four schedulers");
    Workers { workers, schedulers: count.saturating_sub(workers).max(1).saturating_mul(4), reason }
}

/// Whether the numbers are those of a processor's threads.
pub(crate) fn are_threads(hardware: &Hardware) -> bool {
    matches!(rule(&hardware.backend), WorkerRule::Processors)
}

fn rule(backend: &str) -> WorkerRule {
    match backend {
        "cpu" => WorkerRule::Processors,
        "mps" => WorkerRule::Shared,
        _ => WorkerRule::Memory,
    }
}

fn by_processors(processors: Option<u32>) -> Workers {
    let count = count_or_one(processors);
    let reason = format!("one worker for each of {}, 16 at most; half as many schedulers", named(processors));
    Workers { workers: count.min(16), schedulers: (count / 2).clamp(1, 8), reason }
}

fn shared(processors: Option<u32>) -> Workers {
    let count = count_or_one(processors);
    let reason = format!("four workers for each of {}, 64 at most; half as many schedulers", named(processors));
    Workers { workers: count.saturating_mul(4).min(64), schedulers: count.saturating_mul(2).min(32), reason }
}

fn by_memory(bytes: Option<u64>) -> Workers {
    let fits = |gb: u64| bytes.is_some_and(|bytes| bytes >= gb * GB / 100 * REPORTED);
    let row = BY_MEMORY.into_iter().find(|&(gb, ..)| fits(gb));
    let (workers, schedulers) = row.map_or(LEAST, |(_, workers, schedulers)| (workers, schedulers));
    let reason = match (bytes, row) {
        (None, _) => "its memory is not known, so the fewest".to_owned(),
        (Some(bytes), Some((gb, ..))) => format!("its memory of {bytes} bytes is that of a device of {gb} GB or more"),
        (Some(bytes), None) => format!("its memory of {bytes} bytes is less than that of a device of 8 GB"),
    };
    Workers { workers, schedulers, reason }
}

/// One processor is there in any case.
fn count_or_one(processors: Option<u32>) -> u32 {
    processors.unwrap_or(1).max(1)
}

fn named(processors: Option<u32>) -> String {
    match processors {
        None => "the processors, whose number is not known: one".into(),
        Some(1) => "the 1 processor that may be used".into(),
        Some(count) => format!("the {count} processors that may be used"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use yirage_plan::KernelCapabilities;

    const GIB: u64 = 1 << 30;

    fn machine(backend: &str, processors: Option<u32>, memory_bytes: Option<u64>) -> Hardware {
        let capabilities = KernelCapabilities::LEAST;
        Hardware { backend: backend.into(), device: 0, name: "M".into(), processors, memory_bytes, capabilities }
    }

    #[test]
    fn the_worker_rule_by_machine() {
        let table = [
            ("cpu", Some(1), None, (1, 1)),
            ("cpu", Some(2), None, (2, 1)),
            ("cpu", Some(3), None, (3, 1)),
            ("cpu", Some(8), None, (8, 4)),
            ("cpu", Some(16), None, (16, 8)),
            ("cpu", Some(17), None, (16, 8)),
            ("cpu", Some(192), Some(1 << 40), (16, 8)),
            ("cpu", Some(0), None, (1, 1)),
            ("cpu", None, None, (1, 1)),
            ("mps", Some(1), None, (4, 2)),
            ("mps", Some(8), Some(8 * GIB), (32, 16)),
            ("mps", Some(10), None, (40, 20)),
            ("mps", Some(16), None, (64, 32)),
            ("mps", Some(24), None, (64, 32)),
            ("mps", Some(u32::MAX), None, (64, 32)),
            ("mps", None, None, (4, 2)),
            ("cuda", Some(128), Some(80 * GIB), (96, 48)),
            ("cuda", None, Some(24 * GIB), (96, 48)),
            // An RTX 4090 and an L4, both sold with 24 GB.
            ("cuda", None, Some(24_217 << 20), (96, 48)),
            ("cuda", None, Some(22_700 << 20), (96, 48)),
            ("cuda", None, Some(20 * GIB), (64, 32)),
            // A T4, sold with 16 GB.
            ("cuda", None, Some(14_918 << 20), (64, 32)),
            ("cuda", None, Some(12 * GIB), (32, 16)),
            ("cuda", None, Some(8 * GIB - (200 << 20)), (32, 16)),
            ("cuda", None, Some(6 * GIB), (16, 8)),
            ("cuda", None, Some(0), (16, 8)),
            ("cuda", None, None, (16, 8)),
            ("hip", None, Some(64 * GIB), (96, 48)),
            ("ascend", None, Some(32 * GIB), (96, 48)),
        ];
        for (backend, processors, memory, wanted) in table {
            let got = workers(&machine(backend, processors, memory));
            assert_eq!((got.workers, got.schedulers), wanted, "{backend} {processors:?} {memory:?}");
            assert!(!got.reason.is_empty());
        }
    }

    #[test]
    fn mirages_numbers_by_multiprocessors() {
        // An H200, an A100, an A10, small ones, and what no GPU has.
        let table = [(160, 144, 64), (148, 128, 80), (132, 128, 16), (108, 96, 48), (72, 64, 32), (40, 30, 40)];
        let small =
            [(39, 20, 76), (24, 20, 16), (20, 19, 4), (2, 1, 4), (1, 1, 4), (0, 1, 4), (u32::MAX, 144, u32::MAX)];
        for (count, workers, schedulers) in table.into_iter().chain(small) {
            let got = workers_of_multiprocessors(count);
            assert_eq!((got.workers, got.schedulers), (workers, schedulers), "{count}");
        }
    }

    #[test]
    fn reasons_name_what_the_numbers_follow_from() {
        let why = |backend, processors, memory| workers(&machine(backend, processors, memory)).reason;
        assert!(why("cpu", Some(6), None).contains("the 6 processors"));
        assert!(why("cpu", None, None).contains("not known"));
        assert!(why("cuda", None, Some(24 * GIB)).contains("25769803776 bytes"));
        assert!(why("cuda", None, None).contains("not known"));
    }
}
