//! GET, DELETE and cancelling of responses that are kept.

use crate::app::App;
use crate::call::Call;
use crate::error::ApiError;
use crate::reply;
use axum::extract::{Path, State};
use axum::response::Response;
use serde_json::json;
use std::sync::Arc;

fn missing(id: &str) -> ApiError {
    ApiError::not_found(format!("there is no response `{id}`; it may have been too old to be kept"))
}

/// GET /v1/responses/{id}.
pub(crate) async fn get(State(app): State<Arc<App>>, Path(id): Path<String>, call: Call) -> Result<Response, ApiError> {
    let kept = app.stored.get(&id, &call.caller.name).ok_or_else(|| missing(&id))?;
    Ok(reply::json(&kept.response))
}

/// DELETE /v1/responses/{id}.
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    call: Call,
) -> Result<Response, ApiError> {
    if !app.stored.delete(&id, &call.caller.name) {
        return Err(missing(&id));
    }
    Ok(reply::json(&json!({"id": id, "object": "response", "deleted": true})))
}

/// POST /v1/responses/{id}/cancel: ends one that is computed in the background. One that has ended stays as it is.
pub(crate) async fn cancel(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    call: Call,
) -> Result<Response, ApiError> {
    let kept = app.stored.get(&id, &call.caller.name).ok_or_else(|| missing(&id))?;
    if kept.response["background"] != true {
        let what = "this response was not computed in the background; close its connection to cancel one";
        return Err(ApiError::invalid(what));
    }
    let mut response = kept.response.clone();
    if let Some(running) = &kept.running {
        running.notify_one();
        response["status"] = "cancelled".into();
    }
    Ok(reply::json(&response))
}
