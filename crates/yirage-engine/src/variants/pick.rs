//! The fastest way by measurement: question after question, answers in turns, the shortest reading of each.

use std::time::Duration;
use yirage_hal::{HalError, Trial, Variants, WeightHandle};
use yirage_plan::Precision;

/// Readings of each answer: others take the processor now and then, so the shortest counts.
const ROUNDS: usize = 3;
/// What another answer must be below, of the time of the one that is selected: differences that are none change nothing.
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
        let Some(seconds) = shortest(&mut **trial, &question.answers, most, now)? else {
            picked.unanswered += 1;
            continue;
        };
        let own = own(variants, &question.answers);
        let fastest = (0..seconds.len()).min_by(|&a, &b| seconds[a].total_cmp(&seconds[b])).unwrap_or(0);
        let chosen = match own {
            Some(own) if seconds[fastest] >= BETTER * seconds[own] => own,
            _ => fastest,
        };
        for (at, (choices, &seconds)) in question.answers.iter().zip(&seconds).enumerate() {
            let (choices, tokens) = (choices.clone(), question.tokens);
            picked.answers.push(Answered { choices, tokens, seconds, selected: at == chosen });
        }
        variants.select(&question.answers[chosen])?;
    }
    Ok(picked)
}

/// The shortest reading of each answer; none where the time was over before each had one.
fn shortest(
    trial: &mut dyn Trial,
    answers: &[String],
    most: Duration,
    now: &dyn Fn() -> Duration,
) -> Result<Option<Vec<f64>>, HalError> {
    let mut seconds = vec![f64::INFINITY; answers.len()];
    for round in 0..ROUNDS {
        for (shortest, answer) in seconds.iter_mut().zip(answers) {
            if now() >= most {
                return Ok((round > 0).then_some(seconds));
            }
            *shortest = shortest.min(trial.seconds(answer)?);
        }
    }
    Ok(Some(seconds))
}

/// The answer that is selected already, if it is one.
fn own(variants: &dyn Variants, answers: &[String]) -> Option<usize> {
    let selected = variants.selected();
    let has = |answer: &String| answer.split(',').all(|choice| selected.split(',').any(|own| own == choice));
    answers.iter().position(has)
}
