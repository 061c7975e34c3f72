//! The fastest way by measurement: question after question, answers in turns. Others use the processor as well, so another
//! answer takes the place of the one that is selected only where no reading of it is as long as the shortest of that one.

use std::time::Duration;
use yirage_hal::{HalError, Trial, Variants, WeightHandle};
use yirage_plan::Precision;

/// Readings of each answer, of the one that is selected twice as many.
const ROUNDS: usize = 3;
/// What all readings of another answer must be below, of the shortest of the one that is selected: differences that are none
/// change nothing.
const BETTER: f64 = 0.98;

/// An answer that was measured.
#[derive(Clone, PartialEq, Debug)]
pub struct Answered {
    /// Its choices.
    pub choices: String,
    /// Tokens of the products.
    pub tokens: usize,
    /// Seconds of them, the shortest reading.
    pub seconds: f64,
    /// The longest reading.
    pub longest: f64,
    /// Whether it was selected.
    pub selected: bool,
}

/// What came of the questions.
pub(super) struct Picked {
    /// Answers that were measured, in order.
    pub(super) answers: Vec<Answered>,
    /// Questions that were not, since the time was over.
    pub(super) unanswered: usize,
}

/// Asks the device's questions until `most` is over by the clock `now`, and selects what is fastest.
///
/// # Errors
/// Those of [`Variants::trial`] and [`Trial::seconds`].
pub(super) fn pick(
    variants: &dyn Variants,
    weights: &[WeightHandle],
    precision: Precision,
    most: Duration,
    now: &dyn Fn() -> Duration,
) -> Result<Picked, HalError> {
    let questions = variants.questions();
    let mut picked = Picked { answers: Vec::new(), unanswered: 0 };
    let mut trial: Option<(usize, Box<dyn Trial + '_>)> = None;
    for question in &questions {
        if now() >= most {
            picked.unanswered += 1;
            continue;
        }
        if trial.as_ref().is_none_or(|(tokens, _)| *tokens != question.tokens) {
            let mut made = variants.trial(weights, precision, question.tokens)?;
            // The first reading meets pages that nobody has touched.
            made.seconds("")?;
            trial = Some((question.tokens, made));
        }
        let Some((_, trial)) = &mut trial else { continue };
        let own = own(variants, &question.answers);
        let Some(read) = readings(&mut **trial, &question.answers, own, most, now)? else {
            picked.unanswered += 1;
            continue;
        };
        let chosen = chosen(&read, own);
        for (at, (choices, read)) in question.answers.iter().zip(&read).enumerate() {
            let (choices, tokens, selected) = (choices.clone(), question.tokens, at == chosen);
            let &Read { shortest: seconds, longest } = read;
            picked.answers.push(Answered { choices, tokens, seconds, longest, selected });
        }
        variants.select(&question.answers[chosen])?;
    }
    Ok(picked)
}

/// Seconds of an answer.
#[derive(Clone, Copy)]
struct Read {
    shortest: f64,
    longest: f64,
}

/// Readings of each answer, and at the end of a round one more of the one that is selected; none where the time was over
/// before each had one.
fn readings(
    trial: &mut dyn Trial,
    answers: &[String],
    own: Option<usize>,
    most: Duration,
    now: &dyn Fn() -> Duration,
) -> Result<Option<Vec<Read>>, HalError> {
    let mut read = vec![Read { shortest: f64::INFINITY, longest: 0.0 }; answers.len()];
    for round in 0..ROUNDS {
        for at in (0..answers.len()).chain(own) {
            if now() >= most {
                return Ok((round > 0).then_some(read));
            }
            let seconds = trial.seconds(&answers[at])?;
            let Read { shortest, longest } = &mut read[at];
            (*shortest, *longest) = (shortest.min(seconds), longest.max(seconds));
        }
    }
    Ok(Some(read))
}

/// The fastest answer where it is surely faster than the one that is selected.
fn chosen(read: &[Read], own: Option<usize>) -> usize {
    let fastest = (0..read.len()).min_by(|&a, &b| read[a].longest.total_cmp(&read[b].longest)).unwrap_or(0);
    match own {
        Some(own) if read[fastest].longest >= BETTER * read[own].shortest => own,
        _ => fastest,
    }
}

/// The answer that is selected already, if it is one.
fn own(variants: &dyn Variants, answers: &[String]) -> Option<usize> {
    let selected = variants.selected();
    let has = |answer: &String| answer.split(',').all(|choice| selected.split(',').any(|own| own == choice));
    answers.iter().position(has)
}
