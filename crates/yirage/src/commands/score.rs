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
