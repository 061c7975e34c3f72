//! Responses that are objects.

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use serde_json::Value;

/// A response with this object.
pub(crate) fn json(value: &Value) -> Response {
    let mut response = Response::new(Body::from(value.to_string()));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// The header that names fields of a request which change nothing here.
pub(crate) const IGNORED: &str = "x-yirage-ignored";

/// Says which fields changed nothing.
pub(crate) fn with_ignored(mut response: Response, names: &[String]) -> Response {
    let mut names = names.to_vec();
    names.sort();
    names.dedup();
    if !names.is_empty()
        && let Ok(value) = HeaderValue::from_str(&names.join(","))
    {
        response.headers_mut().insert(IGNORED, value);
    }
    response
}
