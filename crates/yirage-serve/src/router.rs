//! Which path is whose.

use crate::app::App;
use crate::error::ApiError;
use crate::guard::guard;
use crate::{anthropic, encoders, llamacpp, lmstudio, ollama, openai, openapi, ops, page, prefill, responses};
use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{any, delete, get, post};
use std::sync::Arc;

/// All endpoints behind the guard.
pub(crate) fn router(app: Arc<App>) -> Router {
    Router::new()
        .merge(operators())
        .merge(versioned())
        .merge(unversioned())
        .nest("/api", of_ollama())
        .nest("/api/v0", of_lm_studio())
        .fallback(nowhere)
        .layer(from_fn_with_state(app.clone(), guard))
        .with_state(app)
}

fn operators() -> Router<Arc<App>> {
    Router::new()
        .route("/", get(page::index))
        .route("/page/{file}", get(page::file))
        .route("/health", get(ops::health::ready))
        .route("/v1/health", get(ops::health::ready))
        .route("/ping", get(ops::health::ready))
        .route("/health/live", get(ops::health::live))
        .route("/health/ready", get(ops::health::ready))
        .route("/health/progress", get(ops::health::progress))
        .route("/metrics", get(ops::metrics::get))
        .route("/openapi.json", get(openapi::json))
}

/// Paths under /v1, and the same without it, as llama.cpp and InfiniLM have them.
fn versioned() -> Router<Arc<App>> {
    let paths = Router::new()
        .route("/models", get(openai::models::list))
        .route("/models/load", post(llamacpp::props::load))
        .route("/models/unload", post(llamacpp::props::unload))
        .route("/models/{*id}", get(openai::models::get))
        .route("/load_lora_adapter", post(llamacpp::adapters::load))
        .route("/unload_lora_adapter", post(llamacpp::adapters::unload))
        .route("/chat/completions", post(openai::chat::post))
        .route("/completions", post(openai::completions::post))
        .route("/embeddings", post(encoders::embeddings::post))
        .route("/rerank", post(encoders::rerank::post))
        .route("/score", post(encoders::score::post))
        .route("/responses", post(responses::post::post))
        .route("/responses/input_tokens", post(responses::post::count))
        .route("/responses/{id}", get(responses::stored::get).delete(responses::stored::delete))
        .route("/responses/{id}/input_items", get(responses::stored::input_items))
        .route("/responses/{id}/cancel", post(responses::stored::cancel))
        .route("/messages", post(anthropic::messages::post))
        .route("/messages/count_tokens", post(anthropic::messages::count));
    Router::new().nest("/v1", paths.clone()).merge(paths)
}

fn unversioned() -> Router<Arc<App>> {
    Router::new()
        .route("/completion", post(llamacpp::completion::post))
        .route("/infill", post(llamacpp::completion::infill))
        .route("/props", get(llamacpp::props::props))
        .route("/slots", get(llamacpp::slots::list))
        .route("/slots/{id}", post(llamacpp::slots::act))
        .route("/prefill", post(prefill::post))
        .route("/lora-adapters", get(llamacpp::adapters::list).post(llamacpp::adapters::set))
        .route("/tokenize", post(llamacpp::tokenize::tokenize))
        .route("/detokenize", post(llamacpp::tokenize::detokenize))
        .route("/apply-template", post(llamacpp::tokenize::apply))
        .route("/version", get(llamacpp::props::version))
        .route("/embedding", post(encoders::embeddings::post))
}

fn of_ollama() -> Router<Arc<App>> {
    Router::new()
        .route("/version", get(ollama::models::version))
        .route("/tags", get(ollama::models::tags))
        .route("/ps", get(ollama::models::running))
        .route("/show", post(ollama::models::show))
        .route("/pull", post(ollama::registry::pull))
        .route("/push", post(ollama::registry::absent))
        .route("/create", post(ollama::registry::absent))
        .route("/copy", post(ollama::registry::absent))
        .route("/delete", delete(ollama::registry::absent))
        .route("/blobs/{digest}", any(ollama::registry::absent))
        .route("/chat", post(ollama::generate::chat))
        .route("/generate", post(ollama::generate::generate))
        .route("/embed", post(ollama::embed::post))
        .route("/embeddings", post(ollama::embed::old))
}

/// LM Studio's own paths: what it says of models, and OpenAI's interface.
fn of_lm_studio() -> Router<Arc<App>> {
    Router::new()
        .route("/models", get(lmstudio::list))
        .route("/models/{*id}", get(lmstudio::get))
        .route("/chat/completions", post(openai::chat::post))
        .route("/completions", post(openai::completions::post))
        .route("/embeddings", post(encoders::embeddings::post))
}

async fn nowhere() -> ApiError {
    ApiError::not_found("there is nothing at this path")
}
