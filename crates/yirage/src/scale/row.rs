//! What ranks of this machine took for a step, beside what follows from their figures.

use super::plans::ScaleStep;
use serde::Serialize;
use yirage_advisor::scale::{DeviceFigures, LinkFigures, StepTime};

/// Ranks of this machine.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct LocalRow {
    pub(super) ranks: u32,
    #[serde(flatten)]
    pub(super) step: ScaleStep,
    /// Seconds of a step as measured: the median of the runs.
    pub(super) measured_seconds: f64,
    /// The same of each run.
    pub(super) runs: Vec<f64>,
    /// Seconds that follow from the figures.
    pub(super) predicted_seconds: f64,
    /// What follows by what is measured.
    pub(super) ratio: f64,
    /// What takes the time.
    pub(super) predicted: StepTime,
    /// What the figures were.
    pub(super) device: DeviceFigures,
    pub(super) link: Option<LinkFigures>,
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

/// The one in the middle; the upper of two. There is one at least.
pub(super) fn median(seconds: &[f64]) -> f64 {
    let mut sorted = seconds.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}
