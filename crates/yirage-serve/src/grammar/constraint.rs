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
        Some(Box::new(GrammarConstraint { matcher, vocabulary: prepared.vocabulary.clone(), ended: 0 }))
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
    /// Ends that were accepted behind a text that nothing can follow, of which the library knows nothing.
    ended: usize,
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
        // It stops by itself where nothing can follow, and then takes an end for an error that it does not come back from.
        if ends.contains(&token) && self.matcher.is_stopped() && self.matcher.stop_reason().is_ok() {
            self.ended += 1;
            return;
        }
        let token = if ends.contains(&token) { ends.first().copied().unwrap_or(token) } else { token };
        // What the library says of it quotes the answer, which is nobody's but the client's.
        if self.matcher.consume_token(token).is_err() {
            tracing::warn!("a grammar did not take a token");
        }
    }

    fn roll_back(&mut self, tokens: usize) {
        let ended = self.ended.min(tokens);
        self.ended -= ended;
        if self.matcher.rollback(tokens - ended).is_err() {
            tracing::warn!(tokens, "a grammar could not go back");
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::grammar::{Grammar, GrammarKind};
    use crate::vocabulary::{BYTES, Vocabulary};
    use serde_json::{Value, json};
    use yirage_engine::sampling::{Constraint, TokenMask};

    fn held(schema: Value) -> Box<dyn Constraint> {
        let grammar = Grammar::new(GrammarKind::Schema(schema), "guided_json");
        grammar.compile_for(Vocabulary::of_bytes).unwrap().constraint().unwrap()
    }

    fn allowed(held: &mut dyn Constraint, token: u32) -> bool {
        let mut allowed = TokenMask::none(257);
        held.fill(&mut allowed);
        allowed.allows(token)
    }

    /// Drafts may end an answer that then goes on in another way, or ends there after all.
    #[test]
    fn an_end_is_accepted_and_taken_back() {
        let quote = u32::from(b'"');
        for (schema, drafts, instead) in [
            (json!({"enum": ["a", "ab"]}), vec![u32::from(b'a'), quote, BYTES], u32::from(b'a')),
            (json!({"enum": ["a", "ab"]}), vec![u32::from(b'a'), quote, BYTES, BYTES], u32::from(b'a')),
            (json!({"type": "string", "maxLength": 3}), vec![quote, BYTES], u32::from(b'z')),
        ] {
            let mut held = held(schema.clone());
            held.accept(quote);
            for draft in &drafts {
                assert!(allowed(&mut *held, *draft), "{schema}");
                held.accept(*draft);
            }
            held.roll_back(drafts.len());
            assert!(allowed(&mut *held, instead), "{schema}");
            held.accept(instead);
            assert!(allowed(&mut *held, quote), "{schema}");
            held.accept(quote);
            held.accept(BYTES);
            assert!(allowed(&mut *held, BYTES), "{schema}");
        }
    }

    /// A number that may end may go on as well.
    #[test]
    fn an_end_behind_what_may_go_on_is_taken_back() {
        let mut held = held(json!({"type": "integer"}));
        held.accept(u32::from(b'1'));
        assert!(allowed(&mut *held, BYTES));
        held.accept(BYTES);
        held.roll_back(1);
        assert!(allowed(&mut *held, u32::from(b'2')));
    }
}
