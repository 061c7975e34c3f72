//! Steps on several devices, as tables and as JSON.

use super::local::median;
use super::plans::ScaleStep;
use crate::console::{Console, bytes};
use crate::failure::CliFailure;
use serde::Serialize;
use serde_json::json;
use yirage_advisor::scale::{DeviceFigures, DividedStep, Fleet, LinkFigures, StepTime};

/// From which share of the time before on a step got no faster.
const NO_FASTER: f64 = 0.95;

/// Ranks of this machine.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct LocalRow {
    ranks: u32,
    #[serde(flatten)]
    step: ScaleStep,
    /// Seconds of a step as measured: the median of the runs.
    measured_seconds: f64,
    /// The same of each run.
    runs: Vec<f64>,
    /// Seconds that follow from the figures.
    predicted_seconds: f64,
    /// What follows by what is measured.
    ratio: f64,
    /// What takes the time.
    predicted: StepTime,
    /// What the figures were.
    pub(crate) device: DeviceFigures,
    link: Option<LinkFigures>,
}

impl LocalRow {
    /// Of these measured steps, one at least, and this time that follows from the figures.
    pub(crate) fn new(
        ranks: u32,
        step: ScaleStep,
        (runs, predicted): (&[f64], StepTime),
        device: DeviceFigures,
        link: Option<LinkFigures>,
    ) -> LocalRow {
        let (measured_seconds, predicted_seconds) = (median(runs), predicted.seconds());
        let ratio = predicted_seconds / measured_seconds;
        let runs = runs.to_vec();
        LocalRow { ranks, step, measured_seconds, runs, predicted_seconds, ratio, predicted, device, link }
    }
}

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

/// Writes what devices of a fleet would do: for each number of them the division with the fastest step, and the one with the most
/// tokens, of those for which each device has room. `steps` are all of one kind of step, by ascending numbers of devices.
///
/// # Errors
/// [`CliFailure::Closed`].
pub(crate) fn show_fleet(
    fleet: &Fleet,
    step: ScaleStep,
    steps: &[(u32, Vec<DividedStep>)],
    console: &Console,
) -> Result<(), CliFailure> {
    if !console.json {
        console.line(&format!(
            "{}: {} sequences a replica, each behind {} positions",
            fleet.name, step.sequences, step.depth
        ))?;
        console.line("| devices | wanted | tp x pp x replicas | step | work | kernels | links | stages | t/s of one | t/s of all | a device holds |")?;
        console.line("| ---: | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")?;
    }
    let mut fastest_before: Option<(u32, f64)> = None;
    let mut bend = None;
    for (devices, ways) in steps {
        let fits: Vec<&DividedStep> = ways.iter().filter(|way| fleet.has_room(way)).collect();
        let fastest = fits.iter().min_by(|a, b| a.time.seconds().total_cmp(&b.time.seconds()));
        let most = fits.iter().max_by(|a, b| a.total_rate().total_cmp(&b.total_rate()));
        let (Some(fastest), Some(most)) = (fastest, most) else {
            no_room(*devices, ways, console)?;
            continue;
        };
        let seconds = fastest.time.seconds();
        match fastest_before {
            Some((before, was)) if bend.is_none() && seconds > NO_FASTER * was => bend = Some(before),
            _ => {}
        }
        fastest_before = Some((*devices, seconds));
        for (wanted, way) in [("fast step", fastest), ("many tokens", most)] {
            show_way(*devices, (wanted, step), way, console)?;
        }
    }
    match bend {
        Some(devices) if !console.json => console.line(&format!(
            "a step gets no faster beyond {devices} devices (by less than {:.0} %): further ones are for further sequences",
            100.0 * (1.0 - NO_FASTER)
        )),
        _ => Ok(()),
    }
}

fn show_way(
    devices: u32,
    (wanted, step): (&str, ScaleStep),
    way: &DividedStep,
    console: &Console,
) -> Result<(), CliFailure> {
    if console.json {
        return console.value(&json!({
            "devices": devices, "wanted": wanted, "sequences": step.sequences, "depth": step.depth,
            "tp": way.division.tp, "pp": way.division.pp, "replicas": way.division.replicas,
            "predicted_seconds": way.time.seconds(), "predicted": way.time, "device_bytes": way.device_bytes,
            "tokens_per_second_of_one": way.rate(), "tokens_per_second": way.total_rate(),
        }));
    }
    let StepTime { work, kernels, collectives, stages, .. } = way.time;
    let division = way.division;
    console.line(&format!(
        "| {devices} | {wanted} | {} x {} x {} | {} | {} | {} | {} | {} | {:.0} | {:.0} | {} |",
        division.tp,
        division.pp,
        division.replicas,
        ms(way.time.seconds()),
        ms(work),
        ms(kernels),
        ms(collectives),
        ms(stages),
        way.rate(),
        way.total_rate(),
        bytes(way.device_bytes as u64),
    ))
}

/// That nothing fits, with what would at least have to.
fn no_room(devices: u32, ways: &[DividedStep], console: &Console) -> Result<(), CliFailure> {
    let least = ways.iter().map(|way| way.device_bytes).min_by(f64::total_cmp);
    if console.json {
        return console.value(&json!({"devices": devices, "wanted": "room", "device_bytes": least}));
    }
    let least = least.map_or("no division".into(), |least| format!("{} a device at least", bytes(least as u64)));
    console.line(&format!("| {devices} | no room: {least} | - | - | - | - | - | - | - | - | - |"))
}

fn ms(seconds: f64) -> String {
    format!("{:.3} ms", seconds * 1e3)
}
