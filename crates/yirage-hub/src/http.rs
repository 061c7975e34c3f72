//! Requests to the hub: redirects, authorisation, patience.
//!
//! Redirects are followed here and not by the client, for two reasons: the token goes to the hub alone, and the hub
//! tells a file's checksum in the redirect itself.

use crate::limits::{MAX_ANSWER_BYTES, MAX_REDIRECTS};
use crate::pace::{DownloadLimits, TransferMonitor};
use crate::{DownloadProgress, HubEnv, HubError, Retry};
use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;
use ureq::http::header::{AUTHORIZATION, LOCATION, RANGE, RETRY_AFTER};
use ureq::http::{HeaderMap, Response};
use ureq::tls::{RootCerts, TlsConfig, TlsProvider};
use ureq::{Agent, Body};

/// What to ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FetchMode {
    /// Headers only; a redirect to another host is the answer, not followed.
    Headers,
    /// The bytes from this one on.
    BytesFrom(u64),
}

/// A client for one hub.
#[derive(Debug, Clone)]
pub(crate) struct Http {
    agent: Agent,
    endpoint: String,
    authorization: Option<String>,
    retry: Retry,
    patience: DownloadLimits,
}

/// Why one try failed.
enum HttpFailure {
    /// It will fail again.
    Final(HubError),
    /// It may go better: what happened, and how long to wait if the server said so.
    Passing { status: Option<u16>, reason: String, wait: Option<Duration> },
}

impl Http {
    pub(crate) fn new(env: &HubEnv) -> Self {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = TlsConfig::builder()
            .provider(TlsProvider::Rustls)
            .unversioned_rustls_crypto_provider(provider)
            .root_certs(RootCerts::PlatformVerifier)
            .build();
        let proxy = if env.use_proxies { ureq::Proxy::try_from_env() } else { None };
        let agent = Agent::config_builder()
            .tls_config(tls)
            .proxy(proxy)
            .user_agent(concat!("yirage/", env!("CARGO_PKG_VERSION")))
            .accept_encoding("identity")
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_resolve(Some(env.connect_timeout))
            .timeout_connect(Some(env.connect_timeout))
            .timeout_recv_response(Some(env.silence_timeout))
            .timeout_per_read(Some(env.silence_timeout))
            .build()
            .new_agent();
        let authorization = env.token.as_ref().map(|token| token.header());
        Self { agent, endpoint: env.endpoint.clone(), authorization, retry: env.retry, patience: env.patience }
    }

    /// The hub's address.
    pub(crate) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// When to stop trying.
    pub(crate) fn retry(&self) -> Retry {
        self.retry
    }

    /// A clock for one answer or one file.
    pub(crate) fn pace(&self) -> TransferMonitor {
        TransferMonitor::new(self.patience)
    }

