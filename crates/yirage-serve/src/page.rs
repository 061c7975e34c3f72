//! GET / and what belongs to it: a page to talk to models and to look at the engine.
//!
//! The files of `page/` are compiled in as they are; nothing is built of them. They hold nothing of anybody's, so they need
//! no key; what the page asks for does. Knows no file's content: what the page shows, the browser makes of the interfaces
//! that every client has.

use axum::body::Body;
use axum::extract::Path;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::Response;

use crate::error::ApiError;

/// A file of the page.
struct PageFile {
    name: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
}

macro_rules! file {
    ($name:literal, $kind:expr) => {
        PageFile { name: $name, kind: $kind, bytes: include_bytes!(concat!("../page/", $name)) }
    };
}

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

const INDEX: PageFile = file!("index.html", HTML);

const FILES: &[PageFile] = &[
    file!("api.js", SCRIPT),
    file!("chat.js", SCRIPT),
    file!("engine.js", SCRIPT),
    file!("icon.svg", "image/svg+xml"),
    file!("main.js", SCRIPT),
    file!("markdown.js", SCRIPT),
    file!("metrics.js", SCRIPT),
    file!("settings.js", SCRIPT),
    file!("store.js", SCRIPT),
    file!("style.css", "text/css; charset=utf-8"),
];

/// What the page may do: run its own files and ask this server. Nothing inline runs, and no other page may frame it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Whether a path is the page's.
pub(crate) fn has(path: &str) -> bool {
    path == "/" || path.strip_prefix("/page/").is_some_and(|name| FILES.iter().any(|file| file.name == name))
}

/// The page itself.
pub(crate) async fn index() -> Response {
    response(&INDEX)
}

/// A file that it wants.
pub(crate) async fn file(Path(name): Path<String>) -> Result<Response, ApiError> {
    let found = FILES.iter().find(|file| file.name == name);
    found.map(response).ok_or_else(|| ApiError::not_found("the page has no such file"))
}

fn response(file: &PageFile) -> Response {
    let mut response = Response::new(Body::from(file.bytes));
    let set = [
        (header::CONTENT_TYPE, file.kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        // Another version of the program has another page under the same names.
        (header::CACHE_CONTROL, "no-cache"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ];
    for (name, value) in set {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
