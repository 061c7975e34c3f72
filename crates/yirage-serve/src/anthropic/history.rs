//! Messages and tools of Anthropic's interface, as templates take them.

use super::blocks::{ANY, BLOCK, document, is_elsewhere, picture, search_result, texts};
use crate::conversation::{of_parts, of_texts};
use crate::error::ApiError;
use crate::fields::{FieldTable, Fields, honoured, ignored, wrong};
use crate::tools::{Tool, ToolUse, check_count, named};
use serde_json::{Value, json};

const MESSAGE: FieldTable = &[&[honoured("role", "{}"), honoured("content", "{}")]];

const TOOL: FieldTable = &[
    ANY,
    &[
        honoured("name", "{}"),
        honoured("description", "{}"),
        honoured("input_schema", "{}"),
        honoured("strict", "{}"),
        ignored("input_examples", "{}"),
        // All tools are told at once, and by the model alone.
        ignored("defer_loading", "{}"),
        ignored("eager_input_streaming", "{}"),
        ignored("allowed_callers", "{}"),
    ],
];

const CHOICE: FieldTable =
    &[&[honoured("type", "{}"), honoured("name", "{}"), honoured("disable_parallel_tool_use", "{}")]];

/// The text of the system, in front of the messages.
///
/// # Errors
/// What is no text.
pub(super) fn system(value: Value, ignored: &mut Vec<String>) -> Result<Value, ApiError> {
    Ok(json!({"role": "system", "content": of_texts(texts("system", value, ignored)?)}))
}

/// Messages in the neutral form: results of tools become messages of their own.
///
/// # Errors
/// A message that makes no sense, by its place.
pub(super) fn messages(list: Vec<Value>, ignored: &mut Vec<String>) -> Result<Vec<Value>, ApiError> {
    if list.is_empty() {
        return Err(ApiError::field("messages", "`messages` is empty; send at least one"));
    }
    let mut out = Vec::new();
    for (at, message) in list.into_iter().enumerate() {
        let mut message = Fields::within(message, MESSAGE, &format!("messages[{at}]"))?;
        let role = message.text("role")?.unwrap_or_default();
        if !matches!(role.as_str(), "user" | "assistant" | "system") {
            return Err(message.error("role", "expected user, assistant or system"));
        }
        let (place, content) = (message.at("content"), message.take("content"));
        match message.need("content", content)? {
            Value::String(text) => out.push(json!({"role": role, "content": text})),
            Value::Array(blocks) => {
                let read = MessageBlocks::of(&place, blocks, ignored)?;
                if let Some(summary) = &read.summary {
                    // It stands for all that was said before it.
                    out.clear();
                    out.push(json!({"role": "user", "content": summary}));
                }
                out.extend(read.messages(&role));
            }
            other => return Err(wrong(&place, "a string or blocks", &other)),
        }
        message.finish_into(ignored)?;
    }
    Ok(out)
}

/// What the blocks of a message hold.
#[derive(Default)]
struct MessageBlocks {
    /// What stands for all that came before.
    summary: Option<String>,
    /// Texts, and parts of pictures.
    said: Vec<Value>,
    thought: String,
    calls: Vec<Value>,
    results: Vec<Value>,
}

impl MessageBlocks {
    fn of(place: &str, blocks: Vec<Value>, ignored: &mut Vec<String>) -> Result<MessageBlocks, ApiError> {
        let mut read = MessageBlocks::default();
        for (at, block) in blocks.into_iter().enumerate() {
            if is_elsewhere(place, &block, ignored) {
                continue;
            }
            let mut block = Fields::within(block, BLOCK, &format!("{place}[{at}]"))?;
            // The signature that answers carry here.
            block.leave_out("signature", &json!(""));
            block.leave_out("is_error", &json!(false));
            read.block(&mut block, ignored)?;
            ignored.extend(block.finish_part()?);
        }
        Ok(read)
    }

    fn block(&mut self, block: &mut Fields, ignored: &mut Vec<String>) -> Result<(), ApiError> {
        let need = |block: &mut Fields, name: &str| {
            let text = block.text(name)?;
            block.need(name, text)
        };
        match need(block, "type")?.as_str() {
            "text" => self.said.push(need(block, "text")?.into()),
            "image" => self.said.push(picture(block, ignored)?),
            "document" => self.said.push(document(block, ignored)?.into()),
            "search_result" => self.said.push(search_result(block, ignored)?.into()),
            // Without a summary nothing was shortened.
            "compaction" => {
                if let Some(summary) = block.text("content")?.filter(|summary| !summary.is_empty()) {
                    *self = MessageBlocks { summary: Some(summary), ..MessageBlocks::default() };
                }
            }
            "thinking" => self.thought.push_str(&need(block, "thinking")?),
            // Nobody but its makers can read it; its data is named among what changes nothing.
            "redacted_thinking" => {}
            "tool_use" => {
                let input = block.object("input")?.unwrap_or_default();
                let function = json!({"name": need(block, "name")?, "arguments": input});
                self.calls.push(json!({"id": need(block, "id")?, "type": "function", "function": function}));
            }
            "tool_result" => {
                let place = block.at("content");
                let content = block.take("content").map(|value| texts(&place, value, ignored)).transpose()?;
                let id = need(block, "tool_use_id")?;
                let content = of_texts(content.unwrap_or_default());
                self.results.push(json!({"role": "tool", "tool_call_id": id, "content": content}));
            }
            _ => {
                let why = "only text, pictures, documents of text, thoughts and tools are understood";
                return Err(ApiError::unsupported(block.place(), why));
            }
        }
        Ok(())
    }

