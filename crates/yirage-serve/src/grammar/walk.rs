//! Answers of a form by chance, as a model would write them that knows nothing: what fuzzing and tests look at.

use super::Grammar;
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
        let compiled = self.compile_for(Vocabulary::of_bytes)?;
        let walk = |seed| Some(walk(compiled.constraint()?.as_mut(), seed, most));
        Ok(seeds.filter_map(walk).collect())
    }
}

fn walk(held: &mut dyn Constraint, seed: u64, most: usize) -> Walked {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0xd1b5_4a32_d192_ed03;
    let mut chance = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from((state >> 11) % below as u64).unwrap_or_default()
    };
    let mut text = Vec::new();
    loop {
        let mut allowed = TokenMask::none(BYTES as usize + 1);
        held.fill(&mut allowed);
        // What closes something is rarer than it has to be for answers that end.
        let closers = [BYTES, u32::from(b'"'), u32::from(b'}'), u32::from(b']')];
        let closing: Vec<u32> = closers.into_iter().filter(|id| allowed.allows(*id)).collect();
        let all: Vec<u32> = (0..=BYTES).filter(|id| allowed.allows(*id)).collect();
        let hurry = if text.len() > most / 2 { 9 } else { 3 };
        let from = if !closing.is_empty() && chance(10) < hurry { &closing } else { &all };
        match from.get(chance(from.len().max(1))).copied() {
            None => return Walked::Stuck(text),
            Some(BYTES) => return Walked::Ended(text),
            Some(_) if text.len() >= most => return Walked::Cut(text),
            Some(byte) => {
                held.accept(byte);
                text.extend(u8::try_from(byte));
            }
        }
    }
}
