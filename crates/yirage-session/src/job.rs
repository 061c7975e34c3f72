//! What a caller asks for.

use crate::pictures::PlacedPicture;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;
use yirage_engine::Request;
use yirage_engine::sampling::Constraint;

/// A request with what the engine does not know.
pub struct Job {
    /// Ids, and how the next ones are chosen.
    pub request: Request,
    /// Pictures of the prompt, in order: what [`PictureReader::place`](crate::PictureReader::place) gives.
    pub pictures: Vec<PlacedPicture>,
    /// Strings that end the text and are not part of it.
    pub stops: Vec<String>,
    /// Special tokens that are shown in the text, by their names: marks that the caller reads.
    pub marks: Arc<[u32]>,
    /// What restricts its tokens beside the request's own lists: a grammar.
    pub constraint: Option<Box<dyn Constraint>>,
    /// When the answer ends, wherever it is.
    pub deadline: Option<Instant>,
}

impl Job {
    /// A job of a request alone.
    pub fn new(request: Request) -> Job {
        Job {
            request,
            pictures: Vec::new(),
            stops: Vec::new(),
            marks: Arc::default(),
            constraint: None,
            deadline: None,
        }
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job")
            .field("request", &self.request)
            .field("pictures", &self.pictures.len())
            .field("stops", &self.stops)
            .field("marks", &self.marks)
            .field("constrained", &self.constraint.is_some())
            .field("deadline", &self.deadline)
            .finish()
    }
}
