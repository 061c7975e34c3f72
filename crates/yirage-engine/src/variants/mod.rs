//! The way in which the device's kernels compute products: forced, kept from an earlier start, or measured now with the
//! model's weights. Nothing here can fail a load but a way that is asked for and does not exist.

mod pick;
mod record;
#[cfg(test)]
mod tests;

pub use pick::Answered;

use crate::limits::{TUNING_BYTES, TUNING_TIME};
use crate::options::Tuning;
use crate::packed::Notice;
use pick::pick;
use record::{Key, Records};
use std::fmt;
use std::time::Instant;
use yirage_hal::{Device, HalError, WeightHandle};
use yirage_plan::{Precision, WeightPlan};

/// How the way came to be the one it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VariantOrigin {
    /// It is the device's own for this processor: nothing was measured.
    Device,
    /// It was asked for.
    Forced,
    /// It was measured at an earlier start.
    Kept,
    /// It was measured at this start.
    Measured,
}

/// The way in which the kernels of a model's programs compute products.
#[derive(Clone, PartialEq, Debug)]
pub struct ChosenVariant {
    /// Every choice, as text.
    pub text: String,
    /// How it came to be this one.
    pub origin: VariantOrigin,
    /// What was measured for it; empty where nothing was at this start.
    pub answers: Vec<Answered>,
}

impl fmt::Display for ChosenVariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.text, self.origin)
    }
}

impl fmt::Display for VariantOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            VariantOrigin::Device => "the device's own for this processor",
            VariantOrigin::Forced => "it was asked for",
            VariantOrigin::Kept => "measured at an earlier start",
            VariantOrigin::Measured => "measured at this start",
        })
    }
}

/// What a choice is made for.
pub(crate) struct Wanted<'a> {
    pub(crate) device: &'a dyn Device,
    pub(crate) plan: &'a WeightPlan,
    pub(crate) precision: Precision,
    /// Weights of the plan, on the device.
    pub(crate) weights: &'a [WeightHandle],
    /// Bytes of all weights.
    pub(crate) bytes: u64,
}

/// Selects the way of programs that are loaded from now on, and gives it; none on a device that has one way. What its owner
/// should know goes to `notices`.
///
/// # Errors
/// [`HalError::Option`] and [`HalError::Unsupported`] for a way that is asked for.
pub(crate) fn choose(
    wanted: &Wanted<'_>,
    tuning: &Tuning,
    notices: &mut Vec<Notice>,
) -> Result<Option<ChosenVariant>, HalError> {
    let Some(variants) = wanted.device.variants() else {
        return match tuning {
            Tuning::Forced(text) => Err(HalError::Unsupported {
                what: format!("the variant {text}"),
                why: format!("kernels of the device {} compute in one way", wanted.device.info().backend),
            }),
            Tuning::Unmeasured | Tuning::Measured { .. } => Ok(None),
        };
    };
    let chosen = |origin, answers| ChosenVariant { text: variants.selected(), origin, answers };
    let (folder, anew) = match tuning {
        Tuning::Unmeasured => return Ok(Some(chosen(VariantOrigin::Device, Vec::new()))),
        Tuning::Forced(text) => {
            variants.select(text)?;
            return Ok(Some(chosen(VariantOrigin::Forced, Vec::new())));
        }
        Tuning::Measured { folder, anew } => (folder, *anew),
    };
    // What caches hold tells nothing of memory, and is over before a difference matters.
    if wanted.bytes < TUNING_BYTES || variants.questions().is_empty() {
        return Ok(Some(chosen(VariantOrigin::Device, Vec::new())));
    }
    let key = Key::of(&variants.facts(), wanted.plan, wanted.precision);
    let records = folder.as_ref().map(|folder| Records::new(folder));
    if let (Some(records), false) = (&records, anew) {
        match records.read(&key, variants) {
            Ok(true) => return Ok(Some(chosen(VariantOrigin::Kept, Vec::new()))),
            Ok(false) => {}
            Err(why) => {
                notices.push(Notice::Variant(format!("the kept measurement was refused and is made again: {why}")))
            }
        }
    }
    let began = Instant::now();
    match pick(variants, wanted.weights, wanted.precision, TUNING_TIME, &|| began.elapsed()) {
        Err(why) => {
            notices.push(Notice::Variant(format!("not measured: {why}")));
            Ok(Some(chosen(VariantOrigin::Device, Vec::new())))
        }
        Ok(picked) => {
            let text = variants.selected();
            let seconds = began.elapsed().as_secs_f64();
            notices.push(Notice::Variant(format!("measured for this model in {seconds:.1} s: {text}")));
            if picked.unanswered > 0 {
                let (left, most) = (picked.unanswered, TUNING_TIME.as_secs_f64());
                notices.push(Notice::Variant(format!(
                    "{left} questions were not measured within {most:.1} s and stay the device's own: others use the \
                     processor; `yirage doctor --tune` measures anew"
                )));
            }
            if let Some(Err(why)) = records.map(|records| records.write(&key, &text, &picked.answers)) {
                notices.push(Notice::Variant(format!("the measurement is not kept: {why}")));
            }
            Ok(Some(chosen(VariantOrigin::Measured, picked.answers)))
        }
    }
}
