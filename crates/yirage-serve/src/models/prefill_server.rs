//! The server that computes prompts for this one.

use serde_json::json;
use std::time::Duration;
use thiserror::Error;
use ureq::Agent;

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(5);

/// A server that computes prompts for this one.
#[derive(Clone, Debug)]
pub struct PrefillServer {
    /// Where its prompts are posted.
    url: String,
    agent: Agent,
    /// Its key, where it wants one.
    key: Option<String>,
    /// Prompts of fewer tokens are computed here.
    pub(crate) least: usize,
}

/// An address that is none of a server.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error(
    "expected http://HOST:PORT, got {got:?}; a server behind TLS is reached by a tunnel or a proxy on this machine"
)]
pub struct PrefillAddressError {
    /// What was given.
    pub got: String,
}

/// A prompt that the other server is asked for.
pub(crate) struct PrefillRequest<'a> {
    pub(crate) model: &'a str,
    pub(crate) tokens: &'a [u32],
    /// What keeps it apart from equal prompts of others.
    pub(crate) cache_salt: String,
    /// Bytes of the answer at most.
    pub(crate) most: u64,
    pub(crate) within: Duration,
}

impl PrefillServer {
    /// The server at an address `http://HOST:PORT`, which computes prompts of so many tokens at least.
    ///
    /// # Errors
    /// [`PrefillAddressError`] for anything else.
    pub fn new(address: &str, least: usize, key: Option<String>) -> Result<PrefillServer, PrefillAddressError> {
        let wrong = || PrefillAddressError { got: address.to_owned() };
        let trimmed = address.trim_end_matches('/');
        let authority = trimmed.strip_prefix("http://").ok_or_else(wrong)?;
        let is_authority = authority.parse::<axum::http::uri::Authority>().is_ok_and(|of| !of.host().is_empty());
        if !is_authority || authority.contains('@') {
            return Err(wrong());
        }
        let agent = Agent::config_builder().http_status_as_error(false).timeout_connect(Some(CONNECT)).build().into();
        Ok(PrefillServer { url: format!("{trimmed}/prefill"), agent, key, least })
    }

    /// Where prompts are posted.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// What the server has computed of a prompt, as bytes.
    ///
    /// # Errors
    /// Why there is nothing.
    pub(crate) fn fetch(&self, asked: &PrefillRequest<'_>) -> Result<Vec<u8>, String> {
        let body = json!({"model": asked.model, "tokens": asked.tokens, "cache_salt": asked.cache_salt}).to_string();
        let mut request = self.agent.post(&self.url).header("content-type", "application/json");
        if let Some(key) = &self.key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        let request = request.config().timeout_global(Some(asked.within)).build();
        let mut answered = request.send(body).map_err(|error| error.to_string())?;
        let status = answered.status();
        let body =
            answered.body_mut().with_config().limit(asked.most).read_to_vec().map_err(|error| error.to_string())?;
        if status == axum::http::StatusCode::OK {
            return Ok(body);
        }
        let text = String::from_utf8_lossy(&body);
        Err(format!("{status}: {}", text.chars().take(400).collect::<String>()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_servers() {
        for right in ["http://10.0.0.1:8080", "http://prefill/", "http://[::1]:80"] {
            assert!(PrefillServer::new(right, 1, None).is_ok(), "{right}");
        }
        for wrong in ["", "http://", "https://a:1", "a:1", "http://a:1/path", "http://user@a:1", "http://a b"] {
            assert!(PrefillServer::new(wrong, 1, None).is_err(), "{wrong}");
        }
        assert_eq!(PrefillServer::new("http://a:1/", 1, None).unwrap().url(), "http://a:1/prefill");
    }
}
