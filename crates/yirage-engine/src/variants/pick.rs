//! The fastest way by measurement: question after question, answers in turns. Others use the processor as well, so another
//! answer takes the place of the one that is selected only where no reading of it is as long as the shortest of that one.

use std::time::Duration;
use yirage_hal::{HalError, KernelVariants, Length, VariantTimer, WeightHandle};
use yirage_plan::Precision;

/// What all readings of another answer must be below, of the shortest of the one that is selected: differences that are none
/// change nothing. In a full measurement the medians are compared so.
const BETTER: f64 = 0.98;

/// An answer that was measured.
#[derive(Clone, PartialEq, Debug)]
pub struct VariantTiming {
    /// Its choices.
    pub choices: String,
    /// Tokens of the products.
    pub tokens: usize,
    /// Seconds of them, the shortest reading.
    pub seconds: f64,
    /// The median reading.
    pub median: f64,
    /// The longest reading.
    pub longest: f64,
    /// Whether it was selected already.
    pub own: bool,
    /// Whether it was selected.
    pub selected: bool,
}

/// How much is measured.
#[derive(Clone, Copy)]
pub(super) struct Effort {
    pub(super) length: Length,
    /// Readings of each answer, of the one that is selected twice as many.
    pub(super) rounds: usize,
    /// No reading begins later.
    pub(super) most: Duration,
}

/// What came of the questions.
pub(super) struct TunedVariant {
    /// The fastest way, with every choice.
    pub(super) variant: String,
    /// Answers that were measured, in order.
    pub(super) answers: Vec<VariantTiming>,
    /// Questions that were not, since the time was over.
    pub(super) unanswered: usize,
}

/// What is measured, and from where on.
pub(super) struct VariantTuningJob<'a> {
    pub(super) variants: &'a dyn KernelVariants,
    pub(super) weights: &'a [WeightHandle],
    pub(super) precision: Precision,
    /// The way that is selected already.
    pub(super) variant: String,
}

/// Asks the device's questions until the time is over by the clock `now`.
///
/// # Errors
/// Those of [`KernelVariants::timer`] and [`VariantTimer::seconds`].
pub(super) fn pick(
    subject: VariantTuningJob<'_>,
    effort: Effort,
    now: &dyn Fn() -> Duration,
) -> Result<TunedVariant, HalError> {
    let VariantTuningJob { variants, weights, precision, variant: way } = subject;
    let mut picked = TunedVariant { variant: way, answers: Vec::new(), unanswered: 0 };
    let mut trial: Option<(usize, Box<dyn VariantTimer + '_>)> = None;
    for question in &variants.questions() {
        if now() >= effort.most {
            picked.unanswered += 1;
            continue;
        }
        let tokens = if effort.length == Length::Full { question.step } else { question.tokens };
        if trial.as_ref().is_none_or(|(made, _)| *made != tokens) {
            let mut made = variants.timer(weights, precision, tokens, effort.length)?;
            // The first reading meets pages that nobody has touched.
            made.seconds(&picked.variant)?;
            trial = Some((tokens, made));
        }
        let Some((_, trial)) = &mut trial else { continue };
        let ways: Vec<String> = question.answers.iter().map(|answer| format!("{},{answer}", picked.variant)).collect();
        let own = own(&picked.variant, &question.answers);
        let Some(read) = readings(&mut **trial, &ways, own, effort, now)? else {
            picked.unanswered += 1;
            continue;
        };
        let chosen = chosen(&read, own, effort.length);
        for (at, (choices, read)) in question.answers.iter().zip(&read).enumerate() {
            let (choices, selected, own) = (choices.clone(), at == chosen, Some(at) == own);
            let (seconds, median, longest) = (read.shortest(), read.median(), read.longest());
            picked.answers.push(VariantTiming { choices, tokens, seconds, median, longest, own, selected });
        }
        picked.variant = variants.resolve(&ways[chosen])?;
    }
    Ok(picked)
}

/// Seconds of an answer, in ascending order; at least one reading.
struct TrialReadings(Vec<f64>);

impl TrialReadings {
    fn shortest(&self) -> f64 {
        self.0[0]
    }

    fn median(&self) -> f64 {
        self.0[self.0.len() / 2]
    }

    fn longest(&self) -> f64 {
        self.0[self.0.len() - 1]
    }
}

/// Readings of each way, and at the end of a round one more of the one that is selected; none where the time was over
/// before each had one.
fn readings(
    trial: &mut dyn VariantTimer,
    ways: &[String],
    own: Option<usize>,
    effort: Effort,
    now: &dyn Fn() -> Duration,
) -> Result<Option<Vec<TrialReadings>>, HalError> {
    let mut read = vec![Vec::new(); ways.len()];
    'over: for _ in 0..effort.rounds {
        for at in (0..ways.len()).chain(own) {
            if now() >= effort.most {
                break 'over;
            }
            read[at].push(trial.seconds(&ways[at])?);
        }
    }
    let sorted = |mut seconds: Vec<f64>| {
        seconds.sort_by(f64::total_cmp);
        (!seconds.is_empty()).then_some(TrialReadings(seconds))
    };
    Ok(read.into_iter().map(sorted).collect())
}

/// The fastest answer where it is surely faster than the one that is selected.
fn chosen(read: &[TrialReadings], own: Option<usize>, length: Length) -> usize {
    let full = length == Length::Full;
    let of_another = |read: &TrialReadings| if full { read.median() } else { read.longest() };
    let of_own = |read: &TrialReadings| if full { read.median() } else { read.shortest() };
    let by_time = |&a: &usize, &b: &usize| of_another(&read[a]).total_cmp(&of_another(&read[b]));
    let fastest = (0..read.len()).min_by(by_time).unwrap_or(0);
    match own {
        Some(own) if of_another(&read[fastest]) >= BETTER * of_own(&read[own]) => own,
        _ => fastest,
    }
}

/// The answer that is selected already, if it is one.
fn own(way: &str, answers: &[String]) -> Option<usize> {
    let has = |answer: &String| answer.split(',').all(|choice| way.split(',').any(|own| own == choice));
    answers.iter().position(has)
}
