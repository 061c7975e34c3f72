//! Asking replicas whether they take requests.

use crate::forward::{NoAnswer, forward};
use crate::limits::{MAX_HEALTH, MISSED_CHECKS};
use crate::replica::{Replica, ReplicaState};
use axum::body::{Body, Bytes, to_bytes};
use hyper::{Method, Request};
use std::sync::Arc;
use std::time::Duration;

/// Asks a replica again and again; `changed` hears what it has become.
pub(crate) async fn watch(replica: Arc<Replica>, every: Duration, changed: impl Fn(&ReplicaState)) {
    let mut missed = 0;
    loop {
        let now = match tokio::time::timeout(every, asked(&replica)).await {
            Ok(Ok(state)) => {
                missed = 0;
                Some(state)
            }
            Ok(Err(NoAnswer::NotSent(why))) => {
                missed = MISSED_CHECKS;
                Some(ReplicaState::Unreachable(why))
            }
            Ok(Err(NoAnswer::Sent(why))) => {
                missed += 1;
                (missed >= MISSED_CHECKS).then_some(ReplicaState::Unreachable(why))
            }
            Err(_) => {
                missed += 1;
                let why = format!("{missed} health checks had no answer within {} s each", every.as_secs_f64());
                (missed >= MISSED_CHECKS).then_some(ReplicaState::Unreachable(why))
            }
        };
        if let Some(now) = now.filter(|now| replica.becomes(now.clone())) {
            changed(&now);
        }
        tokio::time::sleep(every).await;
    }
}

async fn asked(replica: &Replica) -> Result<ReplicaState, NoAnswer> {
    let request = Request::builder().method(Method::GET).uri("/health").body(());
    let request = request.map_err(|error| NoAnswer::NotSent(error.to_string()))?;
    let answer = probed(replica, &request.into_parts().0).await?;
    if answer.0 == 200 {
        return Ok(ReplicaState::Ready);
    }
    Ok(ReplicaState::NotReady(format!("status {}: {}", answer.0, String::from_utf8_lossy(&answer.1).trim())))
}

/// Asks a replica also where it is thought to be unreachable.
async fn probed(replica: &Replica, parts: &hyper::http::request::Parts) -> Result<(u16, Bytes), NoAnswer> {
    let probe = Replica::new(replica.address.clone());
    let answer = forward(&probe, parts, &Bytes::new()).await?;
    let status = answer.status().as_u16();
    let body = to_bytes(Body::new(answer.into_body()), MAX_HEALTH).await;
    Ok((status, body.unwrap_or_default()))
}
