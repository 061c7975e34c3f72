//! What restricts the tokens of one sequence from outside: a grammar, a schema.

use super::mask::TokenMask;

/// Restricts the tokens of one sequence. It follows the sequence token by token, and says which may come next.
///
/// It is asked once for each row that a step samples, while the device computes the step. Guessed tokens are accepted
/// one by one, each allowed by the mask before it, and all of them are taken back before the step is over; so it has to
/// remember as many tokens as a step verifies, [`MAX_DRAFTS`](crate::limits::MAX_DRAFTS) at most. The tokens of the
/// prompt are never accepted.
pub trait Constraint: Send {
    /// Allows the tokens that may come next. `allowed` allows none when this is called. If it stays so, the sequence ends
    /// with [`FinishReason::NothingAllowed`](crate::scheduler::FinishReason::NothingAllowed).
    fn fill(&mut self, allowed: &mut TokenMask);

    /// Takes the sequence's next token.
    fn accept(&mut self, token: u32);

    /// Takes the newest accepted tokens back, `tokens` of them.
    fn roll_back(&mut self, tokens: usize);
}