    /// A small answer as text.
    pub(crate) fn text(&self, url: &str, progress: &dyn DownloadProgress) -> Result<String, HubError> {
        let mut pace = self.pace();
        let mut reader = self.ask(url, FetchMode::BytesFrom(0), &pace, progress)?.into_body().into_reader();
        pace.connected();
        let wrong = |reason: String| HubError::Protocol { url: url.to_owned(), reason };
        let (mut bytes, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
        loop {
            match reader.read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => bytes.extend_from_slice(&buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(wrong(error.to_string())),
            }
            if bytes.len() as u64 > MAX_ANSWER_BYTES {
                return Err(wrong(format!("the answer is longer than {MAX_ANSWER_BYTES} bytes")));
            }
            // The deadline alone: a short answer is no measure of speed.
            pace.check(url)?;
        }
        String::from_utf8(bytes).map_err(|error| wrong(error.to_string()))
    }

    /// Asks until there is an answer: 2xx, 416, or for [`FetchMode::Headers`] a redirect to another host.
    pub(crate) fn ask(
        &self,
        url: &str,
        ask: FetchMode,
        pace: &TransferMonitor,
        progress: &dyn DownloadProgress,
    ) -> Result<Response<Body>, HubError> {
        if origin(&self.endpoint).is_none() {
            return Err(HubError::Endpoint { endpoint: self.endpoint.clone() });
        }
        let mut delay = self.retry.first_delay;
        for attempt in 1.. {
            let (status, reason, wait) = match self.follow(url, ask) {
                Ok(answer) => return Ok(answer),
                Err(HttpFailure::Final(error)) => return Err(error),
                Err(HttpFailure::Passing { status, reason, wait }) => (status, reason, wait),
            };
            let url = url.to_owned();
            let wait = wait.unwrap_or(delay);
            match status {
                Some(status) if wait > self.retry.max_delay => return Err(HubError::Busy { url, status, wait }),
                _ if attempt < self.retry.attempts => {}
                Some(status) => return Err(HubError::Status { url, status, attempts: attempt }),
                None => return Err(HubError::Broken { url, done_bytes: 0, attempts: attempt, reason }),
            }
            pace.check(&url)?;
            progress.note(&format!("{reason}; trying again in {} s", wait.as_secs_f32()));
            std::thread::sleep(wait);
            delay = (delay * 2).min(self.retry.max_delay);
        }
        unreachable!("the loop ends by returning")
    }

    fn follow(&self, url: &str, ask: FetchMode) -> Result<Response<Body>, HttpFailure> {
        let mut here = url.to_owned();
        for _ in 0..=MAX_REDIRECTS {
            let answer = self.once(&here, ask)?;
            let status = answer.status().as_u16();
            match status {
                200..=299 | 416 => return Ok(answer),
                301 | 302 | 303 | 307 | 308 => {
                    let next = redirect(&here, answer.headers()).map_err(|reason| protocol(&here, reason))?;
                    if ask == FetchMode::Headers && origin(&next) != origin(&here) {
                        return Ok(answer);
                    }
                    here = next;
                }
                401 | 403 => {
                    let token_sent = self.authorization.is_some() && self.is_hub(&here);
                    return Err(HttpFailure::Final(HubError::Refused { url: url.to_owned(), status, token_sent }));
                }
                404 | 410 => return Err(HttpFailure::Final(HubError::NotFound { url: url.to_owned() })),
                408 | 425 | 429 | 500 | 502 | 503 | 504 => {
                    let wait = header(answer.headers(), RETRY_AFTER.as_str()).and_then(|text| text.trim().parse().ok());
                    let reason = format!("{}: answer {status}", origin(&here).unwrap_or_default());
                    return Err(HttpFailure::Passing {
                        status: Some(status),
                        reason,
                        wait: wait.map(Duration::from_secs),
                    });
                }
                _ => return Err(HttpFailure::Final(HubError::Status { url: url.to_owned(), status, attempts: 1 })),
            }
        }
        Err(protocol(url, format!("more than {MAX_REDIRECTS} redirects")))
    }

    fn once(&self, url: &str, ask: FetchMode) -> Result<Response<Body>, HttpFailure> {
        let mut request = match ask {
            FetchMode::Headers => self.agent.head(url),
            FetchMode::BytesFrom(_) => self.agent.get(url),
        };
        if let FetchMode::BytesFrom(start @ 1..) = ask {
            request = request.header(RANGE, format!("bytes={start}-"));
        }
        if let Some(authorization) = self.authorization.as_ref().filter(|_| self.is_hub(url)) {
            request = request.header(AUTHORIZATION, authorization);
        }
        request.call().map_err(|error| transport_failure(url, &error))
    }

    fn is_hub(&self, url: &str) -> bool {
        origin(url).is_some() && origin(url) == origin(&self.endpoint)
    }
}

fn protocol(url: &str, reason: String) -> HttpFailure {
    HttpFailure::Final(HubError::Protocol { url: url.to_owned(), reason })
}

/// A connection that broke may come back; one that never came to be will not at once, and the caller has other routes.
fn transport_failure(url: &str, error: &ureq::Error) -> HttpFailure {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, TimedOut, UnexpectedEof, WouldBlock};
    let broke = match error {
        ureq::Error::Io(error) => {
            let kinds = [BrokenPipe, ConnectionAborted, ConnectionReset, TimedOut, UnexpectedEof, WouldBlock];
            kinds.contains(&error.kind())
        }
        ureq::Error::Timeout(which) => !matches!(which, ureq::Timeout::Resolve | ureq::Timeout::Connect),
        ureq::Error::Protocol(_) => true,
        _ => false,
    };
    let reason = error.to_string();
    if broke {
        return HttpFailure::Passing { status: None, reason, wait: None };
    }
    let host = origin(url).unwrap_or_else(|| url.to_owned());
    HttpFailure::Final(HubError::Unreachable { host, reason })
}

