//! Every path that clients ask for, in one table: its fields, what reads its body, and what it answers.
//!
//! /openapi.json and [`crate::read_body`] are made from it; the router binds paths to what answers them.

use crate::encoders::{embeddings, rerank, score};
use crate::error::ApiError;
use crate::fields::FieldTable;
use crate::llamacpp::{adapters, completion, props, slots, tokenize};
use crate::models::ADAPTER_SCALE;
use crate::{anthropic, ollama, openai, prefill, responses};

/// A path with its method.
pub(crate) struct Endpoint {
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) body: Option<EndpointBody>,
    pub(crate) answer: EndpointResponse,
}

/// What a path takes.
pub(crate) struct EndpointBody {
    /// The forms that a body may have.
    pub(crate) forms: &'static [BodySchema],
    /// Reads one without its model, and says what changes nothing in it.
    pub(crate) check: Check,
}

/// Reads a body without its model.
pub(crate) type Check = fn(&[u8]) -> Result<Vec<String>, ApiError>;

/// A form of a body.
pub(crate) struct BodySchema {
    pub(crate) table: FieldTable,
    /// The fields that have to be there.
    pub(crate) needs: &'static [&'static str],
    /// The fields that are looked at; none is all. The others of the table change nothing, whatever they say.
    pub(crate) reads: Option<&'static [&'static str]>,
    /// Whether the body is a list of such objects.
    pub(crate) list: bool,
}

/// What a path answers, with the schema's name in [`crate::answers`].
#[derive(Clone, Copy)]
pub(crate) enum EndpointResponse {
    /// An object.
    Json(&'static str),
    /// An object, or server-sent events where `stream` is true.
    Events(&'static str),
    /// An object, or lines of JSON unless `stream` is false.
    Lines(&'static str),
    /// Figures as Prometheus reads them.
    Metrics,
    /// Bytes for another server.
    Bytes,
}

const fn get(path: &'static str, summary: &'static str, answer: EndpointResponse) -> Endpoint {
    Endpoint { method: "get", path, summary, body: None, answer }
}

const fn post(
    path: &'static str,
    summary: &'static str,
    forms: &'static [BodySchema],
    check: Check,
    answer: EndpointResponse,
) -> Endpoint {
    Endpoint { method: "post", path, summary, body: Some(EndpointBody { forms, check }), answer }
}

const fn form(table: FieldTable, needs: &'static [&'static str]) -> BodySchema {
    BodySchema { table, needs, reads: None, list: false }
}

const fn part(table: FieldTable, needs: &'static [&'static str], reads: &'static [&'static str]) -> BodySchema {
    BodySchema { table, needs, reads: Some(reads), list: false }
}

const fn list(table: FieldTable, needs: &'static [&'static str]) -> BodySchema {
    BodySchema { table, needs, reads: None, list: true }
}

