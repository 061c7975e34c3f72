//! Which tokens a sequence may get in a step: what its own lists leave, and what its constraint allows.
//!
//! It deliberately knows nothing of batches and rows of logits.

use crate::sampling::{Constraint, Restriction, TokenMask};

/// What restricts the tokens of one sequence, and the masks of the step that is being sampled.
pub(super) struct Restraint {
    restriction: Restriction,
    constraint: Option<Box<dyn Constraint>>,
    /// The newest tokens, as many as the restriction looks at.
    recent: Vec<u32>,
    vocabulary: usize,
    /// Of the sequence's next token, and of the one behind each draft. They are used again in each step.
    masks: Vec<TokenMask>,
    /// How many of them are this step's.
    looked: usize,
}

impl Restraint {
    pub(super) fn new(
        restriction: Restriction,
        constraint: Option<Box<dyn Constraint>>,
        prompt: &[u32],
        vocabulary: usize,
    ) -> Restraint {
        let recent = prompt[prompt.len().saturating_sub(restriction.looked_at())..].to_vec();
        Restraint { restriction, constraint, recent, vocabulary, masks: Vec::new(), looked: 0 }
    }

    /// Whether the tokens before a position decide which may stand there.
    pub(super) fn looks_back(&self) -> bool {
        self.constraint.is_some() || self.restriction.looks_back()
    }

    /// Takes the sequence's next token.
    pub(super) fn push(&mut self, token: u32) {
        if let Some(constraint) = &mut self.constraint {
            constraint.accept(token);
        }
        if self.restriction.looks_back() {
            if self.recent.len() >= self.restriction.looked_at() {
                self.recent.remove(0);
            }
            self.recent.push(token);
        }
    }

    /// Finds what may stand at `position`, and behind each of `drafts` if those before it come true. Behind a draft that
    /// may not stand at its place nothing comes of the rows, so nothing is found there.
    pub(super) fn look(&mut self, position: u32, drafts: &[u32]) {
        self.looked = 0;
        let restricted = |at: u32| self.restriction.concerns(at);
        if self.constraint.is_none() && !(position..).take(1 + drafts.len()).any(restricted) {
            return;
        }
        let mut accepted = 0;
        for at in 0..=drafts.len() {
            self.fill(position, &drafts[..at]);
            let Some(&draft) = drafts.get(at).filter(|&&draft| self.masks[at].allows(draft)) else { break };
            if let Some(constraint) = &mut self.constraint {
                constraint.accept(draft);
                accepted += 1;
            }
        }
        if let Some(constraint) = self.constraint.as_mut().filter(|_| accepted > 0) {
            constraint.roll_back(accepted);
        }
    }

    /// Makes the mask of the row behind `drafts`, which the constraint has accepted.
    fn fill(&mut self, position: u32, drafts: &[u32]) {
        let at = drafts.len();
        if self.masks.len() == at {
            self.masks.push(TokenMask::none(self.vocabulary));
        }
        let mask = &mut self.masks[at];
        mask.set_all(self.constraint.is_none());
        if let Some(constraint) = &mut self.constraint {
            constraint.fill(mask);
        }
        let before = drafts.iter().rev().chain(self.recent.iter().rev());
        self.restriction.apply(position + at as u32, before, mask);
        self.looked = at + 1;
    }

    /// What may stand behind `at` drafts of the step; none where that is everything.
    pub(super) fn mask(&self, at: usize) -> Option<&TokenMask> {
        self.masks[..self.looked].get(at)
    }

    /// Whether nothing may be the sequence's next token.
    pub(super) fn allows_none(&self) -> bool {
        self.mask(0).is_some_and(|mask| mask.allows_none(self.vocabulary))
    }
}
