//! A response that has begun.

use crate::app::App;
use crate::generate::Conversing;
use serde_json::Value;
use std::sync::Arc;

/// A response that has begun.
pub(super) struct ActiveResponse {
    pub(super) app: Arc<App>,
    pub(super) conversing: Conversing,
    pub(super) id: String,
    /// What the response says of its request.
    pub(super) echoed: Value,
    /// The conversation, to be kept with the answer; none where nothing is to be kept.
    pub(super) history: Option<Vec<Value>>,
    /// What was sent, as items.
    pub(super) input: Arc<Vec<Value>>,
    pub(super) owner: String,
    pub(super) stream: bool,
    /// Whether it is asked for later.
    pub(super) background: bool,
    pub(super) ignored: Vec<String>,
}
