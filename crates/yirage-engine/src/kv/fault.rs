//! Planted bugs: realistic mistakes that the simulation tests switch in one at a time to prove they would notice.
//!
//! In a build that is not this crate's own unit test a [`Faults`] is empty, [`Faults::has`] is the constant `false`
//! and every branch on it disappears.

/// One mistake that the bookkeeping could make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A slot points one position past the token's own.
    SlotOffByOne,
    /// A window group drops a block while its last position is still one token inside the window.
    WindowOneTokenEarly,
    /// A window group drops what the end of the chunk no longer sees, not what its beginning no longer sees.
    WindowFreedForChunkEnd,
    /// A prefix hit takes blocks without raising their reference counts.
    HitWithoutReference,
    /// A block's key covers its own tokens but not those before it.
    KeyWithoutParent,
    /// A prefix hit does not ask window groups whether their blocks are still there.
    HitIgnoresWindow,
    /// A prompt that is cached to the last token leaves nothing to compute.
    FullHitLeavesNothing,
    /// A block is published when its last position has not been computed yet.
    PublishOneTokenEarly,
    /// An evicted block stays findable under its old key.
    EvictionKeepsKey,
    /// A preempted sequence gives its blocks back but goes on using its table.
    PreemptionKeepsTable,
    /// The next prefill chunk begins one token too late.
    ChunkSkipsToken,
    /// A cancelled sequence's blocks are never given back.
    CancelLeaks,
    /// A step may hold one token more than its budget.
    BudgetPlusOne,
    /// Preemption takes the oldest sequence instead of the newest.
    PreemptOldest,
    /// A resumed sequence forgets the tokens it generated before its preemption.
    ResumeForgetsOutput,
    /// Requests with different salts share blocks.
    SaltIgnored,
    /// Blocks that drafts filled are published before the drafts are verified.
    RejectedStayPublished,
    /// Rejected drafts count as computed positions.
    RejectedStayCached,
    /// A window group drops what the accepted drafts would no longer see, before they are verified.
    WindowFreedForDrafts,
    /// Blocks of rejected drafts are not given back.
    DraftBlocksLeak,
    /// Drafts take blocks from the prefix cache.
    DraftsEvict,
    /// Drafts take tokens and rows beyond what a step may have.
    DraftsIgnoreBudget,
    /// A run of accepted drafts goes on past a token that ends the sequence.
    RunPassesStop,
}

/// The mistake switched in, if any.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    #[cfg(test)]
    pub(crate) planted: Option<Fault>,
}

impl Faults {
    /// Whether `fault` is switched in; always false outside this crate's unit tests.
    #[cfg(test)]
    pub(crate) fn has(self, fault: Fault) -> bool {
        self.planted == Some(fault)
    }

    /// Whether `fault` is switched in; always false outside this crate's unit tests.
    #[cfg(not(test))]
    pub(crate) const fn has(self, _fault: Fault) -> bool {
        false
    }
}
