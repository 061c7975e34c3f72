//! What this server answers, as JSON schemas by name: /openapi.json has them, and tests hold real answers to them.
//!
//! Fields that a request has to ask for are among the properties and not required.

use crate::error::ApiError;
use serde_json::Value;

/// The protocol whose form errors of a path have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ErrorForm {
    OpenAi,
    Anthropic,
    Ollama,
}

impl ErrorForm {
    /// Of a path.
    pub(crate) fn of(path: &str) -> ErrorForm {
        if path.starts_with("/v1/messages") || path.starts_with("/messages") {
            ErrorForm::Anthropic
        } else if path.starts_with("/api/") {
            ErrorForm::Ollama
        } else {
            ErrorForm::OpenAi
        }
    }

    /// An error in this form.
    pub(crate) fn object(self, error: &ApiError) -> Value {
        match self {
            ErrorForm::OpenAi => error.openai(),
            ErrorForm::Anthropic => error.anthropic(),
            ErrorForm::Ollama => error.ollama(),
        }
    }

    /// The name of its schema.
    pub(crate) fn schema(self) -> &'static str {
        match self {
            ErrorForm::OpenAi => "Error",
            ErrorForm::Anthropic => "AnthropicError",
            ErrorForm::Ollama => "OllamaError",
        }
    }
}

/// Every schema with its name.
pub(crate) const SCHEMAS: &[(&str, &str)] = &[
    ("Error", ERROR),
    ("AnthropicError", ANTHROPIC_ERROR),
    ("OllamaError", OLLAMA_ERROR),
    ("Status", STATUS),
    ("Progress", PROGRESS),
    ("Model", MODEL),
    ("Models", MODELS),
    ("LmStudioModel", LM_STUDIO_MODEL),
    ("LmStudioModels", LM_STUDIO_MODELS),
    ("Loaded", LOADED),
    ("Usage", USAGE),
    ("ChatCompletion", CHAT),
    ("Completion", COMPLETION),
    ("Response", RESPONSE),
    ("InputItems", INPUT_ITEMS),
    ("InputTokens", INPUT_TOKENS),
    ("Forgotten", FORGOTTEN),
    ("PromptUsage", PROMPT_USAGE),
    ("Embeddings", EMBEDDINGS),
    ("Rerank", RERANK),
    ("Scores", SCORES),
    ("Message", MESSAGE),
    ("TokenCount", TOKEN_COUNT),
    ("LlamaCompletion", LLAMA_COMPLETION),
    ("LlamaCompletions", LLAMA_COMPLETIONS),
    ("Tokens", TOKENS),
    ("Text", TEXT),
    ("Prompt", PROMPT),
    ("Props", PROPS),
    ("Slots", SLOTS),
    ("SlotAction", SLOT_ACTION),
    ("Adapters", ADAPTERS),
    ("Version", VERSION),
    ("OllamaModel", OLLAMA_MODEL),
    ("OllamaModels", OLLAMA_MODELS),
    ("OllamaStatus", OLLAMA_STATUS),
    ("OllamaChat", OLLAMA_CHAT),
    ("OllamaText", OLLAMA_TEXT),
    ("OllamaVectors", OLLAMA_EMBEDDINGS),
    ("OllamaVector", OLLAMA_EMBEDDING),
];

const ADAPTERS: &str = r#"{"type":"array","items":{"type":"object","required":["id","path","scale"],"properties":{
    "id":{"type":"integer","minimum":0},"path":{"type":"string"},"scale":{"type":"number"}}}}"#;

const ERROR: &str = r#"{"type":"object","required":["error"],"properties":{"error":{"type":"object",
    "required":["message","type",
    "param","code"],"properties":{"message":{"type":"string","minLength":1},
    "type":{"enum":["invalid_request_error","authentication_error","permission_error","not_found_error",
    "rate_limit_error","server_error","unavailable_error"]},"param":{"type":["string","null"]},
    "code":{"type":["string","null"]}}}}}"#;

const ANTHROPIC_ERROR: &str = r#"{"type":"object","required":["type","error"],"properties":{"type":{"const":"error"},
    "error":{"type":"object","required":["type","message"],
    "properties":{"type":{"enum":["invalid_request_error","authentication_error","permission_error",
    "not_found_error","request_too_large","rate_limit_error","api_error","overloaded_error"]},
    "message":{"type":"string","minLength":1}}}}}"#;

