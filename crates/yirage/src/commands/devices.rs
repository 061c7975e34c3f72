//! `yirage devices`: what is here, and why the rest is not.

use crate::backends::BACKENDS;
use crate::console::{Console, bytes};
use crate::failure::Failure;
use serde_json::{Map, Value, json};
use yirage_hal::{DeviceInfo, Unavailable};

/// Runs the command. Backends are asked; no device is opened.
///
/// # Errors
/// [`Failure::Closed`].
pub(crate) fn run(console: &Console) -> Result<(), Failure> {
    let probed: Vec<_> = BACKENDS.iter().map(|b| b.probe()).collect();
    if console.json { console.value(&as_json(&probed)) } else { show(&probed, console) }
}

/// What a backend said when it was asked for its devices.
type Probed = Result<Vec<DeviceInfo>, Unavailable>;

/// Devices, and the backends without one with their reasons.
pub(super) fn as_json(probed: &[Probed]) -> Value {
    let devices: Vec<Value> = probed.iter().flatten().flatten().map(device).collect();
    let unavailable: Vec<Value> =
        probed.iter().filter_map(|p| p.as_ref().err()).map(|u| json!({"backend": u.backend, "why": u.why})).collect();
    json!({"devices": devices, "unavailable": unavailable})
}

/// The same for people.
///
/// # Errors
/// [`Failure::Closed`].
pub(super) fn show(probed: &[Probed], console: &Console) -> Result<(), Failure> {
    for d in probed.iter().flatten().flatten() {
        console.line(&format!("{} {}: {} ({})", d.backend, d.ordinal, d.name, d.arch))?;
        if d.memory_bytes > 0 {
            console.line(&format!("    memory: {}", bytes(d.memory_bytes)))?;
        }
        for (name, value) in &d.facts {
            console.line(&format!("    {name}: {value}"))?;
        }
    }
    for u in probed.iter().filter_map(|p| p.as_ref().err()) {
        console.line(&format!("{}: unavailable: {}", u.backend, u.why))?;
    }
    Ok(())
}

fn device(d: &DeviceInfo) -> Value {
    let facts: Map<String, Value> = d.facts.iter().map(|(k, v)| (k.to_string(), v.as_str().into())).collect();
    json!({
        "backend": d.backend,
        "ordinal": d.ordinal,
        "name": d.name,
        "arch": d.arch,
        "memory_bytes": d.memory_bytes,
        "facts": facts,
    })
}
