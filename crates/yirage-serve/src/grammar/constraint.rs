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
    use crate::grammar::{Grammar, GrammarKind, Walked};
    use crate::vocabulary::{BYTES, Vocabulary};
    use serde_json::{Value, json};
    use std::fmt::{Debug, Write};
    use std::sync::{Arc, Mutex};
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

    /// What is logged in the meantime, a line for each event.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<String>>);

    impl tracing::field::Visit for Log {
        fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn Debug) {
            write!(self.0.lock().unwrap(), "{field}={value:?} ").unwrap();
        }
    }

    impl tracing::Subscriber for Log {
        fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
            tracing::span::Id::from_u64(1)
        }

        fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

        fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

        fn event(&self, event: &tracing::Event<'_>) {
            event.record(&mut self.clone());
            self.0.lock().unwrap().push('\n');
        }

        fn enter(&self, _: &tracing::span::Id) {}

        fn exit(&self, _: &tracing::span::Id) {}
    }

    type LowerLimit = fn(&mut llguidance::api::ParserLimits);

    /// Rows with room for less than the grammar: the library's limits of items, of rows and of lexers, each met behind some
    /// bytes of an answer. Nothing may follow then, not even an end, which the log says without the answer.
    #[test]
    fn a_limit_within_an_answer_allows_nothing_more_and_is_logged() {
        let names = (0..60).map(|at| (format!("secret{at}"), json!({"type": "integer"})));
        let properties: serde_json::Map<String, Value> = names.collect();
        let inner = json!({"type": "object", "properties": properties, "additionalProperties": false});
        let outer = json!({"type": "object", "properties": {"secrets": inner}, "required": ["secrets"], "additionalProperties": false});
        let grammar = Grammar::new(GrammarKind::Schema(outer), "guided_json");
        let lower: [(&str, LowerLimit); 3] = [
            ("items of a row", |limits| limits.max_items_in_row = 20),
            ("items of a mask", |limits| limits.step_max_items = 40),
            ("states of a lexer", |limits| limits.max_lexer_states = 40),
        ];
        for (what, lower) in lower {
            let mut vocabulary = Vocabulary::of_bytes().unwrap();
            lower(Arc::get_mut(&mut vocabulary).unwrap().factory.limits_mut());
            let compiled = grammar.compile_for(|| Ok(vocabulary.clone())).unwrap();
            let log = Log::default();
            let walked =
                tracing::subscriber::with_default(log.clone(), || compiled.walked(&vocabulary, 0..3, 500, &[]));
            let said = log.0.lock().unwrap().clone();
            for walked in walked {
                assert!(matches!(&walked, Walked::Stuck(text) if text.starts_with(b"{")), "{what}: {walked:?}");
            }
            assert!(said.contains("a grammar allows no token any more"), "{what}: {said}");
            assert!(!said.contains("secret"), "{what}: {said}");
        }
    }
}
