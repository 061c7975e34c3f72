//! What a client is told when its request fails: a status, and an object in the form of the protocol it speaks.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use std::time::Duration;
use yirage_engine::sampling::ParamError;
use yirage_engine::scheduler::AdmissionError;
use yirage_engine::{AdapterError, EncoderError, EngineError};
use yirage_model::ModelError;
use yirage_session::SessionError;

/// The word of what is longer than a model's context.
const CONTEXT: &str = "context_length_exceeded";

/// An error for a client. It becomes a response with itself among the extensions; the outermost layer gives it the form
/// of the path's protocol.
#[derive(Clone, Debug)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    /// The field that is wrong, where it is one.
    pub(crate) param: Option<String>,
    /// A word for programs, where the status alone does not say it.
    pub(crate) code: Option<&'static str>,
    pub(crate) message: String,
    /// When to come again.
    pub(crate) retry_after: Option<Duration>,
}

impl ApiError {
    fn new(status: StatusCode, message: impl Into<String>) -> ApiError {
        ApiError { status, param: None, code: None, message: message.into(), retry_after: None }
    }

    /// 400: the request makes no sense.
    pub(crate) fn invalid(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::BAD_REQUEST, message)
    }

    /// 400: this field makes no sense.
    pub(crate) fn field(name: impl Into<String>, message: impl Into<String>) -> ApiError {
        ApiError { param: Some(name.into()), ..ApiError::invalid(message) }
    }

    /// 400: this field asks for something that is not there.
    pub(crate) fn unsupported(name: &str, why: &str) -> ApiError {
        ApiError {
            code: Some("unsupported_parameter"),
            ..ApiError::field(name, format!("`{name}` is not supported: {why}"))
        }
    }

    /// 401.
    pub(crate) fn no_key(message: &str) -> ApiError {
        ApiError { code: Some("invalid_api_key"), ..ApiError::new(StatusCode::UNAUTHORIZED, message) }
    }

    /// 403.
    pub(crate) fn forbidden(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::FORBIDDEN, message)
    }

    /// 404.
    pub(crate) fn not_found(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::NOT_FOUND, message)
    }

    /// 404: no such model.
    pub(crate) fn no_model(name: &str, known: &[&str]) -> ApiError {
        let message = format!("the model `{name}` does not exist; this server has: {}", known.join(", "));
        ApiError { code: Some("model_not_found"), param: Some("model".into()), ..ApiError::not_found(message) }
    }

    /// Some other status of the client's making.
    pub(crate) fn status(status: StatusCode, message: impl Into<String>) -> ApiError {
        ApiError::new(status, message)
    }

    /// 429: too much at once.
    pub(crate) fn busy(message: impl Into<String>, again: Duration) -> ApiError {
        let code = Some("queue_full");
        ApiError { retry_after: Some(again), code, ..ApiError::new(StatusCode::TOO_MANY_REQUESTS, message) }
    }

    /// 503.
    pub(crate) fn unavailable(message: impl Into<String>, again: Option<Duration>) -> ApiError {
        ApiError { retry_after: again, ..ApiError::new(StatusCode::SERVICE_UNAVAILABLE, message) }
    }

    /// 500: our fault.
    pub(crate) fn ours(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, message)
    }

    /// The word of the kind, as OpenAI's interface and llama.cpp's server have it.
    pub(crate) fn kind(&self) -> &'static str {
        match self.status.as_u16() {
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            429 => "rate_limit_error",
            503 => "unavailable_error",
            500.. => "server_error",
            _ => "invalid_request_error",
        }
    }

    /// The object of OpenAI's interface.
    pub(crate) fn openai(&self) -> Value {
        json!({"error": {"message": self.message, "type": self.kind(), "param": self.param, "code": self.code}})
    }

    /// The object of Anthropic's interface.
    pub(crate) fn anthropic(&self) -> Value {
        let kind = match self.status.as_u16() {
            413 => "request_too_large",
            503 => "overloaded_error",
            500.. => "api_error",
            _ => self.kind(),
        };
        // Clients find by these words that a conversation is to be shortened.
        let message = match self.code {
            Some(CONTEXT) => format!("prompt is too long: {}", self.message),
            _ => self.message.clone(),
        };
        json!({"type": "error", "error": {"type": kind, "message": message}})
    }

    /// The object of ollama's interface.
    pub(crate) fn ollama(&self) -> Value {
        json!({"error": self.message})
    }

    /// A response with this object, and the headers that tell a client whether to come again.
    pub(crate) fn response(self, object: &Value) -> Response {
        let mut response = Response::new(Body::from(object.to_string()));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(again) = self.retry_after {
            let milliseconds = again.as_millis().max(1);
            headers.insert(header::RETRY_AFTER, HeaderValue::from(milliseconds.div_ceil(1000) as u64));
            headers.insert("retry-after-ms", HeaderValue::from(milliseconds as u64));
        }
        let again = self.retry_after.is_some();
        headers.insert("x-should-retry", HeaderValue::from_static(if again { "true" } else { "false" }));
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response.extensions_mut().insert(self);
        response
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let object = self.openai();
        self.response(&object)
    }
}

