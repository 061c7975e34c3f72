//! Steps on several devices, as tables and as JSON.

use super::plans::ScaleStep;
use super::row::LocalRow;
use crate::console::{Console, bytes};
use crate::failure::CliFailure;
use serde_json::json;
use yirage_advisor::scale::{DividedStep, Division, Fleet, StepTime};

/// From which share of the time before on a step got no faster.
const NO_FASTER: f64 = 0.95;

/// Writes one row of ranks here, behind the head of the table where it is the first.
///
/// # Errors
/// [`CliFailure::Closed`].
pub(crate) fn show_local(row: &LocalRow, first: bool, console: &Console) -> Result<(), CliFailure> {
    if console.json {
        return console.value(row);
    }
    if first {
        console.line("| ranks | sequences | depth | measured | predicted | ratio | work | kernels | links | step | a rank reads | a link |")?;
        console.line("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |")?;
    }
    let StepTime { step, work, kernels, collectives, .. } = row.predicted;
    let link = row
        .link
        .map_or("-".into(), |link| format!("{:.1} us, {:.2} GB/s", link.seconds * 1e6, link.bytes_per_second / 1e9));
    console.line(&format!(
        "| {} | {} | {} | {} | {} | {:.2} | {} | {} | {} | {} | {:.2} GB/s | {link} |",
        row.ranks,
        row.step.sequences,
        row.step.depth,
        ms(row.measured_seconds),
        ms(row.predicted_seconds),
        row.ratio,
        ms(work),
        ms(kernels),
        ms(collectives),
        ms(step),
        row.device.bytes_per_second / 1e9,
    ))
}

/// Writes what devices of a fleet would do: for each number of them the division with the fastest step of those for which each
/// device has room. `ways` are all of one kind of step, by ascending numbers of devices.
///
/// # Errors
/// [`CliFailure::Closed`].
pub(crate) fn show_fleet(
    fleet: &Fleet,
    step: ScaleStep,
    ways: &[(u32, Vec<DividedStep>)],
    console: &Console,
) -> Result<(), CliFailure> {
    if !console.json {
        console.line(&format!("{}: {} sequences, each behind {} positions", fleet.name, step.sequences, step.depth))?;
        console.line(
            "| devices | at work | tp x pp x replicas | sequences each | step | work | kernels | links | stages | t/s of one | \
             t/s of all | a device holds |",
        )?;
        console.line("| ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")?;
    }
    let mut before: Option<(u32, f64)> = None;
    let mut bend = None;
    for (devices, ways) in ways {
        let fits = ways.iter().filter(|way| fleet.has_room(way));
        let Some(fastest) = fits.min_by(|a, b| a.time.seconds().total_cmp(&b.time.seconds())) else {
            no_room(*devices, ways, console)?;
            continue;
        };
        let seconds = fastest.time.seconds();
        if let (Some((fewer, was)), None) = (before, bend) {
            bend = (seconds > NO_FASTER * was).then_some(fewer);
        }
        before = Some((*devices, seconds));
        show_way(*devices, step, fastest, console)?;
    }
    match bend {
        Some(devices) if !console.json => console.line(&format!(
            "beyond {devices} devices a step gets faster by less than {:.0} %",
            100.0 * (1.0 - NO_FASTER)
        )),
        _ => Ok(()),
    }
}

fn show_way(devices: u32, step: ScaleStep, way: &DividedStep, console: &Console) -> Result<(), CliFailure> {
    let seconds = way.time.seconds();
    let (one, all) = (seconds.recip(), f64::from(step.sequences) / seconds);
    if console.json {
        return console.value(&json!({
            "devices": devices, "sequences": step.sequences, "depth": step.depth, "division": way.division,
            "devices_at_work": way.division.devices(), "predicted_seconds": seconds, "predicted": way.time,
            "device_bytes": way.device_bytes, "tokens_per_second_of_one": one, "tokens_per_second": all,
        }));
    }
    let StepTime { work, kernels, collectives, stages, .. } = way.time;
    let Division { tp, pp, replicas, sequences } = way.division;
    console.line(&format!(
        "| {devices} | {} | {tp} x {pp} x {replicas} | {sequences} | {} | {} | {} | {} | {} | {one:.0} | {all:.0} | {} |",
        way.division.devices(),
        ms(seconds),
        ms(work),
        ms(kernels),
        ms(collectives),
        ms(stages),
        bytes(way.device_bytes as u64),
    ))
}

/// That nothing fits, with what would at least have to.
fn no_room(devices: u32, ways: &[DividedStep], console: &Console) -> Result<(), CliFailure> {
    let least = ways.iter().map(|way| way.device_bytes).min_by(f64::total_cmp);
    if console.json {
        return console.value(&json!({"devices": devices, "division": null, "device_bytes": least}));
    }
    let least = least.map_or("no division".into(), |least| format!("{} a device at least", bytes(least as u64)));
    console.line(&format!("| {devices} | no room: {least} | - | - | - | - | - | - | - | - | - | - |"))
}

fn ms(seconds: f64) -> String {
    format!("{:.3} ms", seconds * 1e3)
}
