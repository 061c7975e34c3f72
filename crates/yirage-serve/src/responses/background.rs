//! Responses that are computed while nobody waits for them.

use super::active::ActiveResponse;
use super::answer::computed;
use crate::reply;
use crate::store::StoredResponse;
use axum::response::Response;
use std::sync::Arc;
use tokio::sync::Notify;

/// Computes a response behind the client's back, and says what it is called. Whoever cancels or forgets it ends it.
pub(super) fn later(mut begun: ActiveResponse) -> Response {
    let object = begun.object("in_progress", &begun.output(), None);
    let cancelled = Arc::new(Notify::new());
    let kept = StoredResponse {
        response: object.clone(),
        messages: None,
        input: begun.input.clone(),
        running: Some(cancelled.clone()),
    };
    begun.app.stored.keep(&begun.id, &begun.owner, kept);
    tokio::spawn(async move {
        let failed = tokio::select! {
            ended = computed(&mut begun) => match ended {
                // By now it is kept.
                Ok(_) => return,
                Err(error) => begun.object("failed", &begun.output(), Some(&error)),
            },
            () = cancelled.notified() => begun.object("cancelled", &begun.output(), None),
        };
        let kept = StoredResponse { response: failed, messages: None, input: begun.input.clone(), running: None };
        begun.app.stored.replace(&begun.id, &begun.owner, kept);
    });
    reply::json(&object)
}
