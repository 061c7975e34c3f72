//! What is known of the processor as a device.

use super::capabilities::capabilities;
use crate::free_memory::{self, FreeMemory};
use crate::machine;
use crate::pool::ThreadBudgetInputs;
use yirage_cpu_kernels::isa::Isa;
use yirage_hal::DeviceInfo;

/// The processor at an instruction-set level, with the threads that are asked for, if any.
pub(super) fn info(
    isa: Isa,
    facts: &ThreadBudgetInputs,
    threads: Option<usize>,
    room: Option<FreeMemory>,
) -> DeviceInfo {
    let limit = room.as_ref().map(|room| ("memory_limit", room.limit.clone()));
    let (threads, reason) = facts.budget(threads);
    let of_threads =
        [("threads", threads.to_string()), ("threads_reason", reason), ("isa_available", available_isas().join(" "))];
    DeviceInfo {
        memory_bytes: room.map(|room| room.bytes),
        total_memory_bytes: free_memory::total(),
        cores: u32::try_from(facts.affinity).ok(),
        capabilities: capabilities(isa),
        facts: of_threads.into_iter().chain(limit).chain(machine::facts()).collect(),
        ..DeviceInfo::new(
            "cpu",
            0,
            model_name().unwrap_or_else(|| "unnamed processor".into()),
            format!("{}/{isa}", std::env::consts::ARCH),
        )
    }
}

fn available_isas() -> Vec<&'static str> {
    Isa::ALL.iter().filter(|i| i.available()).map(|i| i.name()).collect()
}

fn model_name() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|l| l.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_string())
}
