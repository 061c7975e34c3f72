//! A verification for people.

use super::record::{CaseGroup, ModelRecord, ModelRun, VerifyRecord};
use crate::console::Console;
use crate::failure::CliFailure;

/// Failed cases that are shown.
const SHOWN: usize = 20;

/// Prints it.
///
/// # Errors
/// [`CliFailure::Closed`].
pub(crate) fn show(record: &VerifyRecord, console: &Console) -> Result<(), CliFailure> {
    show_device(record, console)?;
    let suite = &record.suite;
    show_groups("op", &suite.ops, console)?;
    console.line("")?;
    show_groups("format", &suite.formats, console)?;
    if suite.left_out > 0 {
        let what = "cases of KV caches in blocks of lengths that this device has not";
        console.line(&format!("left out: {} {what}", suite.left_out))?;
    }
    for refused in &suite.refused {
        console.line(&format!("refused: {} cases of {}: {}", refused.cases, refused.op, refused.why))?;
    }
    for rounded in &suite.rounded {
        console.line(&format!("rounded otherwise: {}: {}", rounded.case, rounded.why))?;
    }
    for failed in suite.failed.iter().take(SHOWN) {
        console.line(&format!("wrong: {}: {}", failed.case, failed.why))?;
    }
    if suite.failed.len() > SHOWN {
        console.note(&format!("and {} more that failed; --json and -o have all", suite.failed.len() - SHOWN));
    }
    if let Some(model) = &record.model {
        show_model(model, console)?;
    }
    show_comparison(record, console)?;
    let [passed, rounded, refused, failed] =
        [suite.count(|g| g.passed), suite.count(|g| g.rounded), suite.count(|g| g.refused), suite.count(|g| g.failed)];
    console.line(&format!(
        "{}: {passed} of {} cases passed, {rounded} rounded otherwise, {refused} refused, {failed} wrong",
        record.device.backend, suite.cases
    ))
}

fn show_device(record: &VerifyRecord, console: &Console) -> Result<(), CliFailure> {
    let (device, build) = (&record.device, &record.build);
    let played = if device.software { ", played by a processor" } else { "" };
    let driver = device.driver_version.as_ref().map(|driver| format!(", driver {driver}")).unwrap_or_default();
    let (backend, ordinal, name, arch) = (&device.backend, device.ordinal, &device.name, &device.arch);
    console.line(&format!("{backend} {ordinal}: {name} ({arch}){driver}{played}"))?;
    let commit = build.commit.as_ref().map(|commit| format!(", commit {commit}")).unwrap_or_default();
    console.line(&format!("yirage {}{commit}, {} ({})", build.version, record.date, build.machine))
}

fn show_groups(what: &str, groups: &[CaseGroup], console: &Console) -> Result<(), CliFailure> {
    console.line(&format!(
        "{what:<15} {:>6} {:>7} {:>7} {:>5} {:>9} {:>9} {:>12}",
        "passed", "rounded", "refused", "wrong", "absolute", "relative", "of tolerance"
    ))?;
    for CaseGroup { name, passed, rounded, refused, failed, error } in groups {
        let of = |error: Option<f64>| error.map_or("infinite".into(), scientific);
        let [absolute, relative, share] = match error {
            Some(error) => [error.absolute, error.relative, error.of_tolerance].map(of),
            None => ["-"; 3].map(str::to_owned),
        };
        console.line(&format!(
            "{name:<15} {passed:>6} {rounded:>7} {refused:>7} {failed:>5} {absolute:>9} {relative:>9} {share:>12}"
        ))?;
    }
    Ok(())
}

fn show_model(model: &ModelRecord, console: &Console) -> Result<(), CliFailure> {
    let ModelRecord { name, against, tokens, at_once, .. } = model;
    let alone = tokens - at_once;
    console.line(&format!("model {name}: {at_once} tokens at once and {alone} alone, beside exact on {against}"))?;
    model.runs.iter().try_for_each(|run| show_run(run, console))
}

fn show_run(run: &ModelRun, console: &Console) -> Result<(), CliFailure> {
    let precision = &run.precision;
    if let Some(error) = &run.error {
        return console.line(&format!("  {precision}: wrong: not computed: {error}"));
    }
    let figure = |figure: Option<f64>| figure.map_or("infinite".into(), scientific);
    let drifts: Vec<String> = run.drift.iter().map(|&drift| figure(drift)).collect();
    console.line(&format!("  {precision}: drift behind each layer: {}", drifts.join(" ")))?;
    let (mean, most) = (figure(run.kl_mean), figure(run.kl_most));
    console.line(&format!("  {precision}: divergence in nats: mean {mean}, largest {most}"))?;
    let tokens = match &run.first_different {
        None => "every likeliest token is the reference's".to_owned(),
        Some(d) => format!(
            "{} likeliest tokens differ, first behind position {}: {} instead of {}, whose logit is {} larger",
            run.different,
            d.position,
            d.got,
            d.expected,
            scientific(d.margin)
        ),
    };
    console.line(&format!("  {precision}: {tokens}"))?;
    if run.same_when_cut == Some(false) {
        console.line(&format!("  {precision}: plans that fuse nothing over the end of a layer give other bytes"))?;
    }
    run.wrong.iter().try_for_each(|what| console.line(&format!("  {precision}: wrong: {what}")))
}

fn show_comparison(record: &VerifyRecord, console: &Console) -> Result<(), CliFailure> {
    let Some(comparison) = &record.compare else { return Ok(()) };
    comparison.notes.iter().for_each(|note| console.note(note));
    comparison.better.iter().try_for_each(|what| console.line(&format!("better: {what}")))?;
    comparison.worse.iter().try_for_each(|what| console.line(&format!("worse: {what}")))?;
    if comparison.better.is_empty() && comparison.worse.is_empty() {
        console.line("neither better nor worse than before")?;
    }
    Ok(())
}

fn scientific(number: f64) -> String {
    if number == 0.0 { "0".into() } else { format!("{number:.1e}") }
}
