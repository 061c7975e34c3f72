//! The fields of /v1/chat/completions.

use super::effort::EFFORT_SCHEMA;
use super::hints::HINTS;
use crate::fields::{FieldSpec, honoured, ignored, refused};
use crate::generate::{BUDGETS, SAMPLERS, SAMPLING};
use crate::grammar::FORMS;

/// Fields of a conversation.
const OWN: &[FieldSpec] = &[
    honoured("model", r#"{"type":"string"}"#),
    honoured("messages", r#"{"type":"array","minItems":1,"items":{"type":"object","required":["role"]}}"#),
    honoured("max_completion_tokens", r#"{"type":["integer","null"],"minimum":-1}"#),
    honoured("max_tokens", r#"{"type":["integer","null"],"minimum":-1}"#),
    honoured("n_predict", r#"{"type":["integer","null"],"minimum":-1}"#),
    honoured("stream", r#"{"type":["boolean","null"]}"#),
    honoured("stream_options", r#"{"type":["object","null"]}"#),
    honoured("logprobs", r#"{"type":["boolean","null"]}"#),
    honoured("top_logprobs", r#"{"type":["integer","null"],"minimum":0,"maximum":20}"#),
    honoured("tools", r#"{"type":["array","null"],"items":{"type":"object"}}"#),
    honoured("tool_choice", r#"{"anyOf":[{"type":["string","null"]},{"type":"object"}]}"#),
    honoured("parallel_tool_calls", r#"{"type":["boolean","null"]}"#),
    honoured("reasoning_effort", EFFORT_SCHEMA),
    honoured("reasoning", r#"{"type":["object","null"]}"#),
    honoured("thinking", r#"{"type":["object","null"],"required":["type"]}"#),
    honoured("enable_thinking", r#"{"type":["boolean","null"]}"#),
    honoured("think", r#"{"type":["boolean","string","null"]}"#),
    honoured("chat_template_kwargs", r#"{"type":["object","null"]}"#),
    honoured("add_generation_prompt", r#"{"type":["boolean","null"]}"#),
    honoured("continue_final_message", r#"{"type":["boolean","null"]}"#),
    honoured("documents", r#"{"type":["array","null"]}"#),
    honoured("return_token_ids", r#"{"type":["boolean","null"]}"#),
    honoured("functions", r#"{"type":["array","null"],"items":{"type":"object"}}"#),
    honoured("function_call", r#"{"anyOf":[{"type":["string","null"]},{"type":"object"}]}"#),
    refused("modalities", "only text is made", &["[\"text\"]", "[]"]),
    refused("echo", "a conversation is not part of its answer", &["false"]),
    refused("prompt_logprobs", "use /v1/completions with `echo` and `logprobs`", &[]),
];

/// All of them.
pub(crate) const CHAT: &[&[FieldSpec]] = &[OWN, HINTS, FORMS, BUDGETS, SAMPLING, SAMPLERS];

/// What `stream_options` may have.
pub(crate) const STREAM_OPTIONS: &[&[FieldSpec]] = &[&[
    honoured("include_usage", "{}"),
    ignored("include_obfuscation", "{}"),
    // Usage comes once, at the end.
    ignored("continuous_usage_stats", "{}"),
]];
