//! Text as JSON has it.

use serde_json::Value;

/// Text as JSON text.
pub(super) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// Text as it stands within JSON text.
pub(super) fn within_quotes(text: &str) -> String {
    let quoted = quoted(text);
    quoted[1..quoted.len() - 1].to_owned()
}
