//! What the passes decide, and why.
//!
//! A pass tells its decisions to [`Decisions`], which keeps them only where somebody listens: reasons are made up by then
//! and cost nothing otherwise. Knows no pass.

/// Whether a pass did what it looked at.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PassVerdict {
    /// It did.
    Done,
    /// It looked at it and left it as it was.
    Refused,
}

/// What a pass did to some values, or refused to do, and why.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Decision {
    /// Done or refused.
    pub verdict: PassVerdict,
    /// The values it is about, by their names in the graph. None where it is about the whole graph.
    pub values: Vec<String>,
    /// What was done or refused.
    pub what: String,
    /// Why.
    pub why: String,
}

/// One pass over a graph: what went in, what came out, and what was decided in between.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct PassDecisions {
    /// The pass's name.
    pub pass: &'static str,
    /// Nodes of the graph before it.
    pub before: usize,
    /// Nodes of the graph after it; as many as before where the pass failed.
    pub after: usize,
    /// In the order in which they were made.
    pub decisions: Vec<Decision>,
}

/// The decisions of one pass, where somebody listens.
#[derive(Debug)]
pub struct Decisions(Option<Vec<Decision>>);

impl Decisions {
    /// Nobody listens.
    pub fn unheard() -> Decisions {
        Decisions(None)
    }

    /// All are kept.
    pub fn heard() -> Decisions {
        Decisions(Some(Vec::new()))
    }

    /// Whether somebody listens.
    pub(crate) fn are_heard(&self) -> bool {
        self.0.is_some()
    }

    /// Keeps a decision, which is made only if somebody listens.
    pub(crate) fn tell(&mut self, decision: impl FnOnce() -> Decision) {
        if let Some(told) = &mut self.0 {
            told.push(decision());
        }
    }

    /// What was told.
    pub fn into_decisions(self) -> Vec<Decision> {
        self.0.unwrap_or_default()
    }
}

impl Decision {
    pub(crate) fn done(values: Vec<String>, what: impl Into<String>, why: impl Into<String>) -> Decision {
        Decision { verdict: PassVerdict::Done, values, what: what.into(), why: why.into() }
    }

    pub(crate) fn refused(values: Vec<String>, what: impl Into<String>, why: impl Into<String>) -> Decision {
        Decision { verdict: PassVerdict::Refused, values, what: what.into(), why: why.into() }
    }

    /// Of a pass that fuses nothing, because the options say so.
    pub(crate) fn fusion_is_off() -> Decision {
        Decision::refused(Vec::new(), "fusion", "it is turned off by the options")
    }
}
