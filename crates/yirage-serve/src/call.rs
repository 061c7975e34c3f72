//! A request as an endpoint gets it: who asks, under which id, and the body.

use crate::app::App;
use crate::error::ApiError;
use crate::keys::Caller;
use crate::limits::{BODY_PIECE, MAX_BODY};
use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::{HeaderMap, StatusCode, header, request::Parts};
use futures_core::Stream;
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;

/// Who asks, and under which id; the guard puts it beside the request.
#[derive(Clone, Debug)]
pub(crate) struct RequestContext {
    pub(crate) caller: Caller,
    /// The request's id: the client's own, else one of ours.
    pub(crate) id: String,
}

impl<S: Send + Sync> FromRequestParts<S> for RequestContext {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<RequestContext, Infallible> {
        let unguarded = || RequestContext { caller: Caller::anybody(), id: String::new() };
        Ok(parts.extensions.get::<RequestContext>().cloned().unwrap_or_else(unguarded))
    }
}

/// A request with its body, read whole within its limits.
pub(crate) struct Posted {
    pub(crate) call: RequestContext,
    pub(crate) body: Bytes,
}

impl FromRequest<Arc<App>> for Posted {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Posted, ApiError> {
        let (parts, body) = request.into_parts();
        check_type(&parts.headers)?;
        check_length(&parts.headers)?;
        let call = parts.extensions.get::<RequestContext>().cloned();
        let call = call.ok_or_else(|| ApiError::ours("a request came past the guard; please report this"))?;
        let read = tokio::time::timeout(app.options.body_time, read(app, body));
        let slow = || format!("the body did not come within {} s", app.options.body_time.as_secs_f64());
        let body = read.await.map_err(|_| ApiError::status(StatusCode::REQUEST_TIMEOUT, slow()))??;
        Ok(Posted { call, body })
    }
}

/// JSON is what every endpoint takes. ollama's clients and `curl -d` send other types of content or none.
fn check_type(headers: &HeaderMap) -> Result<(), ApiError> {
    let Some(value) = headers.get(header::CONTENT_TYPE) else { return Ok(()) };
    let word = value.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let json = word == "application/json" || word.starts_with("application/") && word.ends_with("+json");
    if json || word == "application/x-www-form-urlencoded" || word == "text/plain" || word == "application/octet-stream"
    {
        return Ok(());
    }
    let what = format!("content of the type {word:?} is not understood; send application/json");
    Err(ApiError::status(StatusCode::UNSUPPORTED_MEDIA_TYPE, what))
}

fn check_length(headers: &HeaderMap) -> Result<(), ApiError> {
    let length = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > MAX_BODY as u64) { Err(too_large()) } else { Ok(()) }
}

fn too_large() -> ApiError {
    ApiError::status(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!("the body has more than the {MAX_BODY} bytes that one may have"),
    )
}

/// A body, and the room that it takes for as long as anybody looks at it.
struct BodyBuffer {
    bytes: Vec<u8>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl AsRef<[u8]> for BodyBuffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

async fn read(app: &App, body: Body) -> Result<Bytes, ApiError> {
    let mut stream = pin!(body.into_data_stream());
    let (mut bytes, mut room, mut pieces) = (Vec::new(), None::<OwnedSemaphorePermit>, 0);
    while let Some(piece) = poll_fn(|context| stream.as_mut().poll_next(context)).await {
        let piece = piece.map_err(|e| ApiError::invalid(format!("the body broke off: {e}")))?;
        if bytes.len() + piece.len() > MAX_BODY {
            return Err(too_large());
        }
        bytes.extend_from_slice(&piece);
        let wanted = u32::try_from(bytes.capacity().div_ceil(BODY_PIECE)).map_err(|_| too_large())?;
        if wanted > pieces {
            let more = app.body_permit(wanted - pieces)?;
            pieces = wanted;
            match &mut room {
                Some(room) => room.merge(more),
                None => room = Some(more),
            }
        }
    }
    Ok(Bytes::from_owner(BodyBuffer { bytes, _permit: room }))
}
