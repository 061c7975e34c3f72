//! Where a sequence is on its way.

/// Where a sequence is. The diagram is in the module's documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Not admitted yet; holds nothing.
    Waiting,
    /// One token a step: the last one sampled.
    Decode,
    /// Computing its prompt, or everything it had before it was preempted.
    Prefill,
    /// Lost its blocks to a sequence of higher rank; holds nothing, keeps its tokens.
    Preempted,
    /// Over; only a sequence that is being reported is ever in this state.
    Finished,
}

impl Phase {
    /// Whether the state diagram has an arrow from `self` to `next`.
    pub fn may_become(self, next: Phase) -> bool {
        match (self, next) {
            (Phase::Finished, _) => false,
            (_, Phase::Finished) => true,
            (Phase::Waiting | Phase::Preempted, Phase::Prefill) => true,
            (Phase::Prefill, Phase::Decode | Phase::Preempted) => true,
            (Phase::Decode, Phase::Preempted) => true,
            _ => false,
        }
    }
}
