//! Every path that clients ask for, in one table: its fields, what reads its body, and what it answers.
//!
//! /openapi.json and [`crate::read_body`] are made from it; the router binds paths to what answers them.

use crate::error::ApiError;
use crate::fields::Table;
use crate::llamacpp::{completion, props, tokenize};
use crate::vectors::{embeddings, rerank, score};
use crate::{anthropic, ollama, openai, responses};

/// A path with its method.
pub(crate) struct Endpoint {
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) body: Option<Body>,
    pub(crate) answer: Answer,
}

/// What a path takes.
pub(crate) struct Body {
    /// The forms that a body may have.
    pub(crate) forms: &'static [Form],
    /// Reads one without its model, and says what changes nothing in it.
    pub(crate) check: Check,
}

/// Reads a body without its model.
pub(crate) type Check = fn(&[u8]) -> Result<Vec<String>, ApiError>;

/// A form of a body.
pub(crate) struct Form {
    pub(crate) table: Table,
    /// The fields that have to be there.
    pub(crate) needs: &'static [&'static str],
    /// The fields that are looked at; none is all. The others of the table change nothing, whatever they say.
    pub(crate) reads: Option<&'static [&'static str]>,
}

/// What a path answers, with the schema's name in [`crate::answers`].
#[derive(Clone, Copy)]
pub(crate) enum Answer {
    /// An object.
    Json(&'static str),
    /// An object, or server-sent events where `stream` is true.
    Events(&'static str),
    /// An object, or lines of JSON unless `stream` is false.
    Lines(&'static str),
    /// Figures as Prometheus reads them.
    Figures,
}

const fn get(path: &'static str, summary: &'static str, answer: Answer) -> Endpoint {
    Endpoint { method: "get", path, summary, body: None, answer }
}

const fn post(
    path: &'static str,
    summary: &'static str,
    forms: &'static [Form],
    check: Check,
    answer: Answer,
) -> Endpoint {
    Endpoint { method: "post", path, summary, body: Some(Body { forms, check }), answer }
}

const fn form(table: Table, needs: &'static [&'static str]) -> Form {
    Form { table, needs, reads: None }
}

const fn part(table: Table, needs: &'static [&'static str], reads: &'static [&'static str]) -> Form {
    Form { table, needs, reads: Some(reads) }
}

/// What rendering looks at of a conversation.
const TALK: &[&str] = &[
    "model",
    "messages",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "chat_template_kwargs",
    "reasoning_effort",
    "reasoning",
    "thinking_token_budget",
    "thinking_budget_tokens",
    "response_format",
    "structured_outputs",
    "guided_json",
    "guided_regex",
    "guided_choice",
    "guided_grammar",
    "grammar",
    "json_schema",
    "documents",
    "add_generation_prompt",
    "continue_final_message",
    "return_token_strs",
];

/// What counting looks at of a response's conversation.
const ITEMS: &[&str] = &[
    "model",
    "input",
    "instructions",
    "previous_response_id",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "text",
    "reasoning",
    "metadata",
];

/// What counting looks at of Anthropic's messages.
const COUNTED: &[&str] =
    &["model", "messages", "system", "tools", "tool_choice", "thinking", "output_config", "output_format"];

