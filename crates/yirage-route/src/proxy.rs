//! A request from its head to the head of its answer.

use crate::answer::{AnswerBody, RoutedRequest};
use crate::choice::choose;
use crate::figures::RouteFigures;
use crate::forward::{NoAnswer, end_to_end, forward};
use crate::limits::{BODY_MEBIBYTES, BODY_TIME, MAX_BODY};
use crate::prefix::PrefixTable;
use crate::prompt_blocks::prompt_blocks;
use crate::replica::{Replica, ReplicaState};
use axum::body::{Body, Bytes, to_bytes};
use hyper::body::Incoming;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Semaphore;

/// Says in an answer which replica has given it.
const REPLICA: HeaderName = HeaderName::from_static("x-yirage-replica");

/// Paths at which asking again does no harm but work: what is asked there changes nothing that stays.
const REPEATABLE: [&str; 18] = [
    "/chat/completions",
    "/completions",
    "/completion",
    "/infill",
    "/embeddings",
    "/embedding",
    "/rerank",
    "/score",
    "/messages",
    "/messages/count_tokens",
    "/responses/input_tokens",
    "/tokenize",
    "/detokenize",
    "/apply-template",
    "/api/chat",
    "/api/generate",
    "/api/embed",
    "/api/embeddings",
];

/// What all requests share.
pub(crate) struct RouteState {
    pub(crate) replicas: Vec<Arc<Replica>>,
    pub(crate) figures: RouteFigures,
    prefixes: Mutex<PrefixTable>,
    slack: usize,
    is_ending: AtomicBool,
    /// Room for bodies, in MiB.
    bodies: Semaphore,
}

impl RouteState {
    pub(crate) fn new(replicas: Vec<Arc<Replica>>, slack: usize) -> RouteState {
        let (figures, prefixes) = (RouteFigures::default(), Mutex::default());
        let (is_ending, bodies) = (AtomicBool::new(false), Semaphore::new(BODY_MEBIBYTES));
        RouteState { replicas, figures, prefixes, slack, is_ending, bodies }
    }

    fn prefixes(&self) -> MutexGuard<'_, PrefixTable> {
        self.prefixes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A replica has become something else. One that is gone comes back with nothing cached.
    pub(crate) fn changed(&self, at: usize, state: &ReplicaState) {
        let replica = self.replicas[at].address.authority();
        match state {
            ReplicaState::Unreachable(why) => {
                self.prefixes().forget(at);
                tracing::warn!(replica, why, "a replica is unreachable");
            }
            ReplicaState::NotReady(why) => tracing::warn!(replica, why, "a replica takes no requests"),
            ReplicaState::Ready | ReplicaState::Unknown => tracing::info!(replica, "a replica takes requests"),
        }
    }

    /// From now on the router says that it takes nothing new.
    pub(crate) fn ends(&self) {
        self.is_ending.store(true, Ordering::Relaxed);
    }

    fn is_ready(&self) -> bool {
        !self.is_ending.load(Ordering::Relaxed) && self.replicas.iter().any(|replica| replica.load(false).is_candidate)
    }

    /// What is known of each replica, in words.
    fn states(&self) -> serde_json::Value {
        let state = |replica: &Arc<Replica>| {
            let (is, why) = match replica.state() {
                ReplicaState::Unknown => ("unknown", String::new()),
                ReplicaState::Ready => ("ready", String::new()),
                ReplicaState::NotReady(why) => ("not ready", why),
                ReplicaState::Unreachable(why) => ("unreachable", why),
            };
            json!({"replica": replica.address.to_string(), "state": is, "reason": why})
        };
        self.replicas.iter().map(state).collect()
    }
}

/// An error as the servers' protocols have it.
fn refusal(status: StatusCode, code: &str, message: &str) -> Response<Body> {
    let kind = if status.is_server_error() { "server_error" } else { "invalid_request_error" };
    let text = json!({"error": {"message": message, "type": kind, "code": code}}).to_string();
    whole(status, "application/json", text)
}

