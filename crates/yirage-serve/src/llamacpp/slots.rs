//! /slots: what runs at once, and prompts that are written to files and read back.

use super::props::model_of_query;
use crate::app::App;
use crate::call::Posted;
use crate::error::ApiError;
use crate::fields::{FieldTable, Fields, honoured};
use crate::models::SlotKey;
use crate::reply;
use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Instant;

/// The field of a slot's file.
pub(crate) const FILE: FieldTable = &[&[honoured("filename", r#"{"type":"string","minLength":1}"#)]];

/// GET /slots: a place for each sequence that runs at once; the open requests fill them in order.
pub(crate) async fn list(State(app): State<Arc<App>>, RawQuery(asked): RawQuery) -> Result<Response, ApiError> {
    let name = model_of_query(&app, asked.as_deref());
    app.work(move |app| {
        let held = app.models.lease_named(name.as_deref())?;
        let generator = held.generator()?;
        let (context, open) = (generator.model().facts().context, generator.model().open_jobs());
        let slot = |id| json!({"id": id, "n_ctx": context, "is_processing": id < open});
        Ok(reply::json(&(0..generator.max_seqs()).map(slot).collect::<Value>()))
    })
    .await
}

fn file_name(body: &[u8]) -> Result<Option<String>, ApiError> {
    // Forgetting wants no body.
    let body = if body.is_empty() { b"{}" } else { body };
    let mut fields = Fields::parse(body, FILE)?;
    let name = fields.text("filename")?;
    fields.finish()?;
    Ok(name)
}

/// What changes nothing in a body that names a file: nothing.
///
/// # Errors
/// What is no request, whatever the models.
pub(crate) fn check(body: &[u8]) -> Result<Vec<String>, ApiError> {
    file_name(body).map(|_| Vec::new())
}

/// POST /slots/ID?action=save|restore|erase.
pub(crate) async fn act(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
    Posted { call, body }: Posted,
) -> Result<Response, ApiError> {
    let model = model_of_query(&app, query.as_deref());
    app.work(move |app| {
        let file = file_name(&body)?;
        let held = app.models.lease_named(model.as_deref())?;
        let generator = held.generator()?;
        let most = generator.max_seqs();
        let unknown =
            || ApiError::field("id", format!("expected a slot from 0 to {}, got {id:?}", most.saturating_sub(1)));
        let id = id.parse::<usize>().ok().filter(|&id| id < most).ok_or_else(unknown)?;
        let slot = SlotKey { id, salt: call.caller.salt.clone() };
        let (began, slots) = (Instant::now(), generator.slots());
        let ms = |began: Instant| began.elapsed().as_secs_f64() * 1e3;
        let named = || file.clone().ok_or_else(|| ApiError::field("filename", "expected the name of a file, got none"));
        let action = query.as_deref().unwrap_or_default().split('&').find_map(|pair| pair.strip_prefix("action="));
        Ok(reply::json(&match action {
            Some("save") => {
                let name = named()?;
                let size = slots.save(generator.model(), &slot, &name)?;
                json!({"id_slot": id, "filename": name, "n_saved": size.positions, "n_written": size.bytes,
                    "timings": {"save_ms": ms(began)}})
            }
            Some("restore") => {
                let name = named()?;
                let size = slots.restore(generator.model(), slot, &name)?;
                json!({"id_slot": id, "filename": name, "n_restored": size.positions, "n_read": size.bytes,
                    "timings": {"restore_ms": ms(began)}})
            }
            Some("erase") => json!({"id_slot": id, "n_erased": slots.erase(&slot)}),
            other => {
                let what = format!("expected ?action=save, restore or erase, got {:?}", other.unwrap_or_default());
                return Err(ApiError::field("action", what));
            }
        }))
    })
    .await
}
