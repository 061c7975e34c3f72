//! A device's ceilings, measured and shown.

use crate::console::Console;
use crate::failure::CliFailure;
use serde_json::{Value, json};
use yirage_advisor::{CeilingReadings, Measurement, measure};
use yirage_hal::{Device, Limit};

/// Readings of each ceiling.
const READINGS: usize = 9;

/// Every ceiling; those that the device does not have with the reason.
///
/// # Errors
/// [`CliFailure::Device`].
pub(super) fn measured(device: &dyn Device, console: &Console) -> Result<Vec<Measurement>, CliFailure> {
    let one = |limit: Limit| {
        console.note(&format!("measuring: {limit}"));
        Ok(measure(device, limit, READINGS)?)
    };
    Limit::ALL.into_iter().map(one).collect()
}

/// The ceilings for programs.
pub(super) fn as_json(limits: &[Measurement]) -> Value {
    limits.iter().map(of_limit).collect()
}

fn of_limit(measured: &Measurement) -> Value {
    let limit = measured.limit.to_string();
    match &measured.read {
        Err(why) => json!({"limit": limit, "why": why}),
        Ok(ceiling) => {
            let (median, lowest, highest) = billions(ceiling);
            json!({
                "limit": limit,
                "unit": measured.limit.unit(),
                "median": median,
                "lowest": lowest,
                "highest": highest,
                "readings": READINGS,
                "method": ceiling.method,
            })
        }
    }
}

/// The same for people.
///
/// # Errors
/// [`CliFailure::Closed`].
pub(super) fn show(limits: &[Measurement], console: &Console) -> Result<(), CliFailure> {
    if limits.is_empty() {
        return Ok(());
    }
    console.line(&format!("limits, medians of {READINGS} readings (lowest to highest):"))?;
    for measured in limits {
        let limit = measured.limit;
        match &measured.read {
            Err(why) => console.line(&format!("    {limit}: none: {why}"))?,
            Ok(ceiling) => {
                let (median, low, high) = billions(ceiling);
                let (unit, method) = (limit.unit(), &ceiling.method);
                console.line(&format!("    {limit}: {median:.1} {unit} ({low:.1} to {high:.1}): {method}"))?;
            }
        }
    }
    Ok(())
}

/// Median, lowest and highest, in the unit of the ceiling.
fn billions(ceiling: &CeilingReadings) -> (f64, f64, f64) {
    let readings = &ceiling.readings;
    (readings.median() / 1e9, readings.lowest() / 1e9, readings.highest() / 1e9)
}
