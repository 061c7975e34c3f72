//! Any text as a chat template: parsing and rendering end in text or a typed error, within the budgets of a rendering.
//! Shared by the fuzz target and the test that replays its corpus.

use serde_json::json;
use yirage_model::chat::{ChatError, ChatInputs, ChatTemplate, MAX_BYTES};

/// Renders a conversation with tools, with the template `data`.
pub(crate) fn run(data: &[u8]) {
    let Ok(source) = std::str::from_utf8(data) else { return };
    let call =
        json!({"id": "c1", "type": "function", "function": {"name": "add", "arguments": {"a": 1, "b": [2.5, null]}}});
    let messages = [
        json!({"role": "system", "content": "be brief"}),
        json!({"role": "user", "content": "hi “ä”"}),
        json!({"role": "assistant", "content": null, "tool_calls": [call]}),
        json!({"role": "tool", "content": [{"type": "text", "text": "3\n\n4"}], "tool_call_id": "c1"}),
    ];
    let tools = [json!({"type": "function", "function": {"name": "add", "parameters": {"type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "array", "items": {"enum": ["x", "y"]}}}}}})];
    let inputs = ChatInputs { tools: Some(&tools), bos_token: "<s>", eos_token: "</s>", ..ChatInputs::new(&messages) };
    match ChatTemplate::new("fuzz", source).and_then(|template| template.render(&inputs)) {
        Ok(rendered) => assert!(rendered.text.len() <= MAX_BYTES),
        Err(ChatError::Broken { detail, .. }) => panic!("{detail}"),
        Err(_) => {}
    }
}
