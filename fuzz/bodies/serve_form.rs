//! Any bytes as a body that asks for a form: JSON of a schema, a regular expression, texts, a grammar in GBNF or Lark. It is
//! compiled for the bytes as tokens, or refused with the field's name. Shared by the fuzz target and the test that replays
//! its corpus.

use yirage_serve::{BodyVerdict, read_form};

/// Reads and compiles the form.
pub(crate) fn run(data: &[u8]) {
    if let BodyVerdict::Refused { status, error } = read_form(data) {
        let message = error["error"]["message"].as_str();
        assert!(status == 400 && message.is_some_and(|message| !message.is_empty()), "{status}: {error}");
        assert!(!error.to_string().contains("please report this"), "{error}");
    }
}
