//! The ceilings that a model's steps meet, and the least time that they take under them.

use crate::failure::CliFailure;
use yirage_engine::Engine;
use yirage_hal::{Ceilings, Device, Limit, Roofline};
use yirage_plan::Precision;
use yirage_plan::work::{SequenceSpan, Work};

/// The ceilings that a model's steps meet on this device.
///
/// # Errors
/// As [`Roofline::new`].
pub(crate) fn of_model(device: &dyn Device, engine: &Engine, precision: Precision) -> Result<Roofline, CliFailure> {
    let work = engine.work(&[SequenceSpan { start: 0, tokens: 1, rows: 1 }]);
    let mut limits = vec![Limit::MemoryRead, Limit::F32];
    limits.extend(work.matmul_ops.iter().map(|(format, _)| device.matmul_limit(precision, *format)));
    Ok(Roofline::new(device, limits)?)
}

/// The least times of some steps: what memory, arithmetic, and the slower of the two in each step would take.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct RooflineTimes {
    /// Seconds of reading.
    pub(crate) memory: f64,
    /// Seconds of arithmetic.
    pub(crate) arithmetic: f64,
    /// Seconds with both at once.
    pub(crate) both: f64,
}

impl RooflineTimes {
    /// The least times of `steps`; none where the device does not measure itself.
    pub(crate) fn of(
        steps: &[Work],
        ceilings: &Ceilings,
        device: &dyn Device,
        precision: Precision,
    ) -> Option<RooflineTimes> {
        let limit_of = |format| device.matmul_limit(precision, format);
        let mut least = RooflineTimes::default();
        for work in steps {
            let memory = ceilings.memory_seconds(work.bytes())?;
            let arithmetic = ceilings.arithmetic_seconds(work, &limit_of)?;
            least.memory += memory;
            least.arithmetic += arithmetic;
            least.both += memory.max(arithmetic);
        }
        Some(least)
    }

    /// What of the time is most of it: `memory` or `arithmetic`.
    pub(crate) fn bound(&self) -> &'static str {
        if self.memory >= self.arithmetic { "memory" } else { "arithmetic" }
    }
}
