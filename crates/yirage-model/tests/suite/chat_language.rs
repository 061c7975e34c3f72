//! The language of chat templates against renderings by Python's jinja2, written by `golden/make_chat_language.py`.

use serde_json::Value as Json;
use yirage_model::chat::{ChatError, ChatInputs, ChatTemplate};

#[test]
fn every_case_renders_as_the_reference_engine_does() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/chat_language.json");
    let golden: Json = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let messages = golden["messages"].as_array().unwrap();
    let mut wrong = Vec::new();
    for case in golden["cases"].as_array().unwrap() {
        let source = case["source"].as_str().unwrap();
        let found = ChatTemplate::new("case", source).and_then(|template| template.render(&ChatInputs::new(messages)));
        let agrees = match (&found, case["rendered"].as_str()) {
            (Ok(found), Some(wanted)) => found.text == wanted,
            (Err(ChatError::Broken { .. }), _) => false,
            (found, wanted) => found.is_err() && wanted.is_none(),
        };
        if !agrees {
            let found = found.map(|found| found.text);
            wrong.push(format!("{source}\n  wanted {:?}\n  found  {found:?}", case["rendered"]));
        }
    }
    assert!(wrong.is_empty(), "{} cases differ:\n{}", wrong.len(), wrong.join("\n"));
}