const PROGRESS: &str = r#"{"type":"object","required":["status","open","silent_seconds"],
    "properties":{"status":{"const":"ok"},
    "open":{"type":"integer","minimum":0},"silent_seconds":{"type":["number","null"],"minimum":0}}}"#;

const MODEL: &str = r#"{"type":"object","required":["id","object","created","owned_by","root","parent","permission",
    "status"],
    "properties":{"id":{"type":"string"},"object":{"const":"model"},"created":{"type":"integer","minimum":0},
    "owned_by":{"type":"string"},"root":{"type":"string"},"parent":{"type":["string","null"]},
    "permission":{"type":"array","items":{}},"status":{"type":"object","required":["value"],
    "properties":{"value":{"enum":["loaded","unloaded"]}}},"max_model_len":{"type":"integer","minimum":0},
    "meta":{"type":"object","required":["architecture","n_vocab","size"],
    "properties":{"architecture":{"type":"string"},"n_vocab":{"type":"integer","minimum":0},
    "size":{"type":"integer","minimum":0},"n_ctx_train":{"type":["integer","null"]}}}}}"#;

const MODELS: &str = r##"{"type":"object","required":["object","data"],"properties":{"object":{"const":"list"},
    "data":{"type":"array","items":{"$ref":"#/components/schemas/Model"}}}}"##;

const LM_STUDIO_MODEL: &str = r#"{"type":"object","required":["id","object","type","publisher","arch","compatibility_type",
    "quantization","state","max_context_length","capabilities"],"properties":{"id":{"type":"string"},
    "object":{"const":"model"},"type":{"enum":["llm","embeddings"]},"publisher":{"type":"string"},"arch":{"type":"string"},
    "compatibility_type":{"type":"string"},"quantization":{"type":"string"},"state":{"enum":["loaded","not-loaded"]},
    "max_context_length":{"type":["integer","null"]},"loaded_context_length":{"type":"integer","minimum":0},
    "capabilities":{"type":"array","items":{"type":"string"}}}}"#;

const LM_STUDIO_MODELS: &str = r##"{"type":"object","required":["object","data"],"properties":{"object":{"const":"list"},
    "data":{"type":"array","items":{"$ref":"#/components/schemas/LmStudioModel"}}}}"##;

const USAGE: &str = r#"{"type":"object","required":["prompt_tokens","completion_tokens","total_tokens",
    "prompt_tokens_details",
    "completion_tokens_details"],"properties":{"prompt_tokens":{"type":"integer","minimum":0},
    "completion_tokens":{"type":"integer","minimum":0},"total_tokens":{"type":"integer","minimum":0},
    "prompt_tokens_details":{"type":"object","required":["cached_tokens"],
    "properties":{"cached_tokens":{"type":"integer","minimum":0}}},
    "completion_tokens_details":{"type":"object","required":["reasoning_tokens"],
    "properties":{"reasoning_tokens":{"type":"integer","minimum":0}}}}}"#;

const CHAT: &str = r##"{"type":"object","required":["id","object","created","model","system_fingerprint","choices",
    "usage"],
    "properties":{"id":{"type":"string"},"object":{"const":"chat.completion"},"created":{"type":"integer",
    "minimum":0},"model":{"type":"string"},"system_fingerprint":{"type":"string"},"choices":{"type":"array",
    "items":{"type":"object","required":["index","message","logprobs","finish_reason","stop_reason"],
    "properties":{"index":{"type":"integer","minimum":0},"message":{"type":"object","required":["role",
    "content","refusal"],"properties":{"role":{"const":"assistant"},"content":{"type":["string","null"]},
    "refusal":{"type":"null"},"tool_calls":{"type":"array","items":{"type":"object","required":["id","type",
    "function"],"properties":{"id":{"type":"string"},"type":{"const":"function"},"function":{"type":"object",
    "required":["name","arguments"],"properties":{"name":{"type":"string"},"arguments":{"type":"string"}}}}},
    "minItems":1},"function_call":{"type":"object","required":["name","arguments"],
    "properties":{"name":{"type":"string"},"arguments":{"type":"string"}}},"reasoning_content":{"type":"string"}}},"logprobs":{"anyOf":[{"type":"null"},
    {"type":"object","required":["content","refusal"],"properties":{"content":{"type":"array",
    "items":{"type":"object","required":["token","logprob","bytes","top_logprobs"],
    "properties":{"token":{"type":"string"},"logprob":{"type":"number"},"bytes":{"type":"array",
    "items":{"type":"integer","minimum":0}},"top_logprobs":{"type":"array","items":{"type":"object",
    "required":["token","logprob","bytes"],"properties":{"token":{"type":"string"},
    "logprob":{"type":"number"},"bytes":{"type":"array","items":{"type":"integer","minimum":0}}}}}}}},
    "refusal":{"type":"null"}}}]},"finish_reason":{"enum":["stop","length","tool_calls","function_call"]},
    "stop_reason":{"type":["string","integer","null"]},"token_ids":{"type":"array","items":{"type":"integer",
    "minimum":0}}}},"minItems":1},"usage":{"$ref":"#/components/schemas/Usage"},
    "prompt_token_ids":{"type":"array","items":{"type":"integer","minimum":0}}}}"##;

