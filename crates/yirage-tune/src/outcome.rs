//! What came of a search.

use yirage_compile::equal::Certificate;
use yirage_ir::Graph;

/// What came of a search.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// The fastest graph that is proved to be equal: the input, or a candidate.
    pub graph: Graph,
    /// What shows that it is equal; none where the input stays.
    pub certificate: Option<Certificate>,
    /// The rules that made it of the input.
    pub rules: Vec<String>,
    /// Every candidate that was looked at closer, the one expected to be the fastest first.
    pub measured: Vec<Measured>,
    /// What should be known of the way here.
    pub notes: Vec<String>,
    /// Where this is from.
    pub told: Told,
}

impl Outcome {
    /// Whether the input graph stays.
    pub fn input_stays(&self) -> bool {
        self.certificate.is_none()
    }
}

/// Where a result is from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Told {
    /// It was searched for.
    Searched,
    /// This process had it.
    Memory,
    /// It lay on disk.
    Disk,
}

/// What became of a candidate.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    /// The rules that made it.
    pub rules: Vec<String>,
    /// Nanoseconds that it was expected to take.
    pub expected_ns: f64,
    /// What became of it.
    pub verdict: Verdict,
}

/// What became of a candidate.
#[derive(Clone, PartialEq, Debug)]
pub enum Verdict {
    /// There is no certificate for it.
    Unproved(String),
    /// It was not run, or could not be.
    NotRun(String),
    /// It was measured beside the input.
    Timed {
        /// The median of its time divided by the input's.
        ratio: f64,
        /// The input's median, in nanoseconds.
        input_ns: f64,
        /// Its own.
        candidate_ns: f64,
    },
}
