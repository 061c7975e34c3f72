//! `yirage devices`: what is here, and why the rest is not.

use crate::console::{Console, bytes};
use crate::failure::CliFailure;
use serde_json::{Map, Value, json};
use yirage_hal::{DeviceInfo, Unavailable};
use yirage_plan::KernelCapabilities;
use yirage_registry::{BackendAvailability, BackendSurvey, ProbeEnvironment, Registry};

/// Runs the command. Backends and makers' libraries are asked; no device is opened.
///
/// # Errors
/// [`CliFailure::Closed`].
pub(crate) fn run(console: &Console) -> Result<(), CliFailure> {
    let found = survey();
    if console.json { console.value(&as_json(&found)) } else { show(&found, console) }
}

/// What is behind every name here, in the order of choice.
pub(super) fn survey() -> Vec<BackendSurvey> {
    Registry::new(ProbeEnvironment::of_this_process()).survey()
}

/// The devices that can be opened.
pub(super) fn usable(found: &[BackendSurvey]) -> impl Iterator<Item = &DeviceInfo> {
    found.iter().flat_map(|finding| match &finding.availability {
        BackendAvailability::Usable(_, devices) => devices.as_slice(),
        BackendAvailability::Nothing(_) => &[],
    })
}

/// The names that cannot be opened, each with the reason.
fn others(found: &[BackendSurvey]) -> impl Iterator<Item = (&BackendSurvey, &Unavailable)> {
    found.iter().filter_map(|finding| match &finding.availability {
        BackendAvailability::Usable(..) => None,
        BackendAvailability::Nothing(why) => Some((finding, why)),
    })
}

/// Devices, and the backends without one with their reasons.
pub(super) fn as_json(found: &[BackendSurvey]) -> Value {
    let devices: Vec<Value> = usable(found).map(device).collect();
    let unavailable = others(found).map(|(finding, why)| {
        json!({
            "backend": finding.name,
            "aliases": finding.aliases,
            "why": why.why,
            "remedy": why.remedy,
            "present": why.present,
            // No device is there without a backend; programs that ask for such devices find none.
            "devices": [],
        })
    });
    json!({"devices": devices, "unavailable": unavailable.collect::<Vec<_>>()})
}

/// The same for people.
///
/// # Errors
/// [`CliFailure::Closed`].
pub(super) fn show(found: &[BackendSurvey], console: &Console) -> Result<(), CliFailure> {
    for d in usable(found) {
        show_device(d, console)?;
    }
    let mut absent = Vec::new();
    for (finding, why) in others(found) {
        if !why.present && !console.is_verbose() {
            absent.push(finding.name);
            continue;
        }
        let also =
            if finding.aliases.is_empty() { String::new() } else { format!(" ({})", finding.aliases.join(", ")) };
        console.line(&format!("{}{also}: unavailable: {}; {}", finding.name, why.why, why.remedy))?;
    }
    if !absent.is_empty() {
        console.line(&format!("not here: {} (-v says what was looked for)", absent.join(", ")))?;
    }
    Ok(())
}

/// One device with what is known of it.
///
/// # Errors
/// [`CliFailure::Closed`].
pub(super) fn show_device(d: &DeviceInfo, console: &Console) -> Result<(), CliFailure> {
    console.line(&format!("{} {}: {} ({})", d.backend, d.ordinal, d.name, d.arch))?;
    describe(d, console)
}

fn describe(d: &DeviceInfo, console: &Console) -> Result<(), CliFailure> {
    let versions = [("driver", &d.driver_version), ("libraries", &d.sdk_version)];
    let versions = versions.into_iter().filter_map(|(name, version)| Some((name, version.clone()?)));
    let known = memory(d).map(|memory| ("memory", memory)).into_iter();
    let known = known.chain(d.cores.map(|cores| ("processors", cores.to_string()))).chain(versions);
    let computes = [("computes with", capabilities(&d.capabilities))];
    for (name, value) in known.chain(computes).chain(d.facts.iter().cloned()) {
        console.line(&format!("    {name}: {value}"))?;
    }
    Ok(())
}

/// What could be used now, and all there is, as far as they are known.
fn memory(d: &DeviceInfo) -> Option<String> {
    match (d.memory_bytes, d.total_memory_bytes) {
        (None, all) => all.map(|all| format!("{}, free: not known", bytes(all))),
        (Some(now), Some(all)) => Some(format!("{} free of {}", bytes(now), bytes(all))),
        (Some(now), None) => Some(format!("{} free", bytes(now))),
    }
}

/// The names of what is there.
fn capabilities(capabilities: &KernelCapabilities) -> String {
    let there = capabilities.flags().into_iter().filter(|(_, there)| *there).map(|(name, _)| name);
    there.collect::<Vec<_>>().join(" ")
}

/// The same for programs.
pub(super) fn device(d: &DeviceInfo) -> Value {
    let facts: Map<String, Value> = d.facts.iter().map(|(k, v)| (k.to_string(), v.as_str().into())).collect();
    let capabilities: Map<String, Value> =
        d.capabilities.flags().into_iter().map(|(name, there)| (name.to_owned(), there.into())).collect();
    json!({
        "backend": d.backend,
        "ordinal": d.ordinal,
        "name": d.name,
        "arch": d.arch,
        "memory_bytes": d.memory_bytes,
        "total_memory_bytes": d.total_memory_bytes,
        "cores": d.cores,
        "driver_version": d.driver_version,
        "sdk_version": d.sdk_version,
        "software": d.software,
        "capabilities": capabilities,
        "facts": facts,
    })
}