const COMPLETION: &str = r##"{"type":"object","required":["id","object","created","model","system_fingerprint",
    "choices","usage"],
    "properties":{"id":{"type":"string"},"object":{"const":"text_completion"},"created":{"type":"integer",
    "minimum":0},"model":{"type":"string"},"system_fingerprint":{"type":"string"},"choices":{"type":"array",
    "items":{"type":"object","required":["index","text","logprobs","finish_reason","stop_reason"],
    "properties":{"index":{"type":"integer","minimum":0},"text":{"type":"string"},
    "logprobs":{"anyOf":[{"type":"null"},{"type":"object","required":["tokens","token_logprobs",
    "top_logprobs","text_offset"],"properties":{"tokens":{"type":"array","items":{"type":"string"}},
    "token_logprobs":{"type":"array","items":{"type":["number","null"]}},"top_logprobs":{"type":"array",
    "items":{"type":["object","null"],"additionalProperties":{"type":"number"}}},
    "text_offset":{"type":"array","items":{"type":"integer","minimum":0}}}}]},"finish_reason":{"enum":["stop",
    "length","tool_calls"]},"stop_reason":{"type":["string","integer","null"]},"token_ids":{"type":"array",
    "items":{"type":"integer","minimum":0}},"prompt_token_ids":{"type":"array","items":{"type":"integer",
    "minimum":0}}}},"minItems":1},"usage":{"$ref":"#/components/schemas/Usage"}}}"##;

const INPUT_ITEMS: &str = r#"{"type":"object","required":["object","data","first_id","last_id","has_more"],
    "properties":{"object":{"const":"list"},"data":{"type":"array","items":{"type":"object","required":["id","type"]}},
    "first_id":{"type":["string","null"]},"last_id":{"type":["string","null"]},"has_more":{"type":"boolean"}}}"#;

