//! Any bytes as a whole request: tools, a schema and messages together. What the protocol takes is compiled, the schema of
//! each tool as well, and answers are walked byte by byte: each ends, is cut off, or was refused before. Shared by the fuzz
//! target and the test that replays its corpus.

use serde_json::{Value, json};
use yirage_serve::{BodyVerdict, Walked, read_body, walk_form};

/// Reads the request and walks its forms.
pub(crate) fn run(data: &[u8]) {
    let said = read_body("/v1/chat/completions", data);
    let Ok(body) = serde_json::from_slice::<Value>(data) else {
        assert!(matches!(said, Some(BodyVerdict::Refused { .. })));
        return;
    };
    let mut schemas = vec![body["response_format"]["json_schema"]["schema"].clone()];
    let tools = body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    schemas.extend(tools.iter().take(4).map(|tool| tool["function"]["parameters"].clone()));
    for schema in schemas.into_iter().filter(Value::is_object) {
        match walk_form(json!({"guided_json": schema}).to_string().as_bytes(), 0..3, 300) {
            Err(BodyVerdict::Refused { status, error }) => {
                let message = error["error"]["message"].as_str();
                assert!(status == 400 && message.is_some_and(|message| !message.is_empty()), "{status}: {error}");
                assert!(!error.to_string().contains("please report this"), "{error}");
            }
            Err(BodyVerdict::Taken { .. }) => {}
            Ok(walked) => {
                for one in walked {
                    match one {
                        Walked::Ended(text) => assert!(serde_json::from_slice::<Value>(&text).is_ok(), "{schema}"),
                        Walked::Cut(_) => {}
                        Walked::Stuck(text) => panic!("{schema}: stuck behind {}", String::from_utf8_lossy(&text)),
                    }
                }
            }
        }
    }
}
