//! Fields of any of the protocols that change what an answer says.
//!
//! Where a path does not have one of them, leaving it out would give another answer than was asked for, so it is refused: a
//! client that sends `stop` where the word is `stop_sequences` would hear of it by its answers alone. Which path has which
//! is said in the tables of the paths; what changes nothing in an answer stands in neither.

use serde_json::Value;

/// The fields, with the values, as JSON, that ask for nothing.
pub(crate) const ANSWER_FIELDS: &[(&str, &[&str])] = &[
    // How tokens are chosen.
    ("temperature", &[]),
    ("top_p", &["1", "1.0"]),
    ("top_k", &["0", "-1"]),
    ("min_p", &["0", "0.0"]),
    ("seed", &["-1"]),
    ("presence_penalty", &["0", "0.0"]),
    ("frequency_penalty", &["0", "0.0"]),
    ("repetition_penalty", &["1", "1.0"]),
    ("repeat_penalty", &["1", "1.0"]),
    ("logit_bias", &["{}", "[]"]),
    ("allowed_token_ids", &["[]"]),
    ("samplers", &["[]"]),
    ("typical_p", &["1", "1.0"]),
    ("top_n_sigma", &["-1", "0", "0.0"]),
    ("xtc_probability", &["0", "0.0"]),
    ("dynatemp_range", &["0", "0.0"]),
    ("mirostat", &["0"]),
    ("dry_multiplier", &["0", "0.0"]),
    ("lora", &["[]"]),
    // Where it ends, and how many there are.
    ("stop", &["[]", "\"\""]),
    ("stop_sequences", &["[]"]),
    ("stop_token_ids", &["[]"]),
    ("ignore_eos", &["false"]),
    ("min_tokens", &["0"]),
    ("max_tokens", &["-1"]),
    ("max_completion_tokens", &["-1"]),
    ("max_output_tokens", &["-1"]),
    ("n_predict", &["-1"]),
    ("n", &["1"]),
    ("n_cmpl", &["1"]),
    ("best_of", &["0", "1"]),
    ("n_indent", &["0"]),
    // Its form.
    ("response_format", &[r#"{"type":"text"}"#]),
    ("structured_outputs", &[]),
    ("guided_json", &[]),
    ("guided_regex", &[]),
    ("guided_choice", &[]),
    ("guided_grammar", &[]),
    ("grammar", &["\"\""]),
    ("json_schema", &[]),
    ("format", &["\"\""]),
    ("output_config", &["{}"]),
    ("output_format", &[]),
    ("text", &["{}", r#"{"format":{"type":"text"}}"#]),
    // What it is an answer to.
    ("messages", &["[]"]),
    ("input", &["\"\"", "[]"]),
    ("prompt", &["\"\""]),
    ("suffix", &["\"\""]),
    ("input_prefix", &["\"\""]),
    ("input_suffix", &["\"\""]),
    ("input_extra", &["[]"]),
    ("system", &["\"\"", "[]"]),
    ("instructions", &["\"\""]),
    ("previous_response_id", &["\"\""]),
    ("documents", &["[]"]),
    ("add_generation_prompt", &["true"]),
    ("continue_final_message", &["false"]),
    ("raw", &["false"]),
    ("options", &["{}"]),
    // Tools.
    ("tools", &["[]"]),
    ("tool_choice", &["\"auto\""]),
    ("parallel_tool_calls", &["true"]),
    ("functions", &["[]"]),
    ("function_call", &["\"auto\"", "\"none\""]),
    // Thoughts.
    ("think", &[]),
    ("thinking", &["{}"]),
    ("enable_thinking", &[]),
    ("reasoning", &["{}"]),
    ("reasoning_effort", &[]),
    ("thinking_token_budget", &["-1"]),
    ("thinking_budget_tokens", &["-1"]),
    ("thinking_budget", &["-1"]),
    ("chat_template_kwargs", &["{}"]),
];

/// Whether a field with this value would change an answer where it is known.
pub(crate) fn changes_answers(name: &str, value: &Value) -> bool {
    let Some((_, nothing)) = ANSWER_FIELDS.iter().find(|(known, _)| *known == name) else { return false };
    !value.is_null() && !nothing.contains(&value.to_string().as_str())
}
