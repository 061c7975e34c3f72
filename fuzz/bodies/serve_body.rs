//! A path in the first line and any bytes as the body sent to it: the parser takes it or says why not, in the form of the
//! path's protocol, and says the same again. Shared by the fuzz target and the test that replays its corpus.

use yirage_serve::{BodyVerdict, read_body};

/// Reads the body without a model.
pub(crate) fn run(data: &[u8]) {
    let Some(end) = data.iter().position(|byte| *byte == b'\n') else { return };
    let (path, body) = (&data[..end], &data[end + 1..]);
    let Ok(path) = std::str::from_utf8(path) else { return };
    let Some(said) = read_body(path, body) else { return };
    if let BodyVerdict::Refused { status, error } = &said {
        assert!((400..500).contains(status), "{path} is answered by {status}: {error}");
        // ollama's errors are texts, those of the others objects with one.
        let message = error["error"]["message"].as_str().or(error["error"].as_str());
        assert!(message.is_some_and(|message| !message.is_empty()), "{path}: {error}");
    }
    assert_eq!(read_body(path, body), Some(said), "{path}");
}
