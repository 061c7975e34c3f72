//! What is known of a device without opening it.

use yirage_plan::KernelCapabilities;

/// A device that is there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceInfo {
    /// The backend it belongs to.
    pub backend: &'static str,
    /// Its number there.
    pub ordinal: u32,
    /// What the maker calls it.
    pub name: String,
    /// Architecture and instruction set: what kernels are compiled for.
    pub arch: String,
    /// Bytes of memory it could use now; none where that is not known.
    pub memory_bytes: Option<u64>,
    /// Bytes of memory it has.
    pub total_memory_bytes: Option<u64>,
    /// Processors, multiprocessors or whatever the maker counts.
    pub cores: Option<u32>,
    /// The driver's version, as the maker writes it.
    pub driver_version: Option<String>,
    /// The version of the libraries above the driver.
    pub sdk_version: Option<String>,
    /// What kernels can compute with there.
    pub capabilities: KernelCapabilities,
    /// Whether a processor plays the device.
    pub software: bool,
    /// Further facts, as (name, value).
    pub facts: Vec<(&'static str, String)>,
}

impl DeviceInfo {
    /// A device of which nothing else is known.
    pub fn new(backend: &'static str, ordinal: u32, name: impl Into<String>, arch: impl Into<String>) -> DeviceInfo {
        DeviceInfo {
            backend,
            ordinal,
            name: name.into(),
            arch: arch.into(),
            memory_bytes: None,
            total_memory_bytes: None,
            cores: None,
            driver_version: None,
            sdk_version: None,
            capabilities: KernelCapabilities::LEAST,
            software: false,
            facts: Vec::new(),
        }
    }
}
