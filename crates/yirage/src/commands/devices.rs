//! `yirage devices`: what is here, and why the rest is not.

use crate::backends::BACKENDS;
use crate::console::{Console, bytes};
use crate::failure::Failure;
use serde_json::{Map, Value, json};
use yirage_hal::DeviceInfo;

/// Runs the command. Backends are asked; no device is opened.
///
/// # Errors
/// [`Failure::Closed`].
pub(crate) fn run(console: &Console) -> Result<(), Failure> {
    let probed: Vec<_> = BACKENDS.iter().map(|b| b.probe()).collect();
    let devices: Vec<&DeviceInfo> = probed.iter().flatten().flatten().collect();
    let unavailable: Vec<_> = probed.iter().filter_map(|p| p.as_ref().err()).collect();
    if console.json {
        let unavailable: Vec<Value> = unavailable.iter().map(|u| json!({"backend": u.backend, "why": u.why})).collect();
        let devices: Vec<Value> = devices.into_iter().map(as_json).collect();
        return console.value(&json!({"devices": devices, "unavailable": unavailable}));
    }
    for d in devices {
        console.line(&format!("{} {}: {} ({})", d.backend, d.ordinal, d.name, d.arch))?;
        if d.memory_bytes > 0 {
            console.line(&format!("    memory: {}", bytes(d.memory_bytes)))?;
        }
        for (name, value) in &d.facts {
            console.line(&format!("    {name}: {value}"))?;
        }
    }
    for u in unavailable {
        console.line(&format!("{}: unavailable: {}", u.backend, u.why))?;
    }
    Ok(())
}

fn as_json(d: &DeviceInfo) -> Value {
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
