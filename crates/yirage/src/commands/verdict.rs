//! What `yirage doctor` says in the end: whether this machine can answer, what stands in the way, and what to type next.

use crate::console::{Console, bytes};
use crate::failure::CliFailure;
use serde::Serialize;
use yirage_hal::DeviceInfo;
use yirage_hub::{CatalogueEntry, Hub};
use yirage_registry::{BackendAvailability, BackendSurvey};

/// What follows from everything that was looked at.
#[derive(Serialize)]
pub(super) struct DoctorVerdict {
    /// Whether a model can be run here.
    ready: bool,
    /// What it would run on, and with how much memory.
    device: Option<String>,
    /// What works less well than it could, or not at all.
    problems: Vec<String>,
    /// The command to type next.
    next: String,
}

impl DoctorVerdict {
    /// Of what was found.
    pub(super) fn of(found: &[BackendSurvey], hub: &Hub) -> DoctorVerdict {
        let usable = super::devices::usable(found).next();
        DoctorVerdict {
            ready: usable.is_some(),
            device: usable.map(described),
            problems: found.iter().filter_map(problem).chain(cache_problem(hub)).collect(),
            next: next(hub),
        }
    }

    /// Shows it.
    ///
    /// # Errors
    /// [`CliFailure::Closed`].
    pub(super) fn show(&self, console: &Console) -> Result<(), CliFailure> {
        for problem in &self.problems {
            console.line(&format!("note: {problem}"))?;
        }
        match &self.device {
            Some(device) => console.line(&format!("verdict: models run here, on {device}"))?,
            None => console.line("verdict: nothing here computes: build with the feature `cpu`")?,
        }
        console.line(&format!("next: {}", self.next))
    }
}

fn described(device: &DeviceInfo) -> String {
    let memory = device.memory_bytes.map(|free| format!(", {} free", bytes(free))).unwrap_or_default();
    format!("{} {} ({}{memory})", device.backend, device.ordinal, device.name)
}

/// What is there and does not serve.
fn problem(finding: &BackendSurvey) -> Option<String> {
    match &finding.availability {
        BackendAvailability::Nothing(why) if why.present => Some(why.to_string()),
        BackendAvailability::Usable(..) | BackendAvailability::Nothing(_) => None,
    }
}

/// Why nothing could be kept.
fn cache_problem(hub: &Hub) -> Option<String> {
    if hub.env().homeless {
        return Some("HOME is not set: models cannot be fetched; set it, or HF_HUB_CACHE".to_owned());
    }
    let there = hub.env().cache.ancestors().find_map(|folder| std::fs::metadata(folder).ok());
    let read_only = there.is_some_and(|folder| folder.permissions().readonly());
    read_only.then(|| format!("{} cannot be written to: set HF_HUB_CACHE", hub.env().cache.display()))
}

fn next(hub: &Hub) -> String {
    let default = CatalogueEntry::default_model();
    match hub.list().is_ok_and(|models| !models.is_empty()) {
        true => "`yirage list` shows the models here; `yirage run MODEL` talks with one".to_owned(),
        false => format!("`yirage run` talks with {} (fetched once, {})", default.name, bytes(default.bytes)),
    }
}
