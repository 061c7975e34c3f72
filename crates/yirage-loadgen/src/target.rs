//! A server, and what is asked of it.

use crate::LoadError;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// Which of OpenAI's interfaces answers are asked of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompletionApi {
    /// Continue a text: `/v1/completions`.
    Completions,
    /// Answer a message: `/v1/chat/completions`.
    Chat,
}

/// What a request says.
#[derive(Clone, PartialEq, Debug)]
pub enum LoadPrompt {
    /// As text.
    Text(String),
    /// As token ids, which only [`CompletionApi::Completions`] takes.
    Ids(Vec<u32>),
}

/// One request to come.
#[derive(Clone, PartialEq, Debug)]
pub struct LoadRequest {
    /// What it says.
    pub prompt: LoadPrompt,
    /// Tokens of the prompt as far as they are known; the server's own count is taken where it says one.
    pub input_len: Option<usize>,
    /// Tokens of the answer, at most.
    pub output_len: u32,
}

/// A server and the way to ask it.
#[derive(Clone, Debug)]
pub struct LoadTarget {
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Before every path, without a slash at the end.
    pub(crate) prefix: String,
    /// Which interface is asked.
    pub interface: CompletionApi,
    /// Path of the interface behind the address.
    pub endpoint: String,
    /// The model's name at the server.
    pub model: String,
    /// Further headers, a key for example.
    pub headers: Vec<(String, String)>,
    /// Whether answers go on past tokens that end a text.
    pub ignore_eos: bool,
    /// Further fields of every request; they replace those of the same name.
    pub extra: Map<String, Value>,
    /// How long one request may take.
    pub request_time: Option<Duration>,
}

impl CompletionApi {
    /// Its usual path.
    pub fn path(self) -> &'static str {
        match self {
            CompletionApi::Completions => "/v1/completions",
            CompletionApi::Chat => "/v1/chat/completions",
        }
    }
}

impl LoadTarget {
    /// The server at `url`, `http://HOST[:PORT][/PATH]`.
    ///
    /// # Errors
    /// [`LoadError::Url`].
    pub fn new(url: &str, interface: CompletionApi) -> Result<LoadTarget, LoadError> {
        let wrong = |why| LoadError::Url { url: url.to_owned(), why };
        if url.starts_with("https://") {
            return Err(wrong(
                "only plain http is spoken here; ask behind what ends TLS, or on the server's own machine",
            ));
        }
        let rest = url.strip_prefix("http://").ok_or_else(|| wrong("expected http://HOST:PORT"))?;
        let (authority, prefix) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        let digits = |text: &str| text.parse::<u16>().map_err(|_| wrong("a port is a number from 0 to 65535"));
        let (host, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, "")) => (host, 80),
            Some((host, port)) => {
                (host, digits(port.strip_prefix(':').ok_or_else(|| wrong("behind ] only :PORT may stand"))?)?)
            }
            None => match authority.split_once(':') {
                Some((host, port)) => (host, digits(port)?),
                None => (authority, 80),
            },
        };
        let plain = |c: char| c.is_ascii_graphic() && !matches!(c, '@' | '?' | '#' | '[' | ']');
        if host.is_empty() || !host.chars().all(plain) || !prefix.chars().all(plain) {
            return Err(wrong("expected http://HOST:PORT, without a user, a question mark or a hash"));
        }
        Ok(LoadTarget {
            host: host.to_owned(),
            port,
            prefix: prefix.trim_end_matches('/').to_owned(),
            interface,
            endpoint: interface.path().to_owned(),
            model: String::new(),
            headers: Vec::new(),
            ignore_eos: false,
            extra: Map::new(),
            request_time: None,
        })
    }

    /// Where it is.
    pub fn address(&self) -> String {
        format!("http://{}{}", self.authority(), self.prefix)
    }

    pub(crate) fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        format!("{host}:{}", self.port)
    }

    /// The body of a request: a stream with usage at its end, the likeliest tokens unless [`LoadTarget::extra`] says otherwise.
    pub(crate) fn body(&self, sample: &LoadRequest) -> Value {
        let mut body = json!({
            "model": self.model,
            "max_tokens": sample.output_len,
            "temperature": 0.0,
            "stream": true,
            "stream_options": {"include_usage": true},
        });
        match (self.interface, &sample.prompt) {
            (CompletionApi::Completions, LoadPrompt::Text(text)) => body["prompt"] = text.as_str().into(),
            (CompletionApi::Completions, LoadPrompt::Ids(ids)) => body["prompt"] = ids.as_slice().into(),
            // There is no such message; a server refuses it by name.
            (CompletionApi::Chat, LoadPrompt::Ids(ids)) => body["messages"] = json!([{"role": "user", "content": ids}]),
            (CompletionApi::Chat, LoadPrompt::Text(text)) => {
                body["messages"] = json!([{"role": "user", "content": text}])
            }
        }
        if self.ignore_eos {
            body["ignore_eos"] = true.into();
        }
        for (name, value) in &self.extra {
            body[name.as_str()] = value.clone();
        }
        body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        let of = |url| {
            LoadTarget::new(url, CompletionApi::Chat).map(|t| (t.host.clone(), t.port, t.prefix.clone(), t.address()))
        };
        let own = |host: &str, port, prefix: &str, address: &str| {
            (host.to_owned(), port, prefix.to_owned(), address.to_owned())
        };
        assert_eq!(of("http://a.b:81/x/").unwrap(), own("a.b", 81, "/x", "http://a.b:81/x"));
        assert_eq!(of("http://a").unwrap(), own("a", 80, "", "http://a:80"));
        assert_eq!(of("http://[::1]:8080").unwrap(), own("::1", 8080, "", "http://[::1]:8080"));
        for url in
            ["", "a:80", "https://a", "http://", "http://a:b", "http://u@a", "http://a b", "http://[::1]x", "ftp://a"]
        {
            assert!(of(url).is_err(), "{url:?}");
        }
    }

    #[test]
    fn extra_fields_replace_others() {
        let mut target = LoadTarget::new("http://a", CompletionApi::Completions).unwrap();
        target.extra.insert("temperature".into(), 1.5.into());
        target.ignore_eos = true;
        let sample = LoadRequest { prompt: LoadPrompt::Ids(vec![1, 2]), input_len: Some(2), output_len: 7 };
        let body = target.body(&sample);
        assert_eq!(
            (&body["temperature"], &body["prompt"], &body["max_tokens"]),
            (&json!(1.5), &json!([1, 2]), &json!(7))
        );
        assert_eq!(body["ignore_eos"], true);
    }
}
