//! Answers of a form by chance, as a model would write them that knows nothing: what fuzzing and tests look at.

use super::{CompiledGrammar, Grammar};
use crate::error::ApiError;
use crate::vocabulary::{BYTES, Vocabulary};
use yirage_engine::sampling::{Constraint, TokenMask};

/// An answer of a form, as a model would write it that knows nothing.
#[derive(Clone, Debug, PartialEq)]
pub enum Walked {
    /// It ended by itself.
    Ended(Vec<u8>),
    /// It was longer than was asked for.
    Cut(Vec<u8>),
    /// Nothing could follow, and it could not end.
    Stuck(Vec<u8>),
}

impl Grammar {
    /// Answers in this form, one of each seed and so many bytes long at most, each byte one of those that the form allows
    /// there. None where any text will do.
    ///
    /// # Errors
    /// A form that cannot be enforced.
    pub(crate) fn walked(&self, seeds: std::ops::Range<u64>, most: usize) -> Result<Vec<Walked>, ApiError> {
        let vocabulary = Vocabulary::of_bytes().map_err(|why| self.refused(&why))?;
        let compiled = self.compile_for(|| Ok(vocabulary.clone()))?;
        Ok(compiled.walked(&vocabulary, seeds, most, &[]))
    }
}

impl CompiledGrammar {
    /// The same with a vocabulary of bytes and marks; `ends` are texts that are written at times where they may stand, for
    /// chance alone writes none.
    pub(crate) fn walked(
        &self,
        vocabulary: &Vocabulary,
        seeds: std::ops::Range<u64>,
        most: usize,
        ends: &[String],
    ) -> Vec<Walked> {
        let walk = |seed| {
            let held = self.constraint()?;
            Some(
                Walk {
                    constraint: held,
                    vocabulary,
                    allowed: TokenMask::none(0),
                    text: Vec::new(),
                    state: seed_state(seed),
                }
                .finished(most, ends),
            )
        };
        seeds.filter_map(walk).collect()
    }
}

fn seed_state(seed: u64) -> u64 {
    seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0xd1b5_4a32_d192_ed03
}

/// An answer on its way.
struct Walk<'a> {
    constraint: Box<dyn Constraint>,
    vocabulary: &'a Vocabulary,
    allowed: TokenMask,
    text: Vec<u8>,
    state: u64,
}

impl Walk<'_> {
    fn chance(&mut self, below: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        usize::try_from((self.state >> 11) % below as u64).unwrap_or_default()
    }

    fn look(&mut self) {
        self.allowed = TokenMask::none(self.vocabulary.size() as usize);
        self.constraint.fill(&mut self.allowed);
    }

    fn take(&mut self, token: u32) {
        self.constraint.accept(token);
        self.text.extend_from_slice(self.vocabulary.bytes(token));
    }

    /// Writes as much of a text as may stand here.
    fn write(&mut self, text: &str) {
        for byte in text.bytes() {
            self.look();
            if !self.allowed.allows(u32::from(byte)) {
                return;
            }
            self.take(u32::from(byte));
        }
    }

    fn finished(mut self, most: usize, ends: &[String]) -> Walked {
        loop {
            let hurry = if self.text.len() > most / 2 { 9 } else { 3 };
            if !ends.is_empty() && self.chance(10) < hurry {
                let end = self.chance(ends.len());
                self.write(&ends[end]);
            }
            self.look();
            // What closes something is rarer than it has to be for answers that end.
            let closers = [BYTES, u32::from(b'"'), u32::from(b'}'), u32::from(b']')];
            let closers = closers.into_iter().chain(BYTES + 1..self.vocabulary.size());
            let closing: Vec<u32> = closers.filter(|id| self.allowed.allows(*id)).collect();
            let all: Vec<u32> = (0..self.vocabulary.size()).filter(|id| self.allowed.allows(*id)).collect();
            let from = if !closing.is_empty() && self.chance(10) < hurry { &closing } else { &all };
            match from.get(self.chance(from.len().max(1))).copied() {
                None => return Walked::Stuck(self.text),
                Some(BYTES) => return Walked::Ended(self.text),
                Some(_) if self.text.len() >= most => return Walked::Cut(self.text),
                Some(token) => self.take(token),
            }
        }
    }
}