const RESPONSE: &str = r#"{"type":"object","required":["id","object","status","created_at","model","output","usage",
    "error",
    "incomplete_details","instructions","metadata","parallel_tool_calls","previous_response_id","reasoning",
    "text","tool_choice","tools","truncation","temperature","top_p","max_output_tokens","top_logprobs","store",
    "background"],
    "properties":{"id":{"type":"string","minLength":6},"object":{"const":"response"},
    "status":{"enum":["completed","incomplete","in_progress","failed","cancelled"]},
    "created_at":{"type":"integer","minimum":0},"model":{"type":"string"},"output":{"type":"array",
    "items":{"anyOf":[{"type":"object","required":["id","type","role","status","content"],
    "properties":{"id":{"type":"string"},"type":{"const":"message"},"role":{"const":"assistant"},
    "status":{"type":"string"},"content":{"type":"array","items":{"type":"object","required":["type","text"],
    "properties":{"type":{"const":"output_text"},"text":{"type":"string"},"logprobs":{"type":"array",
    "items":{"type":"object","required":["token","logprob","bytes","top_logprobs"]}}}}}}},{"type":"object",
    "required":["id","type","summary","content"],"properties":{"id":{"type":"string"},
    "type":{"const":"reasoning"},"summary":{"type":"array","items":{}},"content":{"type":"array",
    "items":{"type":"object","required":["type","text"],"properties":{"type":{"const":"reasoning_text"},
    "text":{"type":"string"}}}}}},{"type":"object","required":["id","type","call_id","name","arguments",
    "status"],"properties":{"id":{"type":"string"},"type":{"const":"function_call"},
    "call_id":{"type":"string"},"name":{"type":"string"},"arguments":{"type":"string"},
    "status":{"type":"string"}}}]}},"usage":{"anyOf":[{"type":"null"},{"type":"object",
    "required":["input_tokens","input_tokens_details","output_tokens","output_tokens_details","total_tokens"],
    "properties":{"input_tokens":{"type":"integer","minimum":0},"input_tokens_details":{"type":"object",
    "required":["cached_tokens","cache_write_tokens"],"properties":{"cached_tokens":{"type":"integer","minimum":0},
    "cache_write_tokens":{"type":"integer","minimum":0}}},
    "output_tokens":{"type":"integer","minimum":0},"output_tokens_details":{"type":"object",
    "required":["reasoning_tokens"],"properties":{"reasoning_tokens":{"type":"integer","minimum":0}}},
    "total_tokens":{"type":"integer","minimum":0}}}]},"error":{"anyOf":[{"type":"null"},{"type":"object",
    "required":["code","message"],"properties":{"code":{"type":"string"},"message":{"type":"string"}}}]},
    "incomplete_details":{"anyOf":[{"type":"null"},{"type":"object","required":["reason"],
    "properties":{"reason":{"type":"string"}}}]},"instructions":{"type":["string","null"]},
    "metadata":{"type":"object"},"parallel_tool_calls":{"type":"boolean"},
    "previous_response_id":{"type":["string","null"]},"reasoning":{"type":"object"},"text":{"type":"object"},
    "tool_choice":{"type":["string","object"]},"tools":{"type":"array","items":{"type":"object"}},
    "truncation":{"const":"disabled"},"temperature":{"type":"number"},"top_p":{"type":"number"},
    "max_output_tokens":{"type":["integer","null"]},"top_logprobs":{"type":"integer"},"store":{"type":"boolean"},
    "background":{"type":"boolean"},"output_text":{"type":"string"}}}"#;

const INPUT_TOKENS: &str = r#"{"type":"object","required":["object","input_tokens"],
    "properties":{"object":{"const":"response.input_tokens"},"input_tokens":{"type":"integer","minimum":0}}}"#;

const FORGOTTEN: &str = r#"{"type":"object","required":["id","object","deleted"],"properties":{"id":{"type":"string"},
    "object":{"const":"response"},"deleted":{"const":true}}}"#;

const PROMPT_USAGE: &str = r#"{"type":"object","required":["prompt_tokens","total_tokens"],
    "properties":{"prompt_tokens":{"type":"integer","minimum":0},"total_tokens":{"type":"integer",
    "minimum":0}}}"#;

const EMBEDDINGS: &str = r##"{"type":"object","required":["object","model","usage","data"],
    "properties":{"object":{"const":"list"},
    "model":{"type":"string"},"usage":{"$ref":"#/components/schemas/PromptUsage"},"data":{"type":"array",
    "items":{"type":"object","required":["object","index","embedding"],
    "properties":{"object":{"const":"embedding"},"index":{"type":"integer","minimum":0},
    "embedding":{"anyOf":[{"type":"array","items":{"type":"number"}},{"type":"string"}]}}}}}}"##;

const RERANK: &str = r##"{"type":"object","required":["id","object","model","usage","results"],
    "properties":{"id":{"type":"string"},"object":{"const":"list"},"model":{"type":"string"},
    "usage":{"$ref":"#/components/schemas/PromptUsage"},"results":{"type":"array","items":{"type":"object",
    "required":["index","relevance_score"],"properties":{"index":{"type":"integer","minimum":0},
    "relevance_score":{"type":"number"},"document":{"type":"object","required":["text"],
    "properties":{"text":{"type":"string"}}}}}}}}"##;

