//! What advice depends on, as a value: tests have machines of their own.

use yirage_hal::DeviceInfo;
use yirage_plan::KernelCapabilities;

/// The fact of a CPU device that says how many threads it would take.
const THREADS: &str = "threads";

/// A device as far as advice depends on it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hardware {
    /// The backend.
    pub backend: String,
    /// The device's number there.
    pub device: u32,
    /// What the maker calls it.
    pub name: String,
    /// Processors that it may use; of a CPU those that affinity, control groups and the environment leave.
    pub processors: Option<u32>,
    /// Bytes of memory it has.
    pub memory_bytes: Option<u64>,
    /// What its kernels can compute with.
    pub capabilities: KernelCapabilities,
}

impl From<&DeviceInfo> for Hardware {
    fn from(info: &DeviceInfo) -> Hardware {
        let threads = info.facts.iter().find(|(name, _)| *name == THREADS).and_then(|(_, count)| count.parse().ok());
        Hardware {
            backend: info.backend.to_owned(),
            device: info.ordinal,
            name: info.name.clone(),
            // A limit of control groups is in the number of threads and not in that of cores.
            processors: threads.or(info.cores),
            memory_bytes: info.total_memory_bytes,
            capabilities: info.capabilities,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_on_threads_counts_more_than_the_cores() {
        let info = DeviceInfo { cores: Some(64), ..DeviceInfo::new("cpu", 0, "Many", "x86_64") };
        assert_eq!(Hardware::from(&info).processors, Some(64));
        let limited = DeviceInfo { facts: vec![("threads", "2".into())], ..info };
        assert_eq!(Hardware::from(&limited).processors, Some(2));
    }
}
