//! `yirage backend info`: one device, and what it can do at most.

use crate::commands::{devices, limits};
use crate::console::Console;
use crate::failure::CliFailure;
use crate::options::Layers;
use crate::settings::DeviceSettings;
use serde_json::{Value, json};
use yirage_advisor::{Latency, Measurement, latency};

/// Steps from which the latency is taken.
const STEPS: usize = 201;

/// Runs the command. Without `--measure` the device is not opened.
///
/// # Errors
/// Whatever is wrong with options or device.
pub(crate) fn run(layers: &Layers, console: &Console) -> Result<(), CliFailure> {
    let settings = DeviceSettings::resolve(layers)?;
    let info = settings.info(layers)?;
    let measured = if layers.switch("measure")? { Some(measured(&settings, layers, console)?) } else { None };
    if console.json {
        let mut value = json!({"backend": info.backend, "device": devices::device(&info)});
        if let Some((ceilings, latency)) = &measured {
            value["limits"] = limits::as_json(ceilings);
            value["latency"] = of_latency(latency);
        }
        return console.value(&value);
    }
    devices::show_device(&info, console)?;
    measured.map_or(Ok(()), |(ceilings, latency)| {
        limits::show(&ceilings, console)?;
        show_latency(&latency, console)
    })
}

fn measured(
    settings: &DeviceSettings,
    layers: &Layers,
    console: &Console,
) -> Result<(Vec<Measurement>, Latency), CliFailure> {
    let (device, notes) = settings.open(layers)?;
    notes.iter().for_each(|note| console.note(note));
    let ceilings = limits::measured(&*device, console)?;
    console.note("measuring: latency");
    Ok((ceilings, latency(&*device, STEPS)?))
}

fn of_latency(latency: &Latency) -> Value {
    let timing = &latency.timing;
    json!({
        "unit": "s",
        "median": timing.median(),
        "lowest": timing.lowest(),
        "highest": timing.highest(),
        "readings": timing.steps(),
        "method": latency.method,
    })
}

fn show_latency(latency: &Latency, console: &Console) -> Result<(), CliFailure> {
    let timing = &latency.timing;
    let [median, low, high] = [timing.median(), timing.lowest(), timing.highest()].map(|seconds| seconds * 1e6);
    console.line(&format!("latency: {median:.1} µs ({low:.1} to {high:.1}): {}", latency.method))
}
