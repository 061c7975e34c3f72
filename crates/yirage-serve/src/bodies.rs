//! What the parsers of bodies say, without a model and without a server: for fuzzing them, and for whoever wants to look at
//! a request before it is sent.

use crate::answers::ErrorForm;
use crate::endpoints::ENDPOINTS;
use crate::grammar::Grammar;
use crate::vocabulary::{BYTES, Vocabulary};
use serde_json::Value;
use yirage_engine::sampling::TokenMask;

/// What a parser says of a body.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It is a request. Whether a model can answer it is another matter.
    Taken {
        /// The fields that change nothing, as the header `x-yirage-ignored` names them.
        ignored: Vec<String>,
    },
    /// It is none.
    Refused {
        /// The status of the response.
        status: u16,
        /// Its object, in the form of the path's protocol.
        error: Value,
    },
}

/// What the parser of a path, as `/openapi.json` lists it, says of a body; none where the path takes no body.
pub fn read_body(path: &str, body: &[u8]) -> Option<Verdict> {
    let endpoint = ENDPOINTS.iter().find(|endpoint| endpoint.path == path && endpoint.body.is_some())?;
    Some(match (endpoint.body.as_ref()?.check)(body) {
        Ok(mut ignored) => {
            ignored.sort();
            ignored.dedup();
            Verdict::Taken { ignored }
        }
        Err(error) => Verdict::Refused { status: error.status.as_u16(), error: ErrorForm::of(path).object(&error) },
    })
}

/// The paths that take bodies.
pub fn body_paths() -> impl Iterator<Item = &'static str> {
    ENDPOINTS.iter().filter(|endpoint| endpoint.body.is_some()).map(|endpoint| endpoint.path)
}

/// What is said of the form that a body asks for in the fields of forms (`response_format`, `guided_regex` and the like),
/// once it is compiled for a vocabulary in which each byte is a token.
pub fn read_form(body: &[u8]) -> Verdict {
    match Grammar::of_body(body).and_then(|grammar| grammar.compile_for(Vocabulary::of_bytes)) {
        Ok(_) => Verdict::Taken { ignored: Vec::new() },
        Err(error) => Verdict::Refused { status: error.status.as_u16(), error: error.openai() },
    }
}

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

/// Answers of the form that a body asks for as in [`read_form`], one of each seed and so many bytes long at most: each
/// byte is one of those that the form allows there, by chance. None where any text will do.
///
/// # Errors
/// As [`read_form`].
pub fn walk_form(body: &[u8], seeds: std::ops::Range<u64>, most: usize) -> Result<Vec<Walked>, Verdict> {
    let compiled = Grammar::of_body(body).and_then(|grammar| grammar.compile_for(Vocabulary::of_bytes));
    let compiled =
        compiled.map_err(|error| Verdict::Refused { status: error.status.as_u16(), error: error.openai() })?;
    let walk = |seed| Some(walk(compiled.constraint()?.as_mut(), seed, most));
    Ok(seeds.filter_map(walk).collect())
}

fn walk(held: &mut dyn yirage_engine::sampling::Constraint, seed: u64, most: usize) -> Walked {
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
