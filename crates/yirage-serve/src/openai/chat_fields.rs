//! The fields of /v1/chat/completions.

use crate::fields::{Field, honoured, ignored, refused};
use crate::generate::{BUDGETS, SAMPLING};
use crate::grammar::FORMS;

/// Fields of a conversation.
const OWN: &[Field] = &[
    honoured("model", r#"{"type":"string"}"#),
    honoured("messages", r#"{"type":"array","minItems":1,"items":{"type":"object","required":["role"]}}"#),
    honoured("max_completion_tokens", r#"{"type":["integer","null"],"minimum":1}"#),
    honoured("max_tokens", r#"{"type":["integer","null"],"minimum":1}"#),
    honoured("stream", r#"{"type":["boolean","null"]}"#),
    honoured("stream_options", r#"{"type":["object","null"]}"#),
    honoured("logprobs", r#"{"type":["boolean","null"]}"#),
    honoured("top_logprobs", r#"{"type":["integer","null"],"minimum":0,"maximum":20}"#),
    honoured("tools", r#"{"type":["array","null"],"items":{"type":"object"}}"#),
    honoured("tool_choice", r#"{"anyOf":[{"type":["string","null"]},{"type":"object"}]}"#),
    honoured("parallel_tool_calls", r#"{"type":["boolean","null"]}"#),
    honoured("reasoning_effort", r#"{"type":["string","null"]}"#),
    honoured("reasoning", r#"{"type":["object","null"]}"#),
    honoured("chat_template_kwargs", r#"{"type":["object","null"]}"#),
    honoured("add_generation_prompt", r#"{"type":["boolean","null"]}"#),
    honoured("continue_final_message", r#"{"type":["boolean","null"]}"#),
    honoured("documents", r#"{"type":["array","null"]}"#),
    honoured("return_token_ids", r#"{"type":["boolean","null"]}"#),
    ignored("user", r#"{"type":["string","null"]}"#),
    ignored("safety_identifier", r#"{"type":["string","null"]}"#),
    ignored("prompt_cache_key", r#"{"type":["string","null"]}"#),
    ignored("prompt_cache_retention", r#"{"type":["string","null"]}"#),
    ignored("prompt_cache_options", r#"{"type":["object","null"]}"#),
    ignored("metadata", r#"{"type":["object","null"]}"#),
    ignored("prediction", r#"{"type":["object","null"]}"#),
    ignored("service_tier", r#"{"type":["string","null"]}"#),
    refused("store", "conversations are not kept; use /v1/responses", &["false"]),
    refused("modalities", "only text is made", &["[\"text\"]"]),
    refused("audio", "only text is made", &[]),
    refused("web_search_options", "this server opens no connection", &[]),
    refused("moderation", "nothing is moderated", &[]),
    refused("verbosity", "say it in the prompt", &["\"medium\""]),
    refused("functions", "it was replaced by `tools`", &["[]"]),
    refused("function_call", "it was replaced by `tool_choice`", &["\"none\"", "\"auto\""]),
    refused("echo", "a conversation is not part of its answer", &["false"]),
    refused("prompt_logprobs", "use /v1/completions with `echo` and `logprobs`", &[]),
];

/// All of them.
pub(crate) const CHAT: &[&[Field]] = &[OWN, FORMS, BUDGETS, SAMPLING];

/// What `stream_options` may have.
pub(crate) const STREAM_OPTIONS: &[&[Field]] = &[&[
    honoured("include_usage", "{}"),
    ignored("include_obfuscation", "{}"),
    refused("continuous_usage_stats", "usage comes once, at the end", &["false"]),
]];