/// A header as text.
pub(crate) fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Scheme and authority in lower case, without the scheme's own port.
fn origin(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next().filter(|authority| !authority.is_empty())?;
    let (scheme, authority) = (scheme.to_ascii_lowercase(), authority.to_ascii_lowercase());
    let own_port = match scheme.as_str() {
        "https" => ":443",
        "http" => ":80",
        _ => return None,
    };
    let authority = authority.strip_suffix(own_port).unwrap_or(&authority);
    Some(format!("{scheme}://{authority}"))
}

/// Where a redirect leads.
fn redirect(from: &str, headers: &HeaderMap) -> Result<String, String> {
    let location = header(headers, LOCATION.as_str()).ok_or("a redirect without a place to go")?;
    let base = origin(from).ok_or("a redirect from nowhere")?;
    let next = if location.starts_with("//") {
        let scheme = base.split("//").next().unwrap_or_default();
        format!("{scheme}{location}")
    } else if location.contains("://") {
        location.to_owned()
    } else if location.starts_with('/') {
        format!("{base}{location}")
    } else {
        let path = from.split(['?', '#']).next().unwrap_or(from);
        let folder = path.rfind('/').filter(|end| *end >= base.len()).map_or("", |end| &path[base.len()..end]);
        format!("{base}{folder}/{location}")
    };
    match origin(&next) {
        None => Err(format!("a redirect to `{location}`, which is no web address")),
        Some(to) if base.starts_with("https:") && !to.starts_with("https:") => {
            Err(format!("a redirect from an encrypted to an open connection, {to}"))
        }
        Some(_) => Ok(next),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(from: &str, location: &str) -> Result<String, String> {
        let mut headers = HeaderMap::new();
        headers.insert(LOCATION, location.parse().unwrap());
        redirect(from, &headers)
    }

    #[test]
    fn origins() {
        assert_eq!(origin("HTTPS://A.test:443/x"), origin("https://a.TEST?y"));
        assert_ne!(origin("http://a.test"), origin("https://a.test"));
        assert_ne!(origin("http://a.test:8080"), origin("http://a.test"));
        assert_ne!(origin("https://hub.test@evil.test/x"), origin("https://hub.test/x"));
        assert_eq!(origin("file:///x"), None);
        assert_eq!(origin("ftp://x"), None);
    }

    #[test]
    fn redirects_in_every_form() {
        let from = "https://hub.test/o/r/resolve/main/f?download=true";
        assert_eq!(to(from, "https://cdn.test/x").unwrap(), "https://cdn.test/x");
        assert_eq!(to(from, "//cdn.test/x").unwrap(), "https://cdn.test/x");
        assert_eq!(to(from, "/p/q").unwrap(), "https://hub.test/p/q");
        assert_eq!(to(from, "g").unwrap(), "https://hub.test/o/r/resolve/main/g");
        assert!(to(from, "http://cdn.test/x").unwrap_err().contains("open connection"));
        assert!(to(from, "file:///etc/passwd").unwrap_err().contains("no web address"));
    }
}
