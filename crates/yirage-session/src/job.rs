//! What a caller asks for.

use yirage_engine::Request;

/// A request with what the engine does not know.
#[derive(Debug)]
pub struct Job {
    /// Ids, and how the next ones are chosen.
    pub request: Request,
    /// Strings that end the text and are not part of it.
    pub stops: Vec<String>,
}

impl Job {
    /// A job without stop strings.
    pub fn new(request: Request) -> Job {
        Job { request, stops: Vec::new() }
    }
}
