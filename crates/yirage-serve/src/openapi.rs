//! GET /openapi.json: what this server takes, from the tables that requests are read by.

use crate::fields::{Table, Treatment};
use crate::llamacpp::{completion, tokenize};
use crate::vectors::{embeddings, rerank, score};
use crate::{anthropic, ollama, openai, reply, responses};
use axum::response::Response;
use serde_json::{Map, Value, json};

/// A path: its method, what it does, its fields and those that have to be there.
struct Endpoint {
    method: &'static str,
    path: &'static str,
    summary: &'static str,
    fields: Option<Table>,
    needs: &'static [&'static str],
}

const fn get(path: &'static str, summary: &'static str) -> Endpoint {
    Endpoint { method: "get", path, summary, fields: None, needs: &[] }
}

const fn post(path: &'static str, summary: &'static str, fields: Table, needs: &'static [&'static str]) -> Endpoint {
    Endpoint { method: "post", path, summary, fields: Some(fields), needs }
}

const ENDPOINTS: &[Endpoint] = &[
    get("/health", "Whether new requests are taken"),
    get("/health/live", "Whether the process answers"),
    get("/health/ready", "Whether new requests are taken"),
    get("/health/progress", "Whether requests that run get tokens"),
    get("/metrics", "Figures for Prometheus, under vLLM's names"),
    get("/v1/models", "All models"),
    post("/v1/chat/completions", "Continue a conversation", openai::CHAT, &["messages"]),
    post("/v1/completions", "Continue texts", openai::completions::COMPLETIONS, &["prompt"]),
    post("/v1/responses", "Continue a conversation of items", responses::post::RESPONSES, &["input"]),
    post("/v1/responses/input_tokens", "Count its tokens", responses::post::RESPONSES, &["input"]),
    post("/v1/embeddings", "Vectors of texts", embeddings::EMBEDDINGS, &["input"]),
    post("/v1/rerank", "How well texts answer a query", rerank::RERANK, &["query", "documents"]),
    post("/v1/score", "Scores of pairs of texts", score::SCORE, &[]),
    post("/v1/messages", "Anthropic's messages", anthropic::messages::MESSAGES, &["messages", "max_tokens"]),
    post("/v1/messages/count_tokens", "Count their tokens", anthropic::messages::MESSAGES, &["messages"]),
    post("/completion", "llama.cpp's way to continue a text", completion::COMPLETION, &["prompt"]),
    post("/infill", "llama.cpp's way to fill a text in", completion::INFILL, &["input_prefix", "input_suffix"]),
    post("/tokenize", "Text to token ids", tokenize::TOKENIZE, &["content"]),
    post("/detokenize", "Token ids to text", tokenize::DETOKENIZE, &["tokens"]),
    post("/apply-template", "The text that a conversation becomes", openai::CHAT, &["messages"]),
    get("/props", "What llama.cpp's clients ask of a server"),
    get("/slots", "Places for sequences that run at once"),
    get("/version", "The version of the server"),
    get("/api/version", "The version of the server"),
    get("/api/tags", "All models"),
    get("/api/ps", "Models that are loaded"),
    post("/api/show", "What a model is", ollama::models::SHOW, &[]),
    post("/api/chat", "ollama's conversations", ollama::generate::CHAT, &["model"]),
    post("/api/generate", "ollama's way to continue a text", ollama::generate::GENERATE, &["model"]),
    post("/api/embed", "Vectors of texts", ollama::embed::EMBED, &["model", "input"]),
    post("/api/embeddings", "The vector of a text", ollama::embed::OLD, &["model", "prompt"]),
];

/// The endpoint.
pub(crate) async fn json() -> Response {
    reply::json(&document())
}

fn document() -> Value {
    let mut paths = Map::new();
    for endpoint in ENDPOINTS {
        paths.insert(endpoint.path.to_owned(), json!({endpoint.method: operation(endpoint)}));
    }
    let message = json!({"type": "object", "required": ["message"], "properties": {"message": {"type": "string"}}});
    json!({
        "openapi": "3.1.0",
        "info": {"title": "yirage", "version": env!("CARGO_PKG_VERSION")},
        "paths": paths,
        "components": {
            "schemas": {"Error": {"type": "object", "required": ["error"], "properties": {"error": message}}},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"key": []}],
    })
}

fn operation(endpoint: &Endpoint) -> Value {
    let error = json!({
        "description": "What is wrong",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
    });
    let mut operation =
        json!({"summary": endpoint.summary, "responses": {"200": {"description": "The answer"}, "default": error}});
    if let Some(fields) = endpoint.fields {
        let schema = schema(fields, endpoint.needs);
        operation["requestBody"] = json!({"required": true, "content": {"application/json": {"schema": schema}}});
    }
    operation
}

/// The schema of a body. Fields that are refused are not in it.
fn schema(table: Table, needs: &[&str]) -> Value {
    let mut properties = Map::new();
    for field in table.iter().copied().flatten() {
        let mut schema: Value = serde_json::from_str(field.schema).unwrap_or_else(|_| json!({}));
        match field.treatment {
            Treatment::Honoured => {}
            Treatment::Ignored => schema["description"] = "taken, and changes nothing here".into(),
            Treatment::Refused(..) => continue,
        }
        properties.insert(field.name.to_owned(), schema);
    }
    json!({"type": "object", "required": needs, "properties": properties, "additionalProperties": false})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::Field;

    #[test]
    fn tables_have_schemas_and_every_name_once() {
        for endpoint in ENDPOINTS {
            let Some(table) = endpoint.fields else { continue };
            let all: Vec<&Field> = table.iter().copied().flatten().collect();
            for (at, field) in all.iter().enumerate() {
                let schema = serde_json::from_str::<Value>(field.schema);
                assert!(schema.is_ok_and(|schema| schema.is_object()), "{} {}", endpoint.path, field.name);
                assert!(all[..at].iter().all(|other| other.name != field.name), "{} {}", endpoint.path, field.name);
            }
            for name in endpoint.needs {
                assert!(all.iter().any(|field| field.name == *name), "{} {name}", endpoint.path);
            }
        }
    }
}
