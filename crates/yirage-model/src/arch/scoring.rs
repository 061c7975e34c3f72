//! Heads of encoders that score whole sequences: whether a file names one, and how many labels it has.
//!
//! It does not know what a head computes.

use super::emit::ModelBuilder;
use crate::error::ModelError;
use serde_json::Value;

/// Labels of a file that names none.
const LABELS: u32 = 2;

/// Whether the file's model is the one that scores sequences, of a family whose classes begin with `prefix`; a bare body
/// gives hidden states.
pub(super) fn scores_sequences(e: &ModelBuilder<'_>, prefix: &str) -> Result<bool, ModelError> {
    let [body, scoring] = ["Model", "ForSequenceClassification"].map(|end| format!("{prefix}{end}"));
    match e.config.architectures()[..] {
        [] => Ok(false),
        [one] if one == body => Ok(false),
        [one] if one == scoring => Ok(true),
        ref other => Err(ModelError::Unsupported {
            what: format!("the head of {}", other.join(", ")),
            why: format!("{}: architectures names it; {body} and {scoring} are known", e.config.file()),
        }),
    }
}

/// How many scores a sequence has.
pub(super) fn labels(e: &ModelBuilder<'_>) -> Result<u32, ModelError> {
    match e.config.get("id2label") {
        None => Ok(LABELS),
        Some(Value::Object(names)) if !names.is_empty() => Ok(u32::try_from(names.len()).unwrap_or(u32::MAX)),
        Some(_) => Err(e.config.invalid("id2label", "an object with a name for each label")),
    }
}