const SCORES: &str = r##"{"type":"object","required":["id","object","created","model","usage","data"],
    "properties":{"id":{"type":"string"},"object":{"const":"list"},"created":{"type":"integer","minimum":0},
    "model":{"type":"string"},"usage":{"$ref":"#/components/schemas/PromptUsage"},"data":{"type":"array",
    "items":{"type":"object","required":["index","object","score"],"properties":{"index":{"type":"integer",
    "minimum":0},"object":{"const":"score"},"score":{"type":"number"}}}}}}"##;

const MESSAGE: &str = r#"{"type":"object","required":["id","type","role","model","content","stop_reason",
    "stop_sequence","usage"],
    "properties":{"id":{"type":"string"},"type":{"const":"message"},"role":{"const":"assistant"},
    "model":{"type":"string"},"content":{"type":"array","items":{"anyOf":[{"type":"object","required":["type",
    "text"],"properties":{"type":{"const":"text"},"text":{"type":"string"}}},{"type":"object",
    "required":["type","thinking","signature"],"properties":{"type":{"const":"thinking"},
    "thinking":{"type":"string"},"signature":{"type":"string"}}},{"type":"object","required":["type","id",
    "name","input"],"properties":{"type":{"const":"tool_use"},"id":{"type":"string"},"name":{"type":"string"},
    "input":{"type":"object"}}}]}},"stop_reason":{"enum":["tool_use","max_tokens","stop_sequence",
    "end_turn"]},"stop_sequence":{"type":["string","null"]},"usage":{"type":"object",
    "required":["input_tokens","cache_creation_input_tokens","cache_read_input_tokens","output_tokens"],
    "properties":{"input_tokens":{"type":"integer","minimum":0},
    "cache_creation_input_tokens":{"type":"integer","minimum":0},"cache_read_input_tokens":{"type":"integer",
    "minimum":0},"output_tokens":{"type":"integer","minimum":0}}}}}"#;

// A request's `response_fields` may leave any of it out.
const LLAMA_COMPLETION: &str = r#"{"type":"object","properties":{"index":{"type":"integer","minimum":0},
    "content":{"type":"string"},"model":{"type":"string"},"completion_probabilities":{"type":"array","items":{"type":"object",
    "required":["id","token","bytes","logprob","top_logprobs"],"properties":{"id":{"type":"integer","minimum":0},
    "token":{"type":"string"},"bytes":{"type":"array","items":{"type":"integer"}},"logprob":{"type":"number"},
    "top_logprobs":{"type":"array","items":{"type":"object","required":["id","token","bytes","logprob"]}}}}},
    "stop":{"const":true},"tokens":{"type":"array","items":{"type":"integer","minimum":0}},
    "tokens_evaluated":{"type":"integer","minimum":0},"truncated":{"const":false},
    "stop_type":{"enum":["limit","word","eos"]},"stopping_word":{"type":"string"},
    "tokens_predicted":{"type":"integer","minimum":0},"tokens_cached":{"type":"integer","minimum":0},
    "timings":{"type":"object","required":["prompt_n","prompt_ms","prompt_per_second","predicted_n",
    "predicted_ms","predicted_per_second"],"properties":{"prompt_n":{"type":"number","minimum":0},
    "prompt_ms":{"type":"number","minimum":0},"prompt_per_second":{"type":"number","minimum":0},
    "predicted_n":{"type":"number","minimum":0},"predicted_ms":{"type":"number","minimum":0},
    "predicted_per_second":{"type":"number","minimum":0}}}}}"#;

// One answer, or those to several prompts.
const LLAMA_COMPLETIONS: &str = r##"{"anyOf":[{"$ref":"#/components/schemas/LlamaCompletion"},
    {"type":"array","minItems":2,"items":{"$ref":"#/components/schemas/LlamaCompletion"}}]}"##;

const TOKENS: &str = r#"{"anyOf":[{"type":"object","required":["tokens","count","max_model_len","token_strs"],
    "properties":{"tokens":{"type":"array","items":{"type":"integer","minimum":0}},"count":{"type":"integer",
    "minimum":0},"max_model_len":{"type":"integer","minimum":0},"token_strs":{"type":["array","null"],
    "items":{"type":["string","null"]}}}},{"type":"object","required":["tokens"],
    "properties":{"tokens":{"type":"array","items":{"anyOf":[{"type":"integer","minimum":0},{"type":"object",
    "required":["id","piece"],"properties":{"id":{"type":"integer","minimum":0},
    "piece":{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"integer","minimum":0}}]}}}]}}}}]}"#;

