//! Logits of given ids, position by position.

use crate::failure::CliFailure;
use crate::generate::rope_note;
use yirage_engine::Request;
use yirage_engine::scheduler::{FinishReason, LogitsWanted};
use yirage_session::{FinishedAnswer, Job, ModelHandle, SessionEvent};

/// Computes `ids` and gives `each` the logits of every position, in order, or those of the last one; returns what the
/// user should know of it.
///
/// # Errors
/// [`CliFailure`] for ids that cannot be computed, and when a step fails.
pub(super) fn score(
    model: &ModelHandle,
    ids: &[u32],
    wanted: LogitsWanted,
    each: &mut dyn FnMut(usize, &[f32]),
) -> Result<Vec<String>, CliFailure> {
    // The last position's logits come with a token, for which a full context has no place: there, all are computed.
    let full = ids.len() >= model.facts().context as usize;
    let computed = if full { LogitsWanted::All } else { wanted };
    let new = u32::from(computed == LogitsWanted::Last);
    let request = Request { logits: Some(computed), ..Request::greedy(ids.to_vec(), new) };
    let is_wanted = |position: usize| wanted == LogitsWanted::All || position + 1 == ids.len();
    let mut positions = 0;
    let mut notes = Vec::new();
    for event in model.submit(Job::new(request))? {
        match event? {
            SessionEvent::Logits { position, logits } if is_wanted(position) => {
                each(position, &logits);
                positions += 1;
            }
            SessionEvent::Finished(FinishedAnswer { reason: FinishReason::Error(why), .. }) => {
                return Err(CliFailure::Other(why));
            }
            SessionEvent::RopeScaled { length, original } => notes.push(rope_note(length, original)),
            _ => {}
        }
    }
    let expected = if wanted == LogitsWanted::All { ids.len() } else { 1 };
    if positions == expected {
        return Ok(notes);
    }
    let what = format!("the engine gave logits of {positions} positions, not {expected}; please report this");
    Err(CliFailure::Other(what))
}

/// ln of the sum of exponentials, in f64.
pub(super) fn logsumexp(row: &[f32]) -> f64 {
    let max = row.iter().fold(f32::NEG_INFINITY, |m, &x| m.max(x));
    if !max.is_finite() {
        return f64::from(max);
    }
    let max = f64::from(max);
    max + row.iter().map(|&x| (f64::from(x) - max).exp()).sum::<f64>().ln()
}

/// Index of the largest logit, the smallest among equals.
pub(super) fn argmax(row: &[f32]) -> usize {
    let larger = |best: usize, i: usize| if row[i] > row[best] { i } else { best };
    (1..row.len()).fold(0, larger)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_exponentials_neither_overflow_nor_lose() {
        assert!((logsumexp(&[1000.0, 1000.0]) - (1000.0 + 2f64.ln())).abs() < 1e-12);
        assert!((logsumexp(&[0.0; 4]) - 4f64.ln()).abs() < 1e-15);
        assert_eq!(logsumexp(&[f32::NEG_INFINITY, 3.0]), 3.0);
        assert_eq!(logsumexp(&[f32::NEG_INFINITY]), f64::NEG_INFINITY);
    }

    #[test]
    fn equal_logits_go_to_the_smaller_id() {
        assert_eq!(argmax(&[1.0, 3.0, 3.0, 2.0]), 1);
        assert_eq!(argmax(&[-1.0]), 0);
    }
}
