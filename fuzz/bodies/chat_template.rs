//! Any text as a chat template: compiling and rendering end in text or a typed error. Shared by the fuzz target and the
//! test that replays its corpus.

use yirage_model::chat::{ChatInputs, ChatTemplate};

/// Renders a short conversation with the template `data`.
pub(crate) fn run(data: &[u8]) {
    let Ok(source) = std::str::from_utf8(data) else { return };
    let messages = [
        serde_json::json!({"role": "system", "content": "be brief"}),
        serde_json::json!({"role": "user", "content": "hi"}),
    ];
    if let Ok(template) = ChatTemplate::new("fuzz", source) {
        let _rendered = template.render(&ChatInputs::new(&messages));
    }
}
