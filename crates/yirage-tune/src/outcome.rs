//! What came of a search.

use crate::comparison::PairedComparison;
use std::fmt;
use yirage_ir::Graph;
use yirage_search::equal::Certificate;

/// What came of a search.
#[derive(Clone, PartialEq, Debug)]
pub struct SearchOutcome {
    /// The fastest graph that is proved to be equal: the input, or a candidate.
    pub graph: Graph,
    /// What shows that it is equal; none where the input stays.
    pub certificate: Option<Certificate>,
    /// The rules that made it of the input.
    pub rules: Vec<String>,
    /// Every candidate that was looked at closer, the one expected to be the fastest first.
    pub measured: Vec<CandidateResult>,
    /// What should be known of the way here.
    pub notes: Vec<String>,
    /// Where this is from.
    pub origin: SearchResultOrigin,
}

impl SearchOutcome {
    /// Whether the input graph stays.
    pub fn input_stays(&self) -> bool {
        self.certificate.is_none()
    }

    /// Whether something else was at work while any candidate was measured.
    pub(crate) fn is_disturbed(&self) -> bool {
        self.measured.iter().any(|measured| measured.verdict.is_disturbed())
    }
}

/// Where a result is from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SearchResultOrigin {
    /// It was searched for.
    Searched,
    /// This process had it.
    Memory,
    /// It lay on disk.
    Disk,
}

/// What became of a candidate.
#[derive(Clone, PartialEq, Debug)]
pub struct CandidateResult {
    /// The rules that made it.
    pub rules: Vec<String>,
    /// Nanoseconds that it was expected to take.
    pub expected_ns: f64,
    /// What became of it.
    pub verdict: CandidateVerdict,
}

/// What became of a candidate.
#[derive(Clone, PartialEq, Debug)]
pub enum CandidateVerdict {
    /// There is no certificate for it.
    Unproved(String),
    /// It was not run, or could not be.
    NotRun(String),
    /// It was measured beside the input.
    Timed {
        /// What was seen first.
        first: PairedComparison,
        /// What was seen of both graphs when they were loaded and measured once more, before the candidate was taken.
        second: Option<PairedComparison>,
    },
}

impl CandidateVerdict {
    /// Whether it was measured while something else was at work.
    pub(crate) fn is_disturbed(&self) -> bool {
        let CandidateVerdict::Timed { first, second } = self else { return false };
        first.is_disturbed() || second.is_some_and(|look| look.is_disturbed())
    }
}

impl fmt::Display for CandidateVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, second) = match self {
            CandidateVerdict::Unproved(why) => return write!(f, "not proved equal: {why}"),
            CandidateVerdict::NotRun(why) => return write!(f, "not run: {why}"),
            CandidateVerdict::Timed { first, second } => (first, second),
        };
        write!(f, "{first}; ")?;
        if let Some(why) = first.lost() {
            return write!(f, "not taken: {why}");
        }
        let Some(second) = second else { return f.write_str("it won, and was not looked at again") };
        write!(f, "looked at again: {second}; ")?;
        match second.lost() {
            Some(why) => write!(f, "not taken: {why}"),
            None => f.write_str("taken"),
        }
    }
}
