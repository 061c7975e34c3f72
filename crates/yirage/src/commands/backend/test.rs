//! `yirage backend test`: the conformance suite on a device, without figures.

use crate::console::Console;
use crate::failure::CliFailure;
use crate::options::Layers;
use crate::settings::DeviceSettings;
use crate::verify::{CaseGroup, SuiteRecord, suite_record};
use serde_json::json;
use yirage_conformance::Suite;

/// Failed cases that are shown to people.
const SHOWN: usize = 20;

/// Runs the command.
///
/// # Errors
/// [`CliFailure::Other`] when a case failed, and whatever is wrong with options or device.
pub(crate) fn run(layers: &Layers, console: &Console) -> Result<(), CliFailure> {
    let quick = layers.switch("quick")?;
    let (device, notes) = DeviceSettings::resolve(layers)?.open(layers)?;
    notes.iter().for_each(|note| console.note(note));
    console.note("computing what the reference gives");
    let suite = if quick { Suite::quick() } else { Suite::new() };
    let record = suite_record(&suite, &*device, console);
    let backend = device.info().backend;
    if console.json {
        let op = |g: &CaseGroup| json!({"op": g.name, "passed": g.passed, "rounded": g.rounded, "refused": g.refused, "failed": g.failed});
        let ops: Vec<_> = record.ops.iter().map(op).collect();
        console.value(&json!({"backend": backend, "cases": record.cases, "ops": ops, "failures": record.failed}))?;
    } else {
        show(&record, console)?;
        console.line(&format!("{backend}: {} of {} cases passed", record.count(|g| g.passed), record.cases))?;
    }
    match (record.failed.len(), record.cases) {
        (0, _) => Ok(()),
        (n, cases) => Err(CliFailure::Other(format!(
            "{n} of {cases} cases differ from the reference on {backend}, or did not run"
        ))),
    }
}

fn show(record: &SuiteRecord, console: &Console) -> Result<(), CliFailure> {
    for CaseGroup { name, passed, rounded, refused, failed, .. } in &record.ops {
        let also = |count: usize, what: &str| if count > 0 { format!(", {count} {what}") } else { String::new() };
        let others = [(rounded, "rounded otherwise"), (refused, "refused"), (failed, "failed")];
        let others: String = others.map(|(&count, what)| also(count, what)).concat();
        console.line(&format!("  {name}: {passed} passed{others}"))?;
    }
    for failed in record.failed.iter().take(SHOWN) {
        console.line(&format!("  {}: {}", failed.case, failed.why))?;
    }
    if record.failed.len() > SHOWN {
        console.note(&format!("and {} more that failed", record.failed.len() - SHOWN));
    }
    Ok(())
}
