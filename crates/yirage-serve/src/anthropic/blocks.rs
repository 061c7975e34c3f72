//! Blocks of content: the fields that they may have, and the text or the picture that they stand for in a conversation.
//!
//! No template has a place for documents and results of searches within a message, so they are written in the tags that their
//! makers recommend for documents in prompts. What is neither a text nor a picture (PDF, files kept elsewhere) is refused: an
//! answer about a document that the model never saw would be made up.

use crate::error::ApiError;
use crate::fields::{FieldSpec, FieldTable, Fields, honoured, ignored, wrong};
use crate::pictures;
use crate::tools::named;
use serde_json::{Value, json};

/// What every block may have.
pub(super) const ANY: &[FieldSpec] = &[honoured("type", "{}"), ignored("cache_control", "{}")];

/// What stands in a conversation of tools that only its makers' servers run, and of tools that are found only when they are
/// looked for: here they do not run, and all tools are known.
const ELSEWHERE: &[&str] = &[
    "server_tool_use",
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result",
    "tool_search_tool_result",
    "tool_reference",
    "mcp_tool_use",
    "mcp_tool_result",
    "mcp_tool_listing",
    "advisor_tool_result",
    "browser_state",
    "tool_addition",
    "tool_removal",
    "fallback",
    "container_upload",
];

/// Whether a block is one of those; its type then joins `ignored`.
pub(super) fn is_elsewhere(place: &str, block: &Value, ignored: &mut Vec<String>) -> bool {
    let kind = block.get("type").and_then(Value::as_str).filter(|kind| ELSEWHERE.contains(kind));
    ignored.extend(kind.map(|kind| named(place, kind)));
    kind.is_some()
}

/// The fields of all kinds: one that another kind honours changes nothing here.
pub(super) const BLOCK: FieldTable = &[
    ANY,
    &[
        honoured("text", "{}"),
        ignored("citations", "{}"),
        honoured("thinking", "{}"),
        // Thoughts are signed by nobody here, and no signature is checked.
        ignored("signature", "{}"),
        ignored("data", "{}"),
        honoured("id", "{}"),
        honoured("name", "{}"),
        honoured("input", "{}"),
        ignored("caller", "{}"),
        honoured("tool_use_id", "{}"),
        honoured("content", "{}"),
        ignored("is_error", "{}"),
        honoured("source", "{}"),
        honoured("title", "{}"),
        honoured("context", "{}"),
        ignored("encrypted_content", "{}"),
        ignored("tool_changes", "{}"),
    ],
];

const SOURCE: FieldTable =
    &[&[honoured("type", "{}"), honoured("media_type", "{}"), honoured("data", "{}"), honoured("content", "{}")]];

const PICTURE_SOURCE: FieldTable = &[&[
    honoured("type", "{}"),
    honoured("data", "{}"),
    honoured("url", "{}"),
    // The file says it itself.
    ignored("media_type", "{}"),
]];

/// A text, or blocks that are texts.
///
/// # Errors
/// What is neither.
pub(super) fn texts(place: &str, value: Value, ignored: &mut Vec<String>) -> Result<Vec<String>, ApiError> {
    let blocks = match value {
        Value::String(text) => return Ok(vec![text]),
        Value::Array(blocks) => blocks,
        other => return Err(wrong(place, "a string or blocks of text", &other)),
    };
    let mut all = Vec::new();
    for (at, block) in blocks.into_iter().enumerate() {
        if is_elsewhere(place, &block, ignored) {
            continue;
        }
        let place = format!("{place}[{at}]");
        let mut block = Fields::within(block, BLOCK, &place)?;
        all.push(match block.text("type")?.as_deref() {
            Some("text") => {
                let text = block.text("text")?;
                block.need("text", text)?
            }
            Some("document") => document(&mut block, ignored)?,
            Some("search_result") => search_result(&mut block, ignored)?,
            _ => return Err(ApiError::unsupported(&place, "only text, and documents of text, are understood")),
        });
        ignored.extend(block.finish_part()?);
    }
    Ok(all)
}

/// Takes a block that is a document.
///
/// # Errors
/// One that is no text; fields that make no sense.
pub(super) fn document(block: &mut Fields, ignored: &mut Vec<String>) -> Result<String, ApiError> {
    asks_for_no_citations(block);
    let source = block.fields("source", SOURCE)?;
    let mut source = block.need("source", source)?;
    let kind = source.text("type")?;
    let text = match source.need("type", kind)?.as_str() {
        "text" => {
            let media = source.text("media_type")?;
            if media.is_some_and(|media| media != "text/plain") {
                return Err(source.error("media_type", "expected text/plain"));
            }
            let data = source.text("data")?;
            source.need("data", data)?
        }
        "content" => {
            let (place, content) = (source.at("content"), source.take("content"));
            texts(&place, source.need("content", content)?, ignored)?.join("\n")
        }
        _ => {
            let why = "only documents of text are understood; send what it says as a text";
            return Err(ApiError::unsupported(source.place(), why));
        }
    };
    ignored.extend(source.finish_part()?);
    let (title, context) = (block.text("title")?, block.text("context")?);
    Ok(tagged("document", &[("source", title), ("context", context), ("document_content", Some(text))]))
}

/// Takes a block that is a picture: the part of it.
///
/// # Errors
/// One that would have to be fetched; fields that make no sense.
pub(super) fn picture(block: &mut Fields, ignored: &mut Vec<String>) -> Result<Value, ApiError> {
    let source = block.fields("source", PICTURE_SOURCE)?;
    let mut source = block.need("source", source)?;
    let kind = source.text("type")?;
    let part = match source.need("type", kind)?.as_str() {
        "base64" => {
            let data = source.text("data")?;
            pictures::of_base64(&source.need("data", data)?)
        }
        "url" => {
            let url = source.text("url")?;
            let url = source.need("url", url)?;
            pictures::of_url(&source.at("url"), &url)?
        }
        _ => return Err(source.error("type", "expected base64, or url with a `data:` URL")),
    };
    ignored.extend(source.finish_part()?);
    Ok(part)
}

/// Takes a block that is the result of a search.
///
/// # Errors
/// Content that is no text; fields that are missing.
pub(super) fn search_result(block: &mut Fields, ignored: &mut Vec<String>) -> Result<String, ApiError> {
    asks_for_no_citations(block);
    let (place, source) = (block.at("source"), block.take("source"));
    let source = match block.need("source", source)? {
        Value::String(source) => source,
        other => return Err(wrong(&place, "a string", &other)),
    };
    let title = block.text("title")?;
    let title = block.need("title", title)?;
    let (place, content) = (block.at("content"), block.take("content"));
    let text = texts(&place, block.need("content", content)?, ignored)?.join("\n");
    Ok(tagged("search_result", &[("source", Some(source)), ("title", Some(title)), ("content", Some(text))]))
}

/// What names no citations asks for nothing.
fn asks_for_no_citations(block: &mut Fields) {
    block.leave_out("citations", &json!({"enabled": false}));
    block.leave_out("citations", &json!({}));
}

fn tagged(name: &str, parts: &[(&str, Option<String>)]) -> String {
    let inner: String = parts
        .iter()
        .filter_map(|(part, text)| text.as_ref().map(|text| format!("<{part}>\n{text}\n</{part}>\n")))
        .collect();
    format!("<{name}>\n{inner}</{name}>")
}