const TEXT: &str = r#"{"type":"object","required":["content","prompt"],"properties":{"content":{"type":"string"},
    "prompt":{"type":"string"}}}"#;

const PROPS: &str = r#"{"type":"object","required":["default_generation_settings","total_slots","model_alias",
    "model_path",
    "chat_template","chat_template_caps","modalities","build_info","is_sleeping"],
    "properties":{"default_generation_settings":{"type":"object","required":["n_ctx","params"],
    "properties":{"n_ctx":{"type":"integer","minimum":0},"params":{"type":"object"}}},
    "total_slots":{"type":"integer","minimum":0},"model_alias":{"type":"string"},
    "model_path":{"type":"string"},"chat_template":{"type":"string"},"chat_template_caps":{"type":"object"},
    "modalities":{"type":"object","required":["vision","audio"],"properties":{"vision":{"type":"boolean"},
    "audio":{"type":"boolean"}}},"build_info":{"type":"string"},"is_sleeping":{"type":"boolean"}}}"#;

const SLOTS: &str = r#"{"type":"array","items":{"type":"object","required":["id","n_ctx","is_processing"],
    "properties":{"id":{"type":"integer","minimum":0},"n_ctx":{"type":"integer","minimum":0},
    "is_processing":{"type":"boolean"}}}}"#;

const SLOT_ACTION: &str = r#"{"type":"object","required":["id_slot"],"properties":{
    "id_slot":{"type":"integer","minimum":0},"filename":{"type":"string"},"n_saved":{"type":"integer","minimum":0},
    "n_written":{"type":"integer","minimum":0},"n_restored":{"type":"integer","minimum":0},
    "n_read":{"type":"integer","minimum":0},"n_erased":{"type":"integer","minimum":0},
    "timings":{"type":"object","properties":{"save_ms":{"type":"number"},"restore_ms":{"type":"number"}}}}}"#;

const OLLAMA_MODEL: &str = r#"{"type":"object","required":["name","model","modified_at","size","digest","details",
    "capabilities",
    "template","parameters","modelfile","license","model_info"],"properties":{"name":{"type":"string"},
    "model":{"type":"string"},"modified_at":{"type":"string"},"size":{"type":"integer","minimum":0},
    "digest":{"type":"string","minLength":64},"details":{"type":"object",
    "required":["parent_model","format","family","families","parameter_size","quantization_level"],
    "properties":{"parent_model":{"type":"string"},"format":{"type":"string"},"family":{"type":"string"},
    "families":{"type":"array","items":{"type":"string"}},"parameter_size":{"type":"string"},
    "quantization_level":{"type":"string"}}},"capabilities":{"type":"array","items":{"type":"string"}},
    "template":{"type":"string"},"parameters":{"type":"string"},"modelfile":{"type":"string"},
    "license":{"type":"string"},"model_info":{"type":"object"}}}"#;

const OLLAMA_MODELS: &str = r#"{"type":"object","required":["models"],"properties":{"models":{"type":"array",
    "items":{"type":"object",
    "required":["name","model","modified_at","size","digest","details"],
    "properties":{"name":{"type":"string"},"model":{"type":"string"},"modified_at":{"type":"string"},
    "size":{"type":"integer","minimum":0},"digest":{"type":"string","minLength":64},
    "details":{"type":"object","required":["parent_model","format","family","families","parameter_size",
    "quantization_level"],"properties":{"parent_model":{"type":"string"},"format":{"type":"string"},
    "family":{"type":"string"},"families":{"type":"array","items":{"type":"string"}},
    "parameter_size":{"type":"string"},"quantization_level":{"type":"string"}}},"size_vram":{"type":"integer",
    "minimum":0},"context_length":{"type":"integer","minimum":0},"expires_at":{"type":"string"}}}}}}"#;

const OLLAMA_STATUS: &str = r#"{"type":"object","required":["status"],"properties":{"status":{"type":"string"}}}"#;