    fn messages(self, role: &str) -> Vec<Value> {
        let mut out = self.results;
        let nothing = self.said.is_empty() && self.calls.is_empty();
        let only_results = !out.is_empty() && nothing;
        let only_summary = self.summary.is_some() && nothing && self.thought.is_empty();
        if !only_results && !only_summary {
            let only_calls = self.said.is_empty() && !self.calls.is_empty();
            let content = if only_calls { Value::Null } else { of_parts(self.said) };
            let mut message = json!({"role": role, "content": content});
            if !self.calls.is_empty() {
                message["tool_calls"] = self.calls.into();
            }
            if !self.thought.is_empty() {
                message["reasoning_content"] = self.thought.into();
            }
            out.push(message);
        }
        out
    }
}

/// The tools, and whether they are to be called.
///
/// # Errors
/// A tool or choice that makes no sense.
pub(super) fn tools(
    list: Vec<Value>,
    choice: Option<Value>,
    ignored: &mut Vec<String>,
) -> Result<Option<ToolUse>, ApiError> {
    let mut tools = Vec::new();
    for (at, tool) in list.into_iter().enumerate() {
        let place = format!("tools[{at}]");
        // Tools of other types have schemas that only their makers' models know, and many run only on their servers.
        if let Some(kind) = tool.get("type").and_then(Value::as_str).filter(|kind| *kind != "custom") {
            ignored.push(named("tools", kind));
            continue;
        }
        let mut tool = Fields::within(tool, TOOL, &place)?;
        tool.take("type");
        let (name, description) = (tool.text("name")?.unwrap_or_default(), tool.text("description")?);
        let schema = tool.object("input_schema")?;
        let schema = Value::Object(tool.need("input_schema", schema)?);
        let strict = tool.switch("strict")?.unwrap_or(false);
        tool.finish_into(ignored)?;
        tools.push(Tool::new(&place, &name, description.as_deref(), schema, strict)?);
    }
    check_count(tools.len())?;
    let Some(choice) = choice else { return ToolUse::new(tools, None, true, ignored) };
    let mut choice = Fields::within(choice, CHOICE, "tool_choice")?;
    let parallel = !choice.switch("disable_parallel_tool_use")?.unwrap_or(false);
    let wanted = match choice.text("type")?.as_deref() {
        Some("auto") => json!("auto"),
        Some("none") => json!("none"),
        Some("any") => json!("required"),
        Some("tool") => json!({"type": "function", "function": {"name": choice.text("name")?}}),
        _ => return Err(choice.error("type", "expected auto, any, tool or none")),
    };
    choice.finish_into(ignored)?;
    ToolUse::new(tools, Some(wanted), parallel, ignored)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_become_messages_of_their_own() {
        let sent = json!([
            {"role": "user", "content": "add"},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": ""}, {"type": "text", "text": "well"},
                {"type": "tool_use", "id": "c", "name": "f", "input": {"x": 1}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "2"}]},
                {"type": "text", "text": "go on"}]},
        ]);
        let function = json!({"name": "f", "arguments": {"x": 1}});
        let call = json!({"id": "c", "type": "function", "function": function});
        let wanted = [
            json!({"role": "user", "content": "add"}),
            json!({"role": "assistant", "content": "well", "tool_calls": [call], "reasoning_content": "hm"}),
            json!({"role": "tool", "tool_call_id": "c", "content": "2"}),
            json!({"role": "user", "content": "go on"}),
        ];
        assert_eq!(messages(sent.as_array().unwrap().clone(), &mut Vec::new()).unwrap(), wanted);
        for wrong in [
            json!([]),
            json!([{"role": "king", "content": "x"}]),
            json!([{"role": "user", "content": [{"type": "image"}]}]),
            json!([{"role": "user", "content": [{"type": "text", "text": "x", "citation": []}]}]),
            json!([{"role": "user", "content": [{"type": "document", "source": {"type": "base64",
                "media_type": "application/pdf", "data": "JVBERi0="}}]}]),
            json!([{"role": "user", "content": [{"type": "document", "source": {"type": "url", "url": "https://a/b.pdf"}}]}]),
            json!([{"role": "user", "content": [{"type": "document", "source": {"type": "file", "file_id": "file_1"}}]}]),
            json!([{"role": "user", "content": [{"type": "document", "source": {"type": "content",
                "content": [{"type": "image", "source": {}}]}}]}]),
            json!([{"role": "user", "content": [{"type": "document"}]}]),
            json!([{"role": "user", "content": [{"type": "search_result", "title": "t", "content": []}]}]),
        ] {
            assert!(messages(wrong.as_array().unwrap().clone(), &mut Vec::new()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn documents_and_results_of_searches_are_text() {
        let text = |text: &str| json!({"type": "text", "text": text});
        let source = json!({"type": "text", "media_type": "text/plain", "data": "one"});
        let parts = json!({"type": "content", "content": [text("two"), text("three")]});
        let found = json!({"type": "search_result", "source": "https://a", "title": "A", "content": [text("x"), text("y")],
            "citations": {"enabled": true}});
        let mut ignored = Vec::new();
        let sent = json!([
            {"role": "user", "content": [
                {"type": "document", "source": source, "title": "T", "context": "C", "citations": {"enabled": false}},
                {"type": "document", "source": parts, "cache_control": {"type": "ephemeral"}},
                {"type": "document", "source": {"type": "content", "content": "four"}},
                text("?")]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": [found,
                {"type": "document", "source": source}, {"type": "browser_state", "tabs": []}]}]},
        ]);
        let read = messages(sent.as_array().unwrap().clone(), &mut ignored).unwrap();
        let document = |inner: &str| format!("<document>\n{inner}</document>");
        let wanted = [
            document(
                "<source>\nT\n</source>\n<context>\nC\n</context>\n<document_content>\none\n</document_content>\n",
            ),
            document("<document_content>\ntwo\nthree\n</document_content>\n"),
            document("<document_content>\nfour\n</document_content>\n"),
            "?".to_owned(),
        ];
        assert_eq!(read[0]["content"], of_texts(wanted.to_vec()));
        let wanted = [
            "<search_result>\n<source>\nhttps://a\n</source>\n<title>\nA\n</title>\n<content>\nx\ny\n</content>\n</search_result>",
            "<document>\n<document_content>\none\n</document_content>\n</document>",
        ];
        assert_eq!(read[2]["content"], of_texts(wanted.map(str::to_owned).to_vec()));
        let named = [
            "messages.content.cache_control",
            "messages.content.content.citations",
            "messages.content.content.browser_state",
        ];
        assert_eq!(ignored, named);
    }

    #[test]
    fn a_summary_stands_for_what_came_before_it() {
        let of = |content: Value| {
            let sent = json!([
                {"role": "user", "content": "old"},
                {"role": "assistant", "content": content},
                {"role": "user", "content": "new"},
            ]);
            messages(sent.as_array().unwrap().clone(), &mut Vec::new()).unwrap()
        };
        let summary = json!({"type": "compaction", "content": "before"});
        let before = json!({"type": "text", "text": "lost"});
        let behind = json!({"type": "text", "text": "well"});
        let (old, new) = (json!({"role": "user", "content": "old"}), json!({"role": "user", "content": "new"}));
        let said = json!({"role": "assistant", "content": "well"});
        let short = json!({"role": "user", "content": "before"});
        assert_eq!(of(json!([before, summary, behind])), [short.clone(), said.clone(), new.clone()]);
        assert_eq!(of(json!([summary])), [short, new.clone()]);
        // One that failed shortens nothing.
        assert_eq!(of(json!([{"type": "compaction", "content": null}, behind])), [old, said, new]);
    }

    #[test]
    fn blocks_stay_apart_and_a_call_alone_has_no_content() {
        let sent = json!([
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c"}]},
        ]);
        let read = messages(sent.as_array().unwrap().clone(), &mut Vec::new()).unwrap();
        assert_eq!(read[0]["content"], json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]));
        assert_eq!((&read[1]["content"], &read[2]["content"]), (&Value::Null, &json!("")));
    }

    /// Case 1: templates know OpenAI's form and order.
    #[test]
    fn tools_are_shown_in_the_order_of_openai() {
        let tool = r#"{"input_schema": {"type": "object", "properties": {"z": {}, "a": {}}}, "description": "d", "name": "f"}"#;
        let used = tools(vec![serde_json::from_str(tool).unwrap()], None, &mut Vec::new()).unwrap().unwrap();
        let wanted = r#"{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object","properties":{"z":{},"a":{}}}}}"#;
        assert_eq!(used.tools[0].shown.to_string(), wanted);
    }

    #[test]
    fn what_changes_nothing_in_a_block_is_named() {
        let mut ignored = Vec::new();
        let mark = json!({"type": "ephemeral"});
        let sent = json!([
            {"role": "user", "content": [{"type": "text", "text": "a", "cache_control": mark}]},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "abc"}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "is_error": true,
                "content": [{"type": "text", "text": "b", "cache_control": mark}]}]},
        ]);
        messages(sent.as_array().unwrap().clone(), &mut ignored).unwrap();
        system(json!([{"type": "text", "text": "s", "cache_control": mark}]), &mut ignored).unwrap();
        let tool = json!({"name": "f", "input_schema": {"type": "object"}, "cache_control": mark});
        tools(vec![tool], None, &mut ignored).unwrap();
        let wanted = [
            "messages.content.cache_control",
            "messages.content.signature",
            "messages.content.content.cache_control",
            "messages.content.is_error",
            "system.cache_control",
            "tools.cache_control",
        ];
        assert_eq!(ignored, wanted);
    }
}
