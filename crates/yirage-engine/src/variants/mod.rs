//! The way in which the device's kernels compute products: forced, kept from an earlier start, or measured now with the
//! model's weights. Nothing here can fail a load but a way that is asked for and does not exist.

mod pick;
mod record;
#[cfg(test)]
mod tests;

pub use pick::VariantTiming;

use crate::limits::{FULL_TUNING_ROUNDS, TUNING_BYTES, TUNING_ROUNDS, TUNING_TIME};
use crate::load::StageLoadPlan;
use crate::options::Tuning;
use crate::packed::Notice;
use pick::{Effort, TunedVariant, VariantTuningJob, pick};
use record::{Records, VariantRecordKey};
use std::fmt;
use std::time::{Duration, Instant};
use yirage_hal::{Bindings, Device, HalError, KernelVariants, Length, WeightHandle, no_variants};
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
    /// What a first start measures for it; empty where nothing was at this start.
    pub answers: Vec<VariantTiming>,
    /// What was then measured with every weight, if that was asked for.
    pub full: Vec<VariantTiming>,
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

/// The products of a model.
pub(crate) struct ModelMatmuls<'a> {
    /// Their weights.
    pub(crate) plan: &'a WeightPlan,
    /// How they are computed.
    pub(crate) precision: Precision,
    /// Bytes of all weights on the device.
    pub(crate) bytes: u64,
}

impl<'a> ModelMatmuls<'a> {
    /// Those of a stage of a prepared model.
    pub(crate) fn of(prepared: &'a StageLoadPlan, precision: Precision) -> ModelMatmuls<'a> {
        ModelMatmuls { plan: &prepared.weights, precision, bytes: prepared.bytes.weights }
    }
}

/// What a choice is made for.
struct VariantContext<'a> {
    device: &'a dyn Device,
    matmuls: ModelMatmuls<'a>,
    /// Their weights, on the device.
    weights: &'a [WeightHandle],
}

/// Chooses the way of a model's programs, and binds it. What its owner should know goes to `notices`.
///
/// # Errors
/// [`HalError::Option`] and [`HalError::Unsupported`] for a way that is asked for.
pub(crate) fn bind(
    device: &dyn Device,
    products: ModelMatmuls<'_>,
    bindings: &mut Bindings,
    tuning: &Tuning,
    notices: &mut Vec<Notice>,
) -> Result<Option<ChosenVariant>, HalError> {
    let weights = products.plan.entries.iter().filter_map(|entry| bindings.weights.get(&entry.name).cloned());
    let weights: Vec<WeightHandle> = weights.collect();
    let chosen = choose(&VariantContext { device, matmuls: products, weights: &weights }, tuning, notices)?;
    bindings.kernel_variant = chosen.as_ref().map(|chosen| chosen.text.clone());
    Ok(chosen)
}

/// The way of a model's programs; none on a device that has one way.
fn choose(
    wanted: &VariantContext<'_>,
    tuning: &Tuning,
    notices: &mut Vec<Notice>,
) -> Result<Option<ChosenVariant>, HalError> {
    let Some(variants) = wanted.device.kernel_variants() else {
        return match tuning {
            Tuning::Forced(text) => Err(no_variants(wanted.device.info().backend, text)),
            Tuning::Unmeasured | Tuning::Measured { .. } => Ok(None),
        };
    };
    let chosen = |text, origin| Ok(Some(ChosenVariant { text, origin, answers: Vec::new(), full: Vec::new() }));
    let (folder, anew) = match tuning {
        Tuning::Unmeasured => return chosen(variants.resolve("")?, VariantOrigin::Device),
        Tuning::Forced(text) => return chosen(variants.resolve(text)?, VariantOrigin::Forced),
        Tuning::Measured { folder, anew } => (folder, *anew),
    };
    // What caches hold tells nothing of memory, and is over before a difference matters.
    if wanted.matmuls.bytes < TUNING_BYTES || variants.questions().is_empty() {
        return chosen(variants.resolve("")?, VariantOrigin::Device);
    }
    let key = VariantRecordKey::of(&variants.facts(), wanted.matmuls.plan, wanted.matmuls.precision);
    let records = folder.as_ref().map(|folder| Records::new(folder));
    if let (Some(records), None) = (&records, anew) {
        match records.read(&key, variants) {
            Ok(Some(kept)) => return chosen(kept, VariantOrigin::Kept),
            Ok(None) => {}
            Err(why) => {
                notices.push(Notice::Variant(format!("the kept measurement was refused and is made again: {why}")))
            }
        }
    }
    let measured = match measure(wanted, variants, anew, notices) {
        Ok(measured) => measured,
        Err(why) => {
            notices.push(Notice::Variant(format!("not measured: {why}")));
            return chosen(variants.resolve("")?, VariantOrigin::Device);
        }
    };
    if let Some(Err(why)) = records.map(|records| records.write(&key, &measured)) {
        notices.push(Notice::Variant(format!("the measurement is not kept: {why}")));
    }
    Ok(Some(measured))
}

/// What a first start measures; with a full length then all of it.
fn measure(
    wanted: &VariantContext<'_>,
    variants: &dyn KernelVariants,
    anew: Option<Length>,
    notices: &mut Vec<Notice>,
) -> Result<ChosenVariant, HalError> {
    let began = Instant::now();
    let pick = |way, effort| {
        let subject =
            VariantTuningJob { variants, weights: wanted.weights, precision: wanted.matmuls.precision, variant: way };
        pick(subject, effort, &|| began.elapsed())
    };
    let short = Effort { length: Length::Short, rounds: TUNING_ROUNDS, most: TUNING_TIME };
    let TunedVariant { variant: mut way, answers, unanswered } = pick(variants.resolve("")?, short)?;
    notices.push(Notice::Variant(format!("measured for this model in {:.1} s: {way}", began.elapsed().as_secs_f64())));
    if unanswered > 0 {
        let most = TUNING_TIME.as_secs_f64();
        notices.push(Notice::Variant(format!(
            "{unanswered} questions were not measured within {most:.1} s and stay the device's own: others use the \
             processor; `yirage doctor --tune` measures anew"
        )));
    }
    let mut full = Vec::new();
    if anew == Some(Length::Full) {
        let all = Effort { length: Length::Full, rounds: FULL_TUNING_ROUNDS, most: Duration::MAX };
        let picked = pick(way, all)?;
        (way, full) = (picked.variant, picked.answers);
    }
    Ok(ChosenVariant { text: way, origin: VariantOrigin::Measured, answers, full })
}