/// What rendering looks at of a conversation.
const TALK: &[&str] = &[
    "model",
    "messages",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "functions",
    "function_call",
    "chat_template_kwargs",
    "reasoning_effort",
    "reasoning",
    "thinking",
    "enable_thinking",
    "think",
    "thinking_token_budget",
    "thinking_budget_tokens",
    "thinking_budget",
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

const CHAT: &[BodySchema] = &[form(openai::CHAT, &["messages"])];
const TEMPLATE: &[BodySchema] = &[part(openai::CHAT, &["messages"], TALK)];
const COMPLETIONS: &[BodySchema] = &[form(openai::completions::COMPLETIONS, &["prompt"])];
const RESPONSES: &[BodySchema] = &[form(responses::post::RESPONSES, &["input"])];
const INPUT_TOKENS: &[BodySchema] = &[part(responses::post::RESPONSES, &["input"], ITEMS)];
const EMBEDDINGS: &[BodySchema] = &[form(embeddings::EMBEDDINGS, &["input"])];
const RERANK: &[BodySchema] = &[form(rerank::RERANK, &["query", "documents"])];
const SCORE: &[BodySchema] = &[form(score::SCORE, &[])];
const MESSAGES: &[BodySchema] = &[form(anthropic::messages::MESSAGES, &["messages", "max_tokens"])];
const COUNT_TOKENS: &[BodySchema] = &[part(anthropic::messages::MESSAGES, &["messages"], COUNTED)];
const COMPLETION: &[BodySchema] = &[form(completion::COMPLETION, &["prompt"])];
const INFILL: &[BodySchema] = &[form(completion::INFILL, &["input_prefix", "input_suffix"])];
const TOKENIZE: &[BodySchema] = &[
    form(tokenize::TOKENIZE, &["content"]),
    form(tokenize::VLLM, &["prompt"]),
    part(tokenize::CONVERSATION, &["messages"], TALK),
];
const DETOKENIZE: &[BodySchema] = &[form(tokenize::DETOKENIZE, &["tokens"])];
const NAME: &[BodySchema] = &[form(props::NAME, &[])];
const PREFILL: &[BodySchema] = &[form(prefill::PREFILL, &["tokens"])];
const SLOT_FILE: &[BodySchema] = &[form(slots::FILE, &[])];
const ADAPTER_SCALES: &[BodySchema] = &[list(ADAPTER_SCALE, &["id"])];
const LOAD_ADAPTER: &[BodySchema] = &[form(adapters::LOAD, &["lora_name", "lora_path"])];
const UNLOAD_ADAPTER: &[BodySchema] = &[form(adapters::UNLOAD, &["lora_name"])];
const SHOW: &[BodySchema] = &[form(ollama::models::SHOW, &[])];
const PULL: &[BodySchema] = &[form(ollama::registry::PULL, &[])];
const OLLAMA_CHAT: &[BodySchema] = &[form(ollama::generate::CHAT, &[])];
const OLLAMA_TEXT: &[BodySchema] = &[form(ollama::generate::GENERATE, &[])];
const EMBED: &[BodySchema] = &[form(ollama::embed::EMBED, &["input"])];
const OLD_EMBED: &[BodySchema] = &[form(ollama::embed::OLD, &["prompt"])];

/// All of them. Paths under /v1 answer without it as well.
pub(crate) const ENDPOINTS: &[Endpoint] = &[
    get("/health", "Whether new requests are taken", EndpointResponse::Json("Status")),
    get("/health/live", "Whether the process answers", EndpointResponse::Json("Status")),
    get("/health/ready", "Whether new requests are taken", EndpointResponse::Json("Status")),
    get("/health/progress", "Whether requests that run get tokens", EndpointResponse::Json("Progress")),
    get("/metrics", "Figures for Prometheus, under vLLM's names", EndpointResponse::Metrics),
    get("/v1/models", "All models", EndpointResponse::Json("Models")),
    get("/v1/models/{id}", "A model", EndpointResponse::Json("Model")),
    post("/models/load", "Load a model", NAME, props::check_name, EndpointResponse::Json("Loaded")),
    post("/models/unload", "Unload a model", NAME, props::check_name, EndpointResponse::Json("Loaded")),
    post(
        "/v1/chat/completions",
        "Continue a conversation",
        CHAT,
        openai::chat::check,
        EndpointResponse::Events("ChatCompletion"),
    ),
    post(
        "/v1/completions",
        "Continue texts",
        COMPLETIONS,
        openai::completions::check,
        EndpointResponse::Events("Completion"),
    ),
    post(
        "/v1/responses",
        "Continue a conversation of items",
        RESPONSES,
        responses::post::check,
        EndpointResponse::Events("Response"),
    ),
    post(
        "/v1/responses/input_tokens",
        "Count its tokens",
        INPUT_TOKENS,
        responses::post::check_count,
        EndpointResponse::Json("InputTokens"),
    ),
    get("/v1/responses/{id}", "A response that was kept", EndpointResponse::Json("Response")),
    get("/v1/responses/{id}/input_items", "What it was an answer to", EndpointResponse::Json("InputItems")),
    Endpoint {
        method: "delete",
        path: "/v1/responses/{id}",
        summary: "Forget a response",
        body: None,
        answer: EndpointResponse::Json("Forgotten"),
    },
    Endpoint {
        method: "post",
        path: "/v1/responses/{id}/cancel",
        summary: "End a response that is computed in the background",
        body: None,
        answer: EndpointResponse::Json("Response"),
    },
    post("/v1/embeddings", "Vectors of texts", EMBEDDINGS, embeddings::check, EndpointResponse::Json("Embeddings")),
    post("/v1/rerank", "How well texts answer a query", RERANK, rerank::check, EndpointResponse::Json("Rerank")),
    post("/v1/score", "Scores of pairs of texts", SCORE, score::check, EndpointResponse::Json("Scores")),
    post(
        "/v1/messages",
        "Anthropic's messages",
        MESSAGES,
        anthropic::messages::check,
        EndpointResponse::Events("Message"),
    ),
    post(
        "/v1/messages/count_tokens",
        "Count their tokens",
        COUNT_TOKENS,
        anthropic::messages::check_count,
        EndpointResponse::Json("TokenCount"),
    ),
    post(
        "/completion",
        "llama.cpp's way to continue a text",
        COMPLETION,
        completion::check,
        EndpointResponse::Events("LlamaCompletions"),
    ),
    post(
        "/infill",
        "llama.cpp's way to fill a text in",
        INFILL,
        completion::check_infill,
        EndpointResponse::Events("LlamaCompletions"),
    ),
    post("/tokenize", "Text to token ids", TOKENIZE, tokenize::check, EndpointResponse::Json("Tokens")),
    post("/detokenize", "Token ids to text", DETOKENIZE, tokenize::check_ids, EndpointResponse::Json("Text")),
    post(
        "/apply-template",
        "The text that a conversation becomes",
        TEMPLATE,
        openai::chat::check_talk,
        EndpointResponse::Json("Prompt"),
    ),
    get("/props", "What llama.cpp's clients ask of a server", EndpointResponse::Json("Props")),
    get("/slots", "Places for sequences that run at once", EndpointResponse::Json("Slots")),
    post(
        "/slots/{id}",
        "Write what a slot names to a file, read it back, or forget it: ?action=save, restore or erase",
        SLOT_FILE,
        slots::check,
        EndpointResponse::Json("SlotAction"),
    ),
    post(
        "/prefill",
        "Compute a prompt for another server, which takes it into its cache",
        PREFILL,
        prefill::check,
        EndpointResponse::Bytes,
    ),
    get("/lora-adapters", "Adapters and the scales of requests that name none", EndpointResponse::Json("Adapters")),
    post(
        "/lora-adapters",
        "Change the scales of requests that name no adapters",
        ADAPTER_SCALES,
        adapters::check_scales,
        EndpointResponse::Json("Loaded"),
    ),
    post(
        "/v1/load_lora_adapter",
        "Load an adapter that requests name as their model",
        LOAD_ADAPTER,
        adapters::check_load,
        EndpointResponse::Json("Loaded"),
    ),
    post(
        "/v1/unload_lora_adapter",
        "Unload an adapter",
        UNLOAD_ADAPTER,
        adapters::check_unload,
        EndpointResponse::Json("Loaded"),
    ),
    get("/version", "The version of the server", EndpointResponse::Json("Version")),
    get("/api/version", "The version of ollama's interface", EndpointResponse::Json("Version")),
    get("/api/v0/models", "All models as LM Studio lists them", EndpointResponse::Json("LmStudioModels")),
    get("/api/v0/models/{id}", "A model as LM Studio shows it", EndpointResponse::Json("LmStudioModel")),
    get("/api/tags", "All models", EndpointResponse::Json("OllamaModels")),
    get("/api/ps", "Models that are loaded", EndpointResponse::Json("OllamaModels")),
    post("/api/show", "What a model is", SHOW, ollama::models::check, EndpointResponse::Json("OllamaModel")),
    post(
        "/api/pull",
        "Whether a model is there",
        PULL,
        ollama::registry::check,
        EndpointResponse::Lines("OllamaStatus"),
    ),
    post(
        "/api/chat",
        "ollama's conversations",
        OLLAMA_CHAT,
        ollama::generate::check_chat,
        EndpointResponse::Lines("OllamaChat"),
    ),
    post(
        "/api/generate",
        "ollama's way to continue a text",
        OLLAMA_TEXT,
        ollama::generate::check_generate,
        EndpointResponse::Lines("OllamaText"),
    ),
    post("/api/embed", "Vectors of texts", EMBED, ollama::embed::check, EndpointResponse::Json("OllamaVectors")),
    post(
        "/api/embeddings",
        "The vector of a text",
        OLD_EMBED,
        ollama::embed::check_old,
        EndpointResponse::Json("OllamaVector"),
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer_fields::ANSWER_FIELDS;
    use crate::fields::{FieldSpec, Treatment};

    #[test]
    fn tables_have_every_name_once_and_the_names_that_forms_speak_of() {
        for endpoint in ENDPOINTS {
            for form in endpoint.body.iter().flat_map(|body| body.forms) {
                let all: Vec<&FieldSpec> = form.table.iter().copied().flatten().collect();
                for (at, field) in all.iter().enumerate() {
                    assert!(all[..at].iter().all(|other| other.name != field.name), "{} {}", endpoint.path, field.name);
                }
                let has = |name: &&str| all.iter().any(|field| field.name == *name);
                assert!(form.needs.iter().all(has), "{} {:?}", endpoint.path, form.needs);
            }
        }
    }

    /// A new field of an answer is put where the others stand, or said here to change nothing that is said.
    #[test]
    fn fields_that_change_answers_are_known_for_every_path() {
        const HARMLESS: &[&str] = &[
            "model",
            "stream",
            "stream_options",
            "store",
            "background",
            "metadata",
            "include",
            "keep_alive",
            "echo",
            "logprobs",
            "top_logprobs",
            "n_probs",
            "return_token_ids",
            "return_tokens",
            "response_fields",
            "cache_salt",
            "cache_prompt",
            "id_slot",
            "t_max_predict_ms",
            "add_special_tokens",
            "parse_special",
            // These say how something is done that another field asks for.
            "xtc_threshold",
            "dynatemp_exponent",
            "mirostat_tau",
            "mirostat_eta",
            "dry_base",
            "dry_allowed_length",
            "dry_penalty_last_n",
            "dry_sequence_breakers",
        ];
        let answers = [
            "/v1/chat/completions",
            "/v1/completions",
            "/v1/responses",
            "/v1/messages",
            "/completion",
            "/infill",
            "/api/chat",
            "/api/generate",
        ];
        let mut seen = Vec::new();
        for endpoint in ENDPOINTS.iter().filter(|endpoint| answers.contains(&endpoint.path)) {
            let forms = endpoint.body.iter().flat_map(|body| body.forms);
            let honoured = forms.flat_map(|form| form.table.iter().copied().flatten());
            for field in honoured.filter(|field| matches!(field.treatment, Treatment::Honoured)) {
                let known = ANSWER_FIELDS.iter().any(|(name, _)| *name == field.name);
                let harmless = HARMLESS.contains(&field.name);
                assert!(known != harmless, "{} {}: in one of the two lists", endpoint.path, field.name);
                seen.push(field.name);
            }
        }
        for (name, _) in ANSWER_FIELDS {
            assert!(seen.contains(name), "{name} is honoured nowhere");
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
