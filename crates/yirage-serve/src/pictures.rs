//! Pictures in conversations: parts of messages in the neutral form, and the files that they are.
//!
//! A part is `{"type": "image", "data": BASE64}` until its file is read; templates see it without its data. What is no
//! `data:` URL is refused: nothing is fetched for a client.

use crate::error::ApiError;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// The part of a picture whose file is this in base64.
pub(crate) fn of_base64(data: &str) -> Value {
    json!({"type": "image", "data": data})
}

/// The part of a picture at a `data:` URL.
///
/// # Errors
/// Any other URL, by its place.
pub(crate) fn of_url(place: &str, url: &str) -> Result<Value, ApiError> {
    let data = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    data.map(|(_, data)| of_base64(data)).ok_or_else(|| {
        let why = "pictures are not fetched; send the file itself as data:image/png;base64,...";
        ApiError::unsupported(place, why)
    })
}

/// The parts of pictures in a message.
fn of_message(message: &Value) -> impl Iterator<Item = &Value> {
    message["content"].as_array().into_iter().flatten().filter(|part| part["type"] == "image")
}

/// The files of all pictures, in order.
///
/// # Errors
/// What is no base64, by its message.
pub(crate) fn files(messages: &[Value]) -> Result<Vec<Vec<u8>>, ApiError> {
    let mut files = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        for part in of_message(message) {
            let wrong = |e: base64::DecodeError| {
                let place = format!("messages[{at}].content");
                ApiError::field(place.clone(), format!("`{place}`: a picture that is no base64: {e}"))
            };
            files.push(STANDARD.decode(part["data"].as_str().unwrap_or_default()).map_err(wrong)?);
        }
    }
    Ok(files)
}

/// The messages as templates see them, where there are pictures.
pub(crate) fn without_data(messages: &[Value]) -> Option<Vec<Value>> {
    if messages.iter().all(|message| of_message(message).next().is_none()) {
        return None;
    }
    let shown = |part: &Value| if part["type"] == "image" { json!({"type": "image"}) } else { part.clone() };
    let one = |message: &Value| {
        let parts = message["content"].as_array().map(|parts| parts.iter().map(shown).collect::<Vec<Value>>());
        let mut other = serde_json::Map::new();
        for (key, value) in message.as_object().into_iter().flatten().filter(|(key, _)| *key != "content") {
            other.insert(key.clone(), value.clone());
        }
        other.insert("content".into(), parts.map_or_else(|| message["content"].clone(), Value::from));
        Value::Object(other)
    };
    Some(messages.iter().map(one).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_files_in_order_and_templates_see_their_places() {
        let url = |data: &str| of_url("p", &format!("data:image/png;base64,{data}")).unwrap();
        let messages = [
            json!({"role": "system", "content": "s"}),
            json!({"role": "user", "content": [url("AQI="), {"type": "text", "text": "a"}, url("Aw==")]}),
        ];
        assert_eq!(files(&messages).unwrap(), [vec![1, 2], vec![3]]);
        let place = json!({"type": "image"});
        let content = json!([place, {"type": "text", "text": "a"}, place]);
        let shown = without_data(&messages).unwrap();
        assert_eq!(shown, [messages[0].clone(), json!({"role": "user", "content": content})]);
        assert_eq!(without_data(&messages[..1]), None);
    }

    #[test]
    fn what_would_be_fetched_and_what_is_no_base64_is_refused() {
        for url in ["https://example.org/a.png", "file:///etc/passwd", "data:image/png,abc", ""] {
            let error = of_url("messages[0].content[1]", url).unwrap_err();
            assert_eq!(
                (error.param.as_deref(), error.code),
                (Some("messages[0].content[1]"), Some("unsupported_parameter"))
            );
            assert!(error.message.contains("data:image/png;base64"), "{}", error.message);
        }
        let error = files(&[json!({"role": "user", "content": [of_base64("%")]})]).unwrap_err();
        assert_eq!(error.param.as_deref(), Some("messages[0].content"));
    }
}
