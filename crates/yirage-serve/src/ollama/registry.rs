//! What ollama's clients ask of a store of models: /api/pull, /api/push, /api/create, /api/copy, /api/delete.
//!
//! This server opens no connection and changes no file. A model that it has is there; the rest is done by the program.

use super::models::digest;
use super::options::untagged;
use crate::app::App;
use crate::call::Posted;
use crate::error::ApiError;
use crate::fields::{FieldTable, Fields, honoured, ignored};
use crate::reply::{self, with_ignored};
use crate::sse::{self, Framing};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value, json};
use std::sync::Arc;

/// The fields of /api/pull.
pub(crate) const PULL: FieldTable = &[&[
    honoured("model", r#"{"type":"string"}"#),
    honoured("name", r#"{"type":"string"}"#),
    honoured("stream", r#"{"type":["boolean","null"]}"#),
    ignored("insecure", r#"{"type":["boolean","null"]}"#),
]];

struct Pull {
    model: String,
    stream: bool,
    ignored: Vec<String>,
}

fn read(body: &[u8]) -> Result<Pull, ApiError> {
    let mut fields = Fields::parse(body, PULL)?;
    let old = fields.text("name")?;
    let model = fields.text("model")?.or(old);
    let model = fields.need("model", model)?;
    let stream = fields.switch("stream")?.unwrap_or(true);
    // What it says of other servers' certificates asks for nothing where it is false.
    fields.leave_out("insecure", &Value::Bool(false));
    Ok(Pull { model, stream, ignored: fields.finish()? })
}

/// What changes nothing in a body of /api/pull.
///
/// # Errors
/// What is no request, whatever the models.
pub(crate) fn check(body: &[u8]) -> Result<Vec<String>, ApiError> {
    read(body).map(|pull| pull.ignored)
}

/// POST /api/pull: a model that is served is there.
pub(crate) async fn pull(State(app): State<Arc<App>>, Posted { body, .. }: Posted) -> Result<Response, ApiError> {
    let Pull { model, stream, ignored } = read(&body)?;
    let name = untagged(&app, Some(model)).unwrap_or_default();
    let Some(entry) = app.models.iter().find(|entry| entry.names().contains(&name)) else {
        let what = format!(
            "the model `{name}` is not served here, and this server opens no connections; fetch it with \
             `yirage pull {name}` and start `yirage serve {name}`"
        );
        return Err(ApiError { code: Some("model_not_found"), ..ApiError::not_found(what) });
    };
    let done = json!({"status": "success"});
    if !stream {
        return Ok(with_ignored(reply::json(&done), &ignored));
    }
    let (digest, bytes) = (digest(entry), entry.bytes());
    let short = digest.get(..12).unwrap_or_default();
    let lines = [
        json!({"status": "pulling manifest"}),
        json!({
            "status": format!("pulling {short}"), "digest": format!("sha256:{digest}"), "total": bytes,
            "completed": bytes,
        }),
        done,
    ];
    let response = sse::stream(Framing::Lines, |writer| async move {
        for line in &lines {
            writer.data(line).await?;
        }
        Ok(())
    });
    Ok(with_ignored(response, &ignored))
}

/// What would change which models there are.
pub(crate) async fn absent() -> ApiError {
    let what = "models are not changed over HTTP; use `yirage pull` and `yirage rm`, and start the server with the \
                models that it is to have";
    ApiError { code: Some("unsupported"), ..ApiError::status(StatusCode::NOT_IMPLEMENTED, what) }
}
