//! From hardware to settings, each with its reason.

use crate::hardware::Hardware;
use crate::notes::notes;
use crate::workers::{are_threads, workers};

/// A setting that is advised.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setting {
    /// Its name.
    pub name: &'static str,
    /// Its value.
    pub value: String,
    /// Why.
    pub reason: String,
}

/// What is advised for a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Advice {
    /// What to set.
    pub settings: Vec<Setting>,
    /// What else follows from the device, in sentences.
    pub notes: Vec<String>,
}

/// What is advised for a device.
pub fn advise(hardware: &Hardware) -> Advice {
    let workers = workers(hardware);
    let setting = |name, value: String, reason: String| Setting { name, value, reason };
    let of_device = format!("the device is {}", hardware.name);
    let mut settings = vec![
        setting("backend", hardware.backend.clone(), of_device.clone()),
        setting("device", hardware.device.to_string(), of_device),
        setting("workers", workers.workers.to_string(), workers.reason.clone()),
        setting("schedulers", workers.schedulers.to_string(), workers.reason.clone()),
    ];
    if are_threads(hardware) {
        settings.push(setting("threads", workers.workers.to_string(), "each worker is a thread".into()));
    }
    if hardware.capabilities.int8 {
        let reason = "it multiplies bytes by instructions of their own, which quantised weights gain from";
        settings.push(setting("precision", "fast".into(), reason.into()));
    }
    Advice { settings, notes: notes(&hardware.capabilities) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use yirage_plan::KernelCapabilities;

    fn named(backend: &str, capabilities: KernelCapabilities) -> Vec<(&'static str, String)> {
        let (backend, name) = (backend.to_owned(), "M".to_owned());
        let hardware = Hardware { backend, device: 1, name, processors: Some(4), memory_bytes: None, capabilities };
        let advice = advise(&hardware);
        assert!(advice.settings.iter().all(|s| !s.reason.is_empty()) && !advice.notes.is_empty());
        advice.settings.into_iter().map(|s| (s.name, s.value)).collect()
    }

    fn pairs(pairs: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
        pairs.iter().map(|&(name, value)| (name, value.to_owned())).collect()
    }

    #[test]
    fn a_processor_gets_threads_and_an_accelerator_none() {
        let least = KernelCapabilities::LEAST;
        let cpu = [("backend", "cpu"), ("device", "1"), ("workers", "4"), ("schedulers", "2"), ("threads", "4")];
        assert_eq!(named("cpu", least), pairs(&cpu));
        let cuda = [("backend", "cuda"), ("device", "1"), ("workers", "16"), ("schedulers", "8")];
        assert_eq!(named("cuda", least), pairs(&cuda));
    }

    #[test]
    fn fast_is_advised_where_bytes_are_multiplied() {
        let bytes = KernelCapabilities { int8: true, ..KernelCapabilities::LEAST };
        assert_eq!(named("cpu", bytes).last(), Some(&("precision", "fast".to_owned())));
    }
}
