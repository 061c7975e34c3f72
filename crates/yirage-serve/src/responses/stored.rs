//! GET, DELETE and cancelling of responses that are kept.

use crate::app::App;
use crate::call::RequestContext;
use crate::error::ApiError;
use crate::reply;
use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use serde_json::{Value, json};
use std::sync::Arc;

fn missing(id: &str) -> ApiError {
    ApiError::not_found(format!("there is no response `{id}`; it may have been too old to be kept"))
}

/// GET /v1/responses/{id}.
pub(crate) async fn get(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    call: RequestContext,
) -> Result<Response, ApiError> {
    let kept = app.stored.get(&id, &call.caller.name).ok_or_else(|| missing(&id))?;
    Ok(reply::json(&kept.response))
}

/// The items of a list where nobody asks for another number, and at most.
const ITEMS: usize = 20;
const MAX_ITEMS: usize = 100;

/// GET /v1/responses/{id}/input_items: what it was an answer to, the newest first unless `order=asc` asks otherwise.
pub(crate) async fn input_items(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
    call: RequestContext,
) -> Result<Response, ApiError> {
    let kept = app.stored.get(&id, &call.caller.name).ok_or_else(|| missing(&id))?;
    let query = query.unwrap_or_default();
    let asked = |name: &str| query.split('&').find_map(|pair| pair.split_once('=').filter(|(known, _)| *known == name));
    let limit = match asked("limit").map(|(_, limit)| limit.parse::<usize>()) {
        None => ITEMS,
        Some(Ok(limit)) if (1..=MAX_ITEMS).contains(&limit) => limit,
        Some(_) => return Err(ApiError::field("limit", format!("`limit`: expected a number from 1 to {MAX_ITEMS}"))),
    };
    let mut items: Vec<&Value> = kept.input.iter().collect();
    match asked("order").map(|(_, order)| order) {
        None | Some("desc") => items.reverse(),
        Some("asc") => {}
        Some(_) => return Err(ApiError::field("order", "`order`: expected asc or desc")),
    }
    if let Some((_, after)) = asked("after") {
        let at = items.iter().position(|item| item["id"] == after);
        let at = at.ok_or_else(|| ApiError::field("after", "`after`: this response has no such item"))?;
        items.drain(..=at);
    }
    let has_more = items.len() > limit;
    items.truncate(limit);
    let id_of = |item: Option<&&Value>| item.map_or(Value::Null, |item| item["id"].clone());
    let (first_id, last_id) = (id_of(items.first()), id_of(items.last()));
    let object =
        json!({"object": "list", "data": items, "first_id": first_id, "last_id": last_id, "has_more": has_more});
    Ok(reply::json(&object))
}

/// DELETE /v1/responses/{id}.
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    call: RequestContext,
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
    call: RequestContext,
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
