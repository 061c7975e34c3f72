//! What every request passes: an id, where it comes from, whether new ones are taken, and a key.

use crate::answers::ErrorForm;
use crate::app::App;
use crate::call::RequestContext;
use crate::error::ApiError;
use crate::keys::Caller;
use crate::limits::{MAX_HEAD, MAX_REQUEST_ID};
use crate::page;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

const REQUEST_ID: &str = "x-request-id";

/// Paths that anybody may ask for: they say whether the server is well, and nothing of anybody's.
const OPEN: &[&str] = &["/health", "/v1/health", "/ping", "/health/live", "/health/ready", "/health/progress"];

/// Checks a request, passes it on, and gives its errors the form of its protocol.
pub(crate) async fn guard(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let began = Instant::now();
    let id = request_id(&app, request.headers());
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let origin = request.headers().get(header::ORIGIN).cloned();
    let checked = check(&app, &request);
    let mut response = match checked {
        Err(error) => error.into_response(),
        Ok(_) if method == Method::OPTIONS && origin.is_some() => preflight(),
        Ok(caller) => {
            let name = caller.name.clone();
            request.extensions_mut().insert(RequestContext { caller, id: id.clone() });
            let response = next.run(request).await;
            tracing::info!(
                request = id,
                %method,
                path,
                key = name,
                status = response.status().as_u16(),
                milliseconds = began.elapsed().as_secs_f64() * 1e3,
                "answered"
            );
            response
        }
    };
    response = dressed(response, &path);
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(HeaderName::from_static(REQUEST_ID), value);
    }
    if let Some(origin) = origin.filter(|origin| is_listed(&app, origin)) {
        response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        response.headers_mut().insert(header::VARY, HeaderValue::from_static("origin"));
    }
    response
}

/// The client's own id where it is one, else one of ours. `traceparent` has one that other systems know too.
fn request_id(app: &App, headers: &HeaderMap) -> String {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let usable = |id: &&str| !id.is_empty() && id.len() <= MAX_REQUEST_ID && id.bytes().all(|b| b.is_ascii_graphic());
    let traced = || text("traceparent").and_then(|trace| trace.split('-').nth(1)).filter(|id| id.len() == 32);
    text(REQUEST_ID).filter(usable).or_else(|| traced().filter(usable)).map_or_else(|| app.id("req"), str::to_owned)
}

fn check(app: &App, request: &Request) -> Result<Caller, ApiError> {
    let head: usize = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    if head + request.uri().path().len() > MAX_HEAD {
        let what = format!("the headers have more than the {MAX_HEAD} bytes that they may have");
        return Err(ApiError::status(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, what));
    }
    check_host(app, request)?;
    check_origin(app, request)?;
    let path = request.uri().path();
    if OPEN.contains(&path) || page::has(path) {
        return Ok(Caller::anybody());
    }
    let caller = caller(app, request)?;
    if app.is_draining() && path != "/metrics" {
        return Err(ApiError::unavailable(
            "the server is about to end and takes nothing new",
            Some(app.options.drain_time),
        ));
    }
    Ok(caller)
}

/// Who asks. The key stands behind `Bearer` or, as Anthropic's clients send it, in `x-api-key`.
fn caller(app: &App, request: &Request) -> Result<Caller, ApiError> {
    if app.options.keys.is_empty() {
        return Ok(Caller::anybody());
    }
    // A browser asks without a key whether it may ask.
    if request.method() == Method::OPTIONS {
        return Ok(Caller::anybody());
    }
    let headers = request.headers();
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = text(header::AUTHORIZATION).and_then(|value| {
        let (scheme, key) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
    });
    let key = bearer.or_else(|| text(HeaderName::from_static("x-api-key")));
    let key = key.ok_or_else(|| ApiError::no_key("a key is wanted: Authorization: Bearer KEY"))?;
    app.options.keys.caller(key).ok_or_else(|| ApiError::no_key("this key is not known"))
}

/// A page elsewhere can point a name of its own at this machine, and would then be asked for in that name (DNS rebinding).
/// Where no key is wanted, only names of this machine are answered to.
fn check_host(app: &App, request: &Request) -> Result<(), ApiError> {
    let options = &app.options;
    if !options.keys.is_empty() || options.insecure && options.allowed_hosts.is_empty() {
        return Ok(());
    }
    let of_header = request.headers().get(header::HOST).and_then(|value| value.to_str().ok());
    let Some(host) = request.uri().host().or(of_header) else {
        return Err(ApiError::invalid("the Host header is missing"));
    };
    let name = without_port(host);
    if is_this_machine(name) || options.allowed_hosts.iter().any(|known| known.eq_ignore_ascii_case(name)) {
        return Ok(());
    }
    Err(ApiError::forbidden("the Host header names another machine; allow it with --allowed-host, or set a key"))
}

fn without_port(host: &str) -> &str {
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split(']').next().unwrap_or_default();
    }
    match host.split_once(':') {
        Some((name, port)) if !port.contains(':') => name,
        _ => host,
    }
}

fn is_this_machine(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// A page of another origin may only ask where it is allowed to. Programs send no origin.
fn check_origin(app: &App, request: &Request) -> Result<(), ApiError> {
    let Some(origin) = request.headers().get(header::ORIGIN) else { return Ok(()) };
    let host = request.headers().get(header::HOST).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let own = origin.to_str().ok().and_then(|origin| origin.split_once("://")).is_some_and(|(_, of)| of == host);
    if own && !host.is_empty() || is_listed(app, origin) {
        return Ok(());
    }
    Err(ApiError::forbidden("pages of this origin may not ask; allow it with --allowed-origin"))
}

fn is_listed(app: &App, origin: &HeaderValue) -> bool {
    app.options.allowed_origins.iter().any(|known| known.as_bytes() == origin.as_bytes())
}

/// What a browser asks before it asks.
fn preflight() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST, DELETE"));
    let wanted = "authorization, content-type, x-api-key, anthropic-version, x-request-id";
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(wanted));
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    response
}

/// An error in the form of the path's protocol.
fn dressed(mut response: Response, path: &str) -> Response {
    let error = match response.extensions_mut().remove::<ApiError>() {
        Some(error) => error,
        // What the router says by itself has a status alone.
        None if response.status() == StatusCode::METHOD_NOT_ALLOWED => {
            let error = ApiError::status(StatusCode::METHOD_NOT_ALLOWED, "this path is asked for by another method");
            let allow = response.headers().get(header::ALLOW).cloned();
            let mut response = dressed(error.into_response(), path);
            response.headers_mut().extend(allow.map(|allow| (header::ALLOW, allow)));
            return response;
        }
        None => return response,
    };
    let object = ErrorForm::of(path).object(&error);
    error.response(&object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_this_machine() {
        for host in ["localhost", "LOCALHOST:80", "127.0.0.1:8080", "127.5.5.5", "[::1]:8080", "[::1]", "::1"] {
            assert!(is_this_machine(without_port(host)), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example:80", "10.0.0.1:80", "[::2]:1", "", "0.0.0.0"] {
            assert!(!is_this_machine(without_port(host)), "{host}");
        }
    }
}