const CHAT: &[Form] = &[form(openai::CHAT, &["messages"])];
const TEMPLATE: &[Form] = &[part(openai::CHAT, &["messages"], TALK)];
const COMPLETIONS: &[Form] = &[form(openai::completions::COMPLETIONS, &["prompt"])];
const RESPONSES: &[Form] = &[form(responses::post::RESPONSES, &["input"])];
const INPUT_TOKENS: &[Form] = &[part(responses::post::RESPONSES, &["input"], ITEMS)];
const EMBEDDINGS: &[Form] = &[form(embeddings::EMBEDDINGS, &["input"])];
const RERANK: &[Form] = &[form(rerank::RERANK, &["query", "documents"])];
const SCORE: &[Form] = &[form(score::SCORE, &[])];
const MESSAGES: &[Form] = &[form(anthropic::messages::MESSAGES, &["messages", "max_tokens"])];
const COUNT_TOKENS: &[Form] = &[part(anthropic::messages::MESSAGES, &["messages"], COUNTED)];
const COMPLETION: &[Form] = &[form(completion::COMPLETION, &["prompt"])];
const INFILL: &[Form] = &[form(completion::INFILL, &["input_prefix", "input_suffix"])];
const TOKENIZE: &[Form] = &[
    form(tokenize::TOKENIZE, &["content"]),
    form(tokenize::VLLM, &["prompt"]),
    part(tokenize::CONVERSATION, &["messages"], TALK),
];
const DETOKENIZE: &[Form] = &[form(tokenize::DETOKENIZE, &["tokens"])];
const NAME: &[Form] = &[form(props::NAME, &[])];
const SHOW: &[Form] = &[form(ollama::models::SHOW, &[])];
const PULL: &[Form] = &[form(ollama::registry::PULL, &[])];
const OLLAMA_CHAT: &[Form] = &[form(ollama::generate::CHAT, &[])];
const OLLAMA_TEXT: &[Form] = &[form(ollama::generate::GENERATE, &[])];
const EMBED: &[Form] = &[form(ollama::embed::EMBED, &["input"])];
const OLD_EMBED: &[Form] = &[form(ollama::embed::OLD, &["prompt"])];

