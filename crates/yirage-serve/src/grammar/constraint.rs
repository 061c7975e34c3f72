//! A grammar for one model, and the constraint that holds an answer to it.

use crate::vocabulary::{MAX_SYMBOLS, Vocabulary};
use llguidance::api::TopLevelGrammar;
use llguidance::{Matcher, TokenParser};
use std::sync::Arc;
use yirage_engine::sampling::{Constraint, TokenMask};

/// A grammar for one model; none where any text will do.
pub(crate) struct CompiledGrammar(Option<GrammarParser>);

struct GrammarParser {
    parser: TokenParser,
    vocabulary: Arc<Vocabulary>,
}

impl CompiledGrammar {
    /// Any text will do.
    pub(crate) fn free() -> CompiledGrammar {
        CompiledGrammar(None)
    }

    /// A grammar for the tokens of a model.
    ///
    /// # Errors
    /// What cannot be enforced.
    pub(super) fn new(vocabulary: &Arc<Vocabulary>, grammar: TopLevelGrammar) -> Result<CompiledGrammar, String> {
        let parser = vocabulary.factory.create_parser(grammar).map_err(|why| brief(&why.to_string()))?;
        // What is too large for the library shows at the first token.
        let mut first = Matcher::new(Ok(parser.deep_clone()));
        match first.compute_mask_or_eos() {
            Ok(mask) if !mask.is_zero() => {}
            Ok(_) => return Err("no answer can have it".into()),
            Err(_) => return Err("it is too large for the first token of an answer".into()),
        }
        Ok(CompiledGrammar(Some(GrammarParser { parser, vocabulary: vocabulary.clone() })))
    }

    /// A constraint for one answer.
    pub(crate) fn constraint(&self) -> Option<Box<dyn Constraint>> {
        let prepared = self.0.as_ref()?;
        let matcher = Matcher::new(Ok(prepared.parser.deep_clone()));
        Some(Box::new(GrammarConstraint { matcher, vocabulary: prepared.vocabulary.clone() }))
    }
}

/// An error of the library without the state that it appends.
fn brief(why: &str) -> String {
    let large = if why.contains("(number of symbols) too big") {
        format!("it has more than {MAX_SYMBOLS} symbols as a grammar")
    } else if why.contains("schema too large") {
        "it has too many schemas where its alternatives are multiplied out".into()
    } else {
        String::new()
    };
    if !large.is_empty() {
        let remedy = "have fewer alternatives (`anyOf`, `oneOf`, dependencies) of objects, or fewer properties in them";
        return format!("{large}; {remedy}");
    }
    let end = ["<backtrace>", "<state>"].iter().filter_map(|mark| why.find(mark)).min().unwrap_or(why.len());
    why.chars().take(why.get(..end).unwrap_or(why).chars().count().min(600)).collect::<String>().trim_end().to_owned()
}

/// An answer that is held to a grammar. After an error it allows no token, which ends the answer as one without its form.
struct GrammarConstraint {
    matcher: Matcher,
    vocabulary: Arc<Vocabulary>,
}

impl Constraint for GrammarConstraint {
    fn fill(&mut self, allowed: &mut TokenMask) {
        let Ok(mask) = self.matcher.compute_mask_or_eos() else {
            // A limit of the library's that an answer has met. What the library says of it quotes the answer.
            tracing::warn!(reason = ?self.matcher.stop_reason(), "a grammar allows no token any more");
            return;
        };
        allowed.words_mut().iter_mut().zip(mask.as_slice()).for_each(|(to, from)| *to = *from);
        let ends = &self.vocabulary.ends;
        if ends.first().is_some_and(|end| allowed.allows(*end)) {
            ends.iter().for_each(|end| allowed.allow(*end));
        }
    }

    fn accept(&mut self, token: u32) {
        let ends = &self.vocabulary.ends;
        let token = if ends.contains(&token) { ends.first().copied().unwrap_or(token) } else { token };
        // What the library says of it quotes the answer, which is nobody's but the client's.
        if self.matcher.consume_token(token).is_err() {
            tracing::warn!("a grammar did not take a token");
        }
    }

    fn roll_back(&mut self, tokens: usize) {
        if self.matcher.rollback(tokens).is_err() {
            tracing::warn!(tokens, "a grammar could not go back");
        }
    }
}