fn whole(status: StatusCode, kind: &'static str, text: String) -> Response<Body> {
    let mut answer = Response::new(Body::from(text));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    if status == StatusCode::SERVICE_UNAVAILABLE {
        answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    answer
}

/// Answers a request: by itself what is about itself, all else by a replica.
pub(crate) async fn answer(state: Arc<RouteState>, request: Request<Incoming>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    match (parts.method.as_str(), parts.uri.path()) {
        ("GET", "/health" | "/health/ready") => {
            let is_ready = state.is_ready();
            let status = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
            let word = if is_ready { "ok" } else { "unavailable" };
            return whole(status, "application/json", json!({"status": word, "replicas": state.states()}).to_string());
        }
        ("GET", "/health/live") => {
            return whole(StatusCode::OK, "application/json", json!({"status": "ok"}).to_string());
        }
        ("GET", "/metrics") => {
            let known = state.prefixes().len();
            let text = state.figures.text(&state.replicas, known);
            return whole(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", text);
        }
        _ if state.is_ending.load(Ordering::Relaxed) => {
            return refusal(StatusCode::SERVICE_UNAVAILABLE, "draining", "the router is about to end");
        }
        _ => {}
    }
    // What does not say how long it is may be as long as anything.
    let said = parts.headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    let room = said.unwrap_or(MAX_BODY).min(MAX_BODY).div_ceil(1 << 20) as u32;
    let Ok(_room) = state.bodies.try_acquire_many(room) else {
        let message = format!("the bodies of open requests take {BODY_MEBIBYTES} MiB, and no more may be held");
        return refusal(StatusCode::SERVICE_UNAVAILABLE, "out_of_memory", &message);
    };
    let read = tokio::time::timeout(BODY_TIME, to_bytes(Body::new(body), MAX_BODY)).await;
    match read {
        Ok(Ok(body)) => routed(&state, &parts, &body).await,
        Ok(Err(_)) => {
            let message = format!("expected a whole body of at most {MAX_BODY} bytes; send a shorter one");
            refusal(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", &message)
        }
        Err(_) => {
            let message = format!("expected the body within {} s; send it faster", BODY_TIME.as_secs());
            refusal(StatusCode::REQUEST_TIMEOUT, "body_too_slow", &message)
        }
    }
}

/// Whether a request whose replica has said nothing may be given to another one.
fn may_repeat(parts: &Parts) -> bool {
    let path = parts.uri.path();
    let path = path.strip_prefix("/v1").unwrap_or(path);
    parts.method == Method::GET || parts.method == Method::HEAD || REPEATABLE.contains(&path)
}

async fn routed(state: &RouteState, parts: &Parts, body: &Bytes) -> Response<Body> {
    let blocks = if parts.method == Method::POST { prompt_blocks(body) } else { Vec::new() };
    let mut failed = vec![false; state.replicas.len()];
    let mut last: Option<Response<Body>> = None;
    let mut why = Vec::new();
    loop {
        let owner = state.prefixes().find(&blocks).map(|(replica, _)| replica);
        let loads: Vec<_> = state.replicas.iter().zip(&failed).map(|(of, &failed)| of.load(failed)).collect();
        let Some(choice) = choose(&loads, owner, state.slack) else { break };
        if !blocks.is_empty() {
            state.figures.chosen(choice.reason);
        }
        let replica = &state.replicas[choice.replica];
        if failed.iter().any(|&failed| failed) {
            state.figures.retried.fetch_add(1, Ordering::Relaxed);
        }
        // Who comes at the same time with the same beginning is sent to the same replica.
        state.prefixes().insert(&blocks, choice.replica);
        let open = RoutedRequest::new(replica.clone());
        match forward(replica, parts, body).await {
            Ok(answer) => {
                let status = answer.status();
                replica.figures.answered[usize::from(status.as_u16() / 100).min(5)].fetch_add(1, Ordering::Relaxed);
                let answer = passed_on(answer, open);
                // It says itself that it has not begun.
                if !matches!(status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS) {
                    return answer;
                }
                last = Some(answer);
            }
            Err(none) => {
                replica.figures.failed.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(why = none.why(), "a replica gave no answer");
                if matches!(none, NoAnswer::NotSent(_)) && replica.becomes(ReplicaState::Unreachable(none.why().into()))
                {
                    state.changed(choice.replica, &replica.state());
                }
                if matches!(none, NoAnswer::Sent(_)) && !may_repeat(parts) {
                    let message = format!("{}; it may have been done, and asking again may do it twice", none.why());
                    return refusal(StatusCode::BAD_GATEWAY, "replica_lost", &message);
                }
                why.push(none.why().to_owned());
            }
        }
        failed[choice.replica] = true;
    }
    state.figures.refused.fetch_add(1, Ordering::Relaxed);
    let message = match why.is_empty() {
        true => format!("no replica takes requests: {}", state.states()),
        false => format!("no replica is left: {}", why.join("; ")),
    };
    last.unwrap_or_else(|| refusal(StatusCode::SERVICE_UNAVAILABLE, "no_replica", &message))
}

/// The answer as the client gets it, piece by piece.
fn passed_on(answer: Response<Incoming>, open: RoutedRequest) -> Response<Body> {
    let (parts, body) = answer.into_parts();
    let replica = HeaderValue::from_str(open.replica().address.authority());
    let mut answer = Response::new(Body::new(AnswerBody::new(body, open)));
    *answer.status_mut() = parts.status;
    *answer.headers_mut() = end_to_end(&parts.headers);
    if let Ok(replica) = replica {
        answer.headers_mut().insert(REPLICA, replica);
    }
    answer
}