/// All of them. Paths under /v1 answer without it as well.
pub(crate) const ENDPOINTS: &[Endpoint] = &[
    get("/health", "Whether new requests are taken", Answer::Json("Status")),
    get("/health/live", "Whether the process answers", Answer::Json("Status")),
    get("/health/ready", "Whether new requests are taken", Answer::Json("Status")),
    get("/health/progress", "Whether requests that run get tokens", Answer::Json("Progress")),
    get("/metrics", "Figures for Prometheus, under vLLM's names", Answer::Figures),
    get("/v1/models", "All models", Answer::Json("Models")),
    get("/v1/models/{id}", "A model", Answer::Json("Model")),
    post("/models/load", "Load a model", NAME, props::check_name, Answer::Json("Loaded")),
    post("/models/unload", "Unload a model", NAME, props::check_name, Answer::Json("Loaded")),
    post(
        "/v1/chat/completions",
        "Continue a conversation",
        CHAT,
        openai::chat::check,
        Answer::Events("ChatCompletion"),
    ),
    post("/v1/completions", "Continue texts", COMPLETIONS, openai::completions::check, Answer::Events("Completion")),
    post(
        "/v1/responses",
        "Continue a conversation of items",
        RESPONSES,
        responses::post::check,
        Answer::Events("Response"),
    ),
    post(
        "/v1/responses/input_tokens",
        "Count its tokens",
        INPUT_TOKENS,
        responses::post::check_count,
        Answer::Json("InputTokens"),
    ),
    get("/v1/responses/{id}", "A response that was kept", Answer::Json("Response")),
    get("/v1/responses/{id}/input_items", "What it was an answer to", Answer::Json("InputItems")),
    Endpoint {
        method: "delete",
        path: "/v1/responses/{id}",
        summary: "Forget a response",
        body: None,
        answer: Answer::Json("Forgotten"),
    },
    Endpoint {
        method: "post",
        path: "/v1/responses/{id}/cancel",
        summary: "End a response that is computed in the background",
        body: None,
        answer: Answer::Json("Response"),
    },
    post("/v1/embeddings", "Vectors of texts", EMBEDDINGS, embeddings::check, Answer::Json("Embeddings")),
    post("/v1/rerank", "How well texts answer a query", RERANK, rerank::check, Answer::Json("Rerank")),
    post("/v1/score", "Scores of pairs of texts", SCORE, score::check, Answer::Json("Scores")),
    post("/v1/messages", "Anthropic's messages", MESSAGES, anthropic::messages::check, Answer::Events("Message")),
    post(
        "/v1/messages/count_tokens",
        "Count their tokens",
        COUNT_TOKENS,
        anthropic::messages::check_count,
        Answer::Json("TokenCount"),
    ),
    post(
        "/completion",
        "llama.cpp's way to continue a text",
        COMPLETION,
        completion::check,
        Answer::Events("LlamaCompletion"),
    ),
    post(
        "/infill",
        "llama.cpp's way to fill a text in",
        INFILL,
        completion::check_infill,
        Answer::Events("LlamaCompletion"),
    ),
    post("/tokenize", "Text to token ids", TOKENIZE, tokenize::check, Answer::Json("Tokens")),
    post("/detokenize", "Token ids to text", DETOKENIZE, tokenize::check_ids, Answer::Json("Text")),
    post(
        "/apply-template",
        "The text that a conversation becomes",
        TEMPLATE,
        openai::chat::check_talk,
        Answer::Json("Prompt"),
    ),
    get("/props", "What llama.cpp's clients ask of a server", Answer::Json("Props")),
    get("/slots", "Places for sequences that run at once", Answer::Json("Slots")),
    get("/lora-adapters", "Adapters: there are none", Answer::Json("Adapters")),
    get("/version", "The version of the server", Answer::Json("Version")),
    get("/api/version", "The version of the server", Answer::Json("Version")),
    get("/api/tags", "All models", Answer::Json("OllamaModels")),
    get("/api/ps", "Models that are loaded", Answer::Json("OllamaModels")),
    post("/api/show", "What a model is", SHOW, ollama::models::check, Answer::Json("OllamaModel")),
    post("/api/pull", "Whether a model is there", PULL, ollama::registry::check, Answer::Lines("OllamaStatus")),
    post("/api/chat", "ollama's conversations", OLLAMA_CHAT, ollama::generate::check_chat, Answer::Lines("OllamaChat")),
    post(
        "/api/generate",
        "ollama's way to continue a text",
        OLLAMA_TEXT,
        ollama::generate::check_generate,
        Answer::Lines("OllamaText"),
    ),
    post("/api/embed", "Vectors of texts", EMBED, ollama::embed::check, Answer::Json("OllamaVectors")),
    post("/api/embeddings", "The vector of a text", OLD_EMBED, ollama::embed::check_old, Answer::Json("OllamaVector")),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::Field;

    #[test]
    fn tables_have_every_name_once_and_the_names_that_forms_speak_of() {
        for endpoint in ENDPOINTS {
            for form in endpoint.body.iter().flat_map(|body| body.forms) {
                let all: Vec<&Field> = form.table.iter().copied().flatten().collect();
                for (at, field) in all.iter().enumerate() {
                    assert!(all[..at].iter().all(|other| other.name != field.name), "{} {}", endpoint.path, field.name);
                }
                let has = |name: &&str| all.iter().any(|field| field.name == *name);
                assert!(form.needs.iter().all(has), "{} {:?}", endpoint.path, form.needs);
            }
        }
    }

    #[test]
    fn what_a_form_does_not_read_changes_nothing_and_what_it_reads_does() {
        // A value that no field takes: whoever looks at it refuses it.
        let check = |path: &str, body: &str| {
            let endpoint = ENDPOINTS.iter().find(|endpoint| endpoint.path == path).unwrap();
            (endpoint.body.as_ref().unwrap().check)(body.as_bytes())
        };
        let messages = r#""messages":[{"role":"user","content":"a"}]"#;
        assert_eq!(check("/apply-template", &format!("{{{messages},\"n\":[[]]}}")).unwrap(), ["n"]);
        assert!(check("/apply-template", &format!("{{{messages},\"tools\":\"x\"}}")).is_err());
        assert!(check("/v1/chat/completions", &format!("{{{messages},\"n\":[[]]}}")).is_err());
        assert_eq!(check("/v1/messages/count_tokens", &format!("{{{messages},\"stream\":3}}")).unwrap(), ["stream"]);
        assert_eq!(check("/v1/responses/input_tokens", r#"{"input":"a","top_p":"x"}"#).unwrap(), ["top_p"]);
    }
}
