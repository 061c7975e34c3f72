//! Whether a request is let in: so many requests and tokens of prompts may wait, as the operator says.

use crate::app::App;
use crate::error::ApiError;
use crate::models::{Generator, ModelEntry, ModelLease};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Tokens of a prompt that is not computed yet, counted for as long as this is kept.
pub(super) struct QueuedTokens {
    entry: Arc<ModelEntry>,
    tokens: u64,
}

impl Drop for QueuedTokens {
    fn drop(&mut self) {
        self.entry.metrics.waiting_tokens.fetch_sub(self.tokens, Ordering::Relaxed);
    }
}

/// Lets a request in, and counts its prompts.
///
/// # Errors
/// 429 for what would wait behind too many requests or tokens.
pub(super) fn enter(
    app: &App,
    held: &ModelLease,
    generator: &Generator,
    prompts: &[Vec<u32>],
    count: usize,
) -> Result<Vec<QueuedTokens>, ApiError> {
    check_requests(app, held, generator, count)?;
    let tokens = |prompt: &Vec<u32>| u64::try_from(prompt.len()).unwrap_or(u64::MAX);
    let all = prompts.iter().map(tokens).fold(0, u64::saturating_add);
    let (figures, most) = (&held.entry.metrics, app.options.max_queued_tokens);
    // What has more tokens than may wait is let in alone: it would never be otherwise.
    let fits = |waiting: u64, sum: u64| waiting == 0 || most.is_none_or(|most| sum <= most);
    let more = |waiting: u64| Some(waiting.saturating_add(all)).filter(|sum| fits(waiting, *sum));
    if let Err(waiting) = figures.waiting_tokens.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
        let most = most.unwrap_or_default();
        let what = format!("{waiting} tokens of prompts wait and {all} more are asked for; {most} may wait");
        return Err(ApiError::busy(what, figures.wait_for_tokens(waiting)));
    }
    let waiting = |prompt| QueuedTokens { entry: held.entry.clone(), tokens: tokens(prompt) };
    Ok(prompts.iter().map(waiting).collect())
}

fn check_requests(app: &App, held: &ModelLease, generator: &Generator, count: usize) -> Result<(), ApiError> {
    let (open, at_once) = (generator.model().open_jobs(), generator.max_seqs());
    let most = at_once.saturating_add(app.options.max_queued);
    if open.saturating_add(count) > most {
        let what = format!("{open} requests are open and {count} more are asked for; {most} are taken at once");
        return Err(ApiError::busy(what, held.entry.metrics.wait(open.saturating_sub(at_once), at_once)));
    }
    Ok(())
}
