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

/// An object as a line of a stream. Some clients end lines at the separators of Unicode, which JSON may write as they are:
/// they are escaped, and nothing but a text can have them.
pub(crate) fn line(value: &Value) -> String {
    const SEPARATORS: [(char, &str); 3] = [('\u{85}', "\\u0085"), ('\u{2028}', "\\u2028"), ('\u{2029}', "\\u2029")];
    let mut line = value.to_string();
    for (separator, escaped) in SEPARATORS {
        if line.contains(separator) {
            line = line.replace(separator, escaped);
        }
    }
    line
}

/// Characters of a name in a header, and names in it; how many more there are stands behind them.
const MAX_NAME: usize = 96;
const MAX_NAMES: usize = 48;

/// The header that names fields of a request which change nothing here.
pub(crate) const IGNORED: &str = "x-yirage-ignored";

/// Says which fields changed nothing. The names are a client's own, so what a header cannot hold is shown as `?`, and no
/// header grows beyond what proxies take.
pub(crate) fn with_ignored(mut response: Response, names: &[String]) -> Response {
    let usual = |c: char| if c.is_ascii_graphic() && c != ',' { c } else { '?' };
    let mut names: Vec<String> = names.iter().map(|name| name.chars().take(MAX_NAME).map(usual).collect()).collect();
    names.sort();
    names.dedup();
    let more = names.len().saturating_sub(MAX_NAMES);
    names.truncate(MAX_NAMES);
    names.extend((more > 0).then(|| format!("+{more}")));
    if !names.is_empty()
        && let Ok(value) = HeaderValue::from_str(&names.join(","))
    {
        response.headers_mut().insert(IGNORED, value);
    }
    response
}

/// What else headers say of an answer.
#[derive(Clone, Debug)]
pub(crate) struct AnswerNotices {
    /// The model that answers, where another name was asked for.
    pub(crate) model: Option<String>,
    /// The new tokens that the context leaves, where more were asked for.
    pub(crate) clipped: Option<u32>,
    /// Why calls that have to come are bare JSON and not in the model's own form, where they are.
    pub(crate) calls: Option<String>,
}

/// The header with the name of the model that answers for another.
const MODEL: &str = "x-yirage-model";

/// The header with the number that a field was cut down to.
const CLIPPED: &str = "x-yirage-clipped";

/// The header that says in which form calls come, where it is not the model's own, and why.
const CALLS: &str = "x-yirage-calls";

/// Characters of a reason in a header.
const MAX_REASON: usize = 256;

impl AnswerNotices {
    /// Says it on a response.
    pub(crate) fn on(self, mut response: Response) -> Response {
        let clipped = self.clipped.map(|most| format!("max_tokens={most}"));
        let usual = |c: char| if c.is_ascii_graphic() || c == ' ' { c } else { '?' };
        let calls =
            self.calls.map(|why| format!("json; {}", why.chars().take(MAX_REASON).map(usual).collect::<String>()));
        for (name, value) in [(MODEL, self.model), (CLIPPED, clipped), (CALLS, calls)] {
            if let Some(value) = value.and_then(|value| HeaderValue::from_str(&value).ok()) {
                response.headers_mut().insert(name, value);
            }
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_can_be_said() {
        let header = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let response = with_ignored(json(&Value::Null), &names);
            response.headers().get(IGNORED).map(|value| value.to_str().unwrap().to_owned())
        };
        assert_eq!(header(&[]), None);
        assert_eq!(header(&["b", "a", "b"]).unwrap(), "a,b");
        assert_eq!(header(&["a,b", "h\u{e9}\n", "\u{1f600}"]).unwrap(), "?,a?b,h??");
        assert_eq!(header(&[&"x".repeat(1000)]).unwrap().len(), MAX_NAME);
        let many: Vec<String> = (0..1000).map(|i| format!("{i:04}")).collect();
        let many = with_ignored(json(&Value::Null), &many);
        assert!(many.headers()[IGNORED].to_str().unwrap().ends_with("0047,+952"));
    }

    #[test]
    fn a_line_is_one_line_for_every_client() {
        for text in ["a\u{2028}b", "\u{2029}", "\u{85}", "a\nb\rc", "\u{b}\u{c}\u{1c}\u{1d}\u{1e}", "\\\u{2028}\""] {
            let value = serde_json::json!({text: [text, {"x": text}]});
            let line = line(&value);
            assert!(!line.contains(|c: char| c.is_control() || "\u{2028}\u{2029}".contains(c)), "{line:?}");
            assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), value);
        }
    }
}