/// The field of a sampling parameter that is wrong.
fn field_of(error: &ParamError) -> Option<&'static str> {
    match error {
        ParamError::UnknownToken { field: "allowed_tokens", .. } => Some("allowed_token_ids"),
        ParamError::OutOfRange { field, .. }
        | ParamError::TooManyLogprobs { field, .. }
        | ParamError::UnknownToken { field, .. } => Some(field),
        ParamError::TooManyBiases { .. } | ParamError::DuplicateToken { .. } => Some("logit_bias"),
        ParamError::TooManyAllowed { .. } => Some("allowed_token_ids"),
        ParamError::MinAboveMost { .. } => Some("min_tokens"),
        _ => None,
    }
}

impl From<ParamError> for ApiError {
    fn from(error: ParamError) -> ApiError {
        let param = field_of(&error).map(str::to_owned);
        ApiError { param, ..ApiError::invalid(error.to_string()) }
    }
}

impl From<EngineError> for ApiError {
    fn from(error: EngineError) -> ApiError {
        let message = error.to_string();
        match error {
            EngineError::Sampling(error) => error.into(),
            EngineError::Admission(AdmissionError::QueueFull { .. }) => ApiError::busy(message, Duration::from_secs(1)),
            EngineError::Admission(AdmissionError::ExceedsContext { .. } | AdmissionError::NeverFits { .. }) => {
                ApiError { code: Some(CONTEXT), ..ApiError::invalid(message) }
            }
            EngineError::Admission(AdmissionError::SaltTooLong { .. }) => ApiError::field("cache_salt", message),
            EngineError::Admission(AdmissionError::TooManyStopIds { .. }) => ApiError::field("stop_token_ids", message),
            EngineError::Admission(_)
            | EngineError::UnknownToken { .. }
            | EngineError::NoHiddenStates
            | EngineError::Embedded(_)
            | EngineError::Prefix(_) => ApiError::invalid(message),
            EngineError::Adapter(AdapterError::InUse { .. } | AdapterError::StepInFlight) => {
                ApiError::status(StatusCode::CONFLICT, message)
            }
            EngineError::Adapter(_) => ApiError::field("lora", message),
            EngineError::Model(ModelError::Config { .. }) => ApiError::invalid(message),
            EngineError::Encoder(EncoderError::Step { .. }) => ApiError::ours(message),
            EngineError::Encoder(_) => ApiError::field("input", message),
            error if error.is_unsupported() => ApiError::invalid(message),
            _ => ApiError::ours(message),
        }
    }
}

impl From<SessionError> for ApiError {
    fn from(error: SessionError) -> ApiError {
        let message = error.to_string();
        match error {
            SessionError::Engine(error) => error.into(),
            SessionError::Stop(_) | SessionError::NoText { .. } => ApiError::field("stop", message),
            SessionError::Chat(yirage_model::chat::ChatError::Broken { .. }) => ApiError::ours(message),
            SessionError::NoPictures { .. } => {
                ApiError { code: Some("unsupported_parameter"), ..ApiError::field("messages", message) }
            }
            SessionError::Picture(_) | SessionError::PicturePlaces { .. } => ApiError::field("messages", message),
            SessionError::Chat(_) => ApiError::field("messages", message),
            SessionError::Tokenizer(_) | SessionError::NoTokenizer { .. } => ApiError::invalid(message),
            SessionError::Busy { .. } => ApiError::busy(message, Duration::from_secs(1)),
            // The engine has died: another start may help, and a balancer is to send nothing more here.
            SessionError::Gone { .. } => ApiError { code: Some("engine_dead"), ..ApiError::unavailable(message, None) },
            _ => ApiError::ours(message),
        }
    }
}
