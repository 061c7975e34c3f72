//! A prompt's beginning from another server into this one's cache, before the prompt is queued here.

use crate::models::{Generator, ModelLease, PrefillRequest, PrefillServer};
use sha2::{Digest, Sha256};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use yirage_session::Job;

/// How long a prompt may take elsewhere where a request has no end of its own.
const LONGEST: Duration = Duration::from_secs(600);

/// Has the other server compute the prompt of a job, where there is one and it is worth it. Whatever goes wrong, the prompt is
/// computed here, which is logged and counted.
pub(super) fn take(held: &ModelLease, generator: &Generator, job: &Job) {
    let Some((server, _)) = generator.prefill_server().filter(|(server, _)| is_for(server, job)) else { return };
    let metrics = &held.entry.metrics;
    match taken(held, generator, job) {
        Ok(None) => {}
        Ok(Some(positions)) => {
            metrics.prefilled_elsewhere.fetch_add(positions as u64, Ordering::Relaxed);
        }
        Err(why) => {
            metrics.prefills_failed.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(server = server.url(), why, "a prompt is computed here, as the other server did not");
        }
    }
}

/// Whether the other server could compute all that the job wants of its prompt.
fn is_for(server: &PrefillServer, job: &Job) -> bool {
    let request = &job.request;
    let is_plain = job.pictures.is_empty() && request.embedded.is_empty() && request.adapters.is_none();
    is_plain && request.prompt_logprobs.is_none() && request.prompt.len() >= server.least
}

/// Positions that came over; none where they are here already.
fn taken(held: &ModelLease, generator: &Generator, job: &Job) -> Result<Option<usize>, String> {
    let Some((server, model)) = generator.prefill_server() else { return Ok(None) };
    let (request, session) = (&job.request, generator.model());
    let (tokens, salt) = (request.prompt.clone(), request.cache_salt.clone());
    let cached = session.cached_positions(tokens.clone(), salt.clone());
    let (here, most) = cached.map_err(|error| error.to_string())?;
    // What is left to compute is less than what would be asked for.
    if tokens.len() - here < server.least {
        return Ok(None);
    }
    let within = job.deadline.map_or(LONGEST, |end| end.saturating_duration_since(Instant::now()).min(LONGEST));
    // Nobody there learns what the salt is made of.
    let cache_salt = Sha256::digest(&salt).iter().map(|byte| format!("{byte:02x}")).collect();
    let asked = PrefillRequest { model: held.entry.name(), tokens: &tokens, cache_salt, most, within };
    let bytes = server.fetch(&asked)?;
    if bytes.is_empty() {
        return Err("its cache has nothing of the prompt any more; give it room for more, by --kv-memory".into());
    }
    let restored = session.restore_prefix_bytes(Path::new(server.url()), bytes, *model, salt);
    restored.map(Some).map_err(|error| error.to_string())
}