const OLLAMA_CHAT: &str = r#"{"type":"object","required":["model","created_at","done","done_reason","message"],
    "properties":{"model":{"type":"string"},"created_at":{"type":"string"},"done":{"const":true},
    "done_reason":{"enum":["stop","length","load","unload"]},"message":{"type":"object","required":["role",
    "content"],"properties":{"role":{"const":"assistant"},"content":{"type":"string"},
    "thinking":{"type":"string"},"tool_calls":{"type":"array","items":{"type":"object",
    "required":["function"],"properties":{"function":{"type":"object","required":["name","arguments"],
    "properties":{"name":{"type":"string"},"arguments":{"type":"object"}}}}}}}},
    "total_duration":{"type":"integer","minimum":0},"load_duration":{"type":"integer","minimum":0},
    "prompt_eval_count":{"type":"integer","minimum":0},"prompt_eval_duration":{"type":"integer","minimum":0},
    "eval_count":{"type":"integer","minimum":0},"eval_duration":{"type":"integer","minimum":0}}}"#;

const OLLAMA_TEXT: &str = r#"{"type":"object","required":["model","created_at","done","done_reason","response"],
    "properties":{"model":{"type":"string"},"created_at":{"type":"string"},"done":{"const":true},
    "done_reason":{"enum":["stop","length","load","unload"]},"response":{"type":"string"},
    "thinking":{"type":"string"},"total_duration":{"type":"integer","minimum":0},
    "load_duration":{"type":"integer","minimum":0},"prompt_eval_count":{"type":"integer","minimum":0},
    "prompt_eval_duration":{"type":"integer","minimum":0},"eval_count":{"type":"integer","minimum":0},
    "eval_duration":{"type":"integer","minimum":0}}}"#;

const OLLAMA_EMBEDDINGS: &str = r#"{"type":"object","required":["model","embeddings","total_duration","load_duration",
    "prompt_eval_count"],
    "properties":{"model":{"type":"string"},"embeddings":{"type":"array","items":{"type":"array",
    "items":{"type":"number"}}},"total_duration":{"type":"integer","minimum":0},
    "load_duration":{"type":"integer","minimum":0},"prompt_eval_count":{"type":"integer","minimum":0}}}"#;

const OLLAMA_EMBEDDING: &str = r#"{"type":"object","required":["embedding"],"properties":{"embedding":{"type":"array",
    "items":{"type":"number"}}}}"#;

const OLLAMA_ERROR: &str = r#"{"type":"object","required":["error"],"properties":{"error":{"type":"string",
    "minLength":1}}}"#;

const STATUS: &str = r#"{"type":"object","required":["status"],"properties":{"status":{"const":"ok"}}}"#;

const LOADED: &str = r#"{"type":"object","required":["success"],"properties":{"success":{"const":true},
    "was_loaded":{"type":"boolean"}}}"#;

const TOKEN_COUNT: &str = r#"{"type":"object","required":["input_tokens"],
    "properties":{"input_tokens":{"type":"integer","minimum":0}}}"#;

const PROMPT: &str = r#"{"type":"object","required":["prompt"],"properties":{"prompt":{"type":"string"}}}"#;

const VERSION: &str = r#"{"type":"object","required":["version"],"properties":{"version":{"type":"string"}}}"#;

#[cfg(test)]
mod tests {
    use super::*;

    /// Every name that a schema refers to.
    fn references(schema: &Value, found: &mut Vec<String>) {
        match schema {
            Value::Object(map) => {
                let name = map.get("$ref").and_then(Value::as_str);
                found.extend(name.map(|name| name.trim_start_matches("#/components/schemas/").to_owned()));
                map.values().for_each(|value| references(value, found));
            }
            Value::Array(list) => list.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }

    #[test]
    fn schemas_are_json_and_refer_to_each_other_alone() {
        let mut found = Vec::new();
        for (at, (name, text)) in SCHEMAS.iter().enumerate() {
            let schema: Value = serde_json::from_str(text).unwrap_or_else(|e| panic!("{name}: {e}"));
            references(&schema, &mut found);
            assert!(SCHEMAS[..at].iter().all(|(other, _)| other != name), "{name} twice");
        }
        assert!(found.iter().all(|wanted| SCHEMAS.iter().any(|(name, _)| name == wanted)), "{found:?}");
        let forms = [ErrorForm::OpenAi, ErrorForm::Anthropic, ErrorForm::Ollama];
        assert!(forms.iter().all(|form| SCHEMAS.iter().any(|(name, _)| *name == form.schema())));
    }
}
