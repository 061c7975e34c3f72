//! What the parsers of bodies say, without a model and without a server: for fuzzing them, and for whoever wants to look at
//! a request before it is sent.

use crate::answers::ErrorForm;
use crate::endpoints::ENDPOINTS;
use crate::grammar::Grammar;
pub use crate::grammar::Walked;
use crate::vocabulary::Vocabulary;
use serde_json::Value;

/// What a parser says of a body.
#[derive(Clone, Debug, PartialEq)]
pub enum BodyVerdict {
    /// It is a request. Whether a model can answer it is another matter.
    Taken {
        /// The fields that change nothing, as the header `x-yirage-ignored` names them.
        ignored: Vec<String>,
    },
    /// It is none.
    Refused {
        /// The status of the response.
        status: u16,
        /// Its object, in the form of the path's protocol.
        error: Value,
    },
}

/// What the parser of a path, as `/openapi.json` lists it, says of a body; none where the path takes no body.
pub fn read_body(path: &str, body: &[u8]) -> Option<BodyVerdict> {
    let endpoint = ENDPOINTS.iter().find(|endpoint| endpoint.path == path && endpoint.body.is_some())?;
    Some(match (endpoint.body.as_ref()?.check)(body) {
        Ok(mut ignored) => {
            ignored.sort();
            ignored.dedup();
            BodyVerdict::Taken { ignored }
        }
        Err(error) => BodyVerdict::Refused { status: error.status.as_u16(), error: ErrorForm::of(path).object(&error) },
    })
}

/// The paths that take bodies.
pub fn body_paths() -> impl Iterator<Item = &'static str> {
    ENDPOINTS.iter().filter(|endpoint| endpoint.body.is_some()).map(|endpoint| endpoint.path)
}

/// What is said of the form that a body asks for in the fields of forms (`response_format`, `guided_regex` and the like),
/// once it is compiled for a vocabulary in which each byte is a token.
pub fn read_form(body: &[u8]) -> BodyVerdict {
    match Grammar::of_body(body).and_then(|grammar| grammar.compile_for(Vocabulary::of_bytes)) {
        Ok(_) => BodyVerdict::Taken { ignored: Vec::new() },
        Err(error) => BodyVerdict::Refused { status: error.status.as_u16(), error: error.openai() },
    }
}

/// Answers of the form that a body asks for as in [`read_form`], one of each seed and so many bytes long at most: each
/// byte is one of those that the form allows there, by chance. None where any text will do.
///
/// # Errors
/// As [`read_form`].
pub fn walk_form(body: &[u8], seeds: std::ops::Range<u64>, most: usize) -> Result<Vec<Walked>, BodyVerdict> {
    let walked = Grammar::of_body(body).and_then(|grammar| grammar.walked(seeds, most));
    walked.map_err(|error| BodyVerdict::Refused { status: error.status.as_u16(), error: error.openai() })
}
