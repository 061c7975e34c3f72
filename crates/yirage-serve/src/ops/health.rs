//! Whether the server is well.

use crate::app::App;
use crate::error::ApiError;
use crate::models::Served;
use crate::reply;
use axum::extract::State;
use axum::response::Response;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// Somebody comes again so long after a server that is not ready.
const AGAIN: Duration = Duration::from_secs(1);

/// The process answers.
pub(crate) async fn live() -> Response {
    reply::json(&json!({"status": "ok"}))
}

/// New requests are taken, and no engine has died.
pub(crate) async fn ready(State(app): State<Arc<App>>) -> Result<Response, ApiError> {
    if let Some(why) = app.broken() {
        let message = format!("the server cannot go on and is about to end: {why}");
        return Err(ApiError { code: Some("engine_dead"), ..ApiError::unavailable(message, None) });
    }
    if app.is_draining() {
        return Err(ApiError::unavailable("the server is about to end", Some(app.options.drain_time)));
    }
    let models: Vec<_> = app.models.iter().filter_map(|entry| entry.opened()).collect();
    for served in models {
        if let Served::Generator(generator) = &*served
            && let Some(why) = generator.model().death()
        {
            let message = format!("an engine has stopped: {why}");
            return Err(ApiError { code: Some("engine_dead"), ..ApiError::unavailable(message, None) });
        }
    }
    Ok(reply::json(&json!({"status": "ok"})))
}

/// Requests that run get tokens. Where none has come of any for too long, what is open is shown.
pub(crate) async fn progress(State(app): State<Arc<App>>) -> Result<Response, ApiError> {
    let silence = app.live.silence();
    if silence.is_some_and(|silence| silence >= app.options.stuck_after) {
        let seconds = silence.map_or(0.0, |silence| silence.as_secs_f64());
        let recorded = app.live.recorded();
        tracing::error!(seconds, open = %recorded, "no token has come of any request");
        let message = format!("no token has come for {seconds:.0} s of: {recorded}");
        return Err(ApiError { code: Some("stuck"), ..ApiError::unavailable(message, Some(AGAIN)) });
    }
    let silent = silence.map(|silence| silence.as_secs_f64());
    Ok(reply::json(&json!({"status": "ok", "open": app.live.count(), "silent_seconds": silent})))
}
