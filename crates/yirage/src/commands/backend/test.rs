//! `yirage backend test`: the conformance suite on a device.

use crate::console::Console;
use crate::failure::CliFailure;
use crate::options::Layers;
use crate::settings::DeviceSettings;
use serde::Serialize;
use serde_json::json;
use yirage_conformance::{CaseOutcome, CaseReport, Suite};

/// Failed cases that are shown to people.
const SHOWN: usize = 20;

/// What became of an op's cases.
#[derive(Serialize, Debug, PartialEq, Default)]
struct OpTestCounts {
    op: String,
    passed: usize,
    /// Not taken by any kernel, which compiling says.
    refused: usize,
    failed: usize,
}

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
    let (mut counts, mut failures) = (Vec::<OpTestCounts>::new(), Vec::new());
    for report in suite.reports(&*device, &[]) {
        if add(&mut counts, &report) {
            console.note(&format!("testing: {}", op_of(&report)));
        }
        if let CaseOutcome::Failed(why) = report.outcome {
            failures.push((report.name, why));
        }
    }
    let (backend, cases) = (device.info().backend, suite.cases());
    if console.json {
        let failed = failures.iter().map(|(name, why)| json!({"case": name, "why": why})).collect::<Vec<_>>();
        console.value(&json!({"backend": backend, "cases": cases, "ops": counts, "failures": failed}))?;
    } else {
        show(&counts, &failures, console)?;
        let passed: usize = counts.iter().map(|count| count.passed).sum();
        console.line(&format!("{backend}: {passed} of {cases} cases passed"))?;
    }
    match failures.len() {
        0 => Ok(()),
        n => Err(CliFailure::Other(format!(
            "{n} of {cases} cases differ from the reference on {backend}, or did not run"
        ))),
    }
}

/// Counts a report; gives whether its op is a new one.
fn add(counts: &mut Vec<OpTestCounts>, report: &CaseReport) -> bool {
    let op = op_of(report);
    let is_new = counts.last().is_none_or(|count| count.op != op);
    if is_new {
        counts.push(OpTestCounts { op: op.to_owned(), ..OpTestCounts::default() });
    }
    if let Some(count) = counts.last_mut() {
        match report.outcome {
            CaseOutcome::Passed => count.passed += 1,
            CaseOutcome::Refused(_) | CaseOutcome::ExpectedFailure(_) => count.refused += 1,
            CaseOutcome::Failed(_) => count.failed += 1,
        }
    }
    is_new
}

/// The op of a case's full name.
fn op_of(report: &CaseReport) -> &str {
    report.name.split_once(':').map_or(report.name.as_str(), |(op, _)| op)
}

fn show(counts: &[OpTestCounts], failures: &[(String, String)], console: &Console) -> Result<(), CliFailure> {
    for OpTestCounts { op, passed, refused, failed } in counts {
        let also = |count: usize, what: &str| if count > 0 { format!(", {count} {what}") } else { String::new() };
        console.line(&format!("  {op}: {passed} passed{}{}", also(*refused, "refused"), also(*failed, "failed")))?;
    }
    for (name, why) in failures.iter().take(SHOWN) {
        console.line(&format!("  {name}: {why}"))?;
    }
    if failures.len() > SHOWN {
        console.note(&format!("and {} others that failed", failures.len() - SHOWN));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_counted_op_by_op() {
        let report = |name: &str, outcome| CaseReport { name: name.into(), outcome };
        let mut counts = Vec::new();
        assert!(add(&mut counts, &report("linear: 1x2", CaseOutcome::Passed)));
        assert!(!add(&mut counts, &report("linear: 3x4", CaseOutcome::Failed("off".into()))));
        assert!(add(&mut counts, &report("map: a", CaseOutcome::Refused("no kernel".into()))));
        let count = |op: &str, passed, refused, failed| OpTestCounts { op: op.into(), passed, refused, failed };
        assert_eq!(counts, [count("linear", 1, 0, 1), count("map", 0, 1, 0)]);
    }
}
