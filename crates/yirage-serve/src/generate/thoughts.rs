//! Thoughts that end: within a budget of tokens, and before a form begins.
//!
//! A model marks the end of its thoughts. When a budget is used up the mark is all that it may write next. What an answer's
//! form is said of is what comes behind the mark, so a grammar waits for it.

use crate::error::ApiError;
use crate::fields::{Field, Fields, honoured};
use crate::models::Generator;
use crate::response_parser::Thoughts as Marks;
use crate::vocabulary::Vocabulary;
use serde_json::json;
use std::collections::VecDeque;
use std::sync::Arc;
use yirage_engine::limits::MAX_DRAFTS;
use yirage_engine::sampling::{Constraint, TokenMask};
use yirage_model::tokenizer::EncodeOptions;

/// vLLM's and llama.cpp's names of a budget.
pub(crate) const BUDGETS: &[Field] = &[
    honoured("thinking_token_budget", r#"{"type":["integer","null"],"minimum":-1}"#),
    honoured("thinking_budget_tokens", r#"{"type":["integer","null"],"minimum":-1}"#),
];

/// Tokens that thoughts may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Budget {
    pub(crate) tokens: u32,
    /// The field that says so.
    pub(crate) field: String,
}

impl Budget {
    /// The budget that one of these fields says; -1 is none.
    ///
    /// # Errors
    /// What is no number of tokens; two that differ.
    pub(crate) fn read(fields: &mut Fields, names: &[&str]) -> Result<Option<Budget>, ApiError> {
        let mut found: Option<Budget> = None;
        for name in names {
            fields.leave_out(name, &json!(-1));
            let Some(tokens) = fields.whole(name, "a number of tokens, or -1 for no limit")? else { continue };
            let field = fields.at(name);
            match &found {
                Some(first) if first.tokens != tokens => {
                    return Err(fields.error(name, format!("`{}` says another number", first.field)));
                }
                _ => found = Some(Budget { tokens, field }),
            }
        }
        Ok(found)
    }
}

/// What the thoughts of one model's answers are held to.
pub(super) struct Prepared {
    vocabulary: Arc<Vocabulary>,
    marks: Marks,
    /// The tokens of the mark that ends thoughts.
    end: Vec<u32>,
    /// Tokens in which more than white space follows an angle bracket: behind a mark that they close a form would begin
    /// where no grammar sees it.
    crossing: Arc<[u32]>,
    budget: Option<u32>,
    /// Whether the prompt ends in an open thought.
    within: bool,
}

impl Prepared {
    /// # Errors
    /// A model whose thoughts cannot be held to anything.
    pub(super) fn new(
        generator: &Generator,
        marks: Marks,
        budget: Option<&Budget>,
        within: bool,
    ) -> Result<Prepared, ApiError> {
        let field = budget.map_or("response_format", |budget| budget.field.as_str());
        let refused = |why: String| ApiError::field(field, format!("`{field}`: thoughts cannot be held to it: {why}"));
        let vocabulary = generator.vocabulary().map_err(|why| refused(why.clone()))?.clone();
        let tokenizer = &generator.texts()?.tokenizer;
        let options = EncodeOptions { add_special: false, parse_special: true };
        let (end, crossing) = match tokenizer.token_id(marks.close) {
            Some(id) => (vec![id], Vec::new()),
            None => {
                let ids = tokenizer.encode(marks.close, options).map_err(|e| refused(e.to_string()))?;
                let size = generator.model().facts().vocabulary;
                (ids, (0..size).filter(|id| crosses(vocabulary.bytes(*id))).collect())
            }
        };
        Ok(Prepared { vocabulary, marks, end, crossing: crossing.into(), budget: budget.map(|b| b.tokens), within })
    }

    /// The constraint of one answer, around the one of its form.
    pub(super) fn around(&self, form: Option<Box<dyn Constraint>>) -> Box<dyn Constraint> {
        let at = match (self.within, &form) {
            (true, _) => At::Thinking,
            // A form leaves no room for thoughts that the prompt has not opened.
            (false, Some(_)) => At::Saying,
            (false, None) => At::Start,
        };
        let thoughts = Thoughts {
            vocabulary: self.vocabulary.clone(),
            marks: self.marks,
            end: self.end.clone(),
            crossing: self.crossing.clone(),
            budget: self.budget,
        };
        let now = Stage { at, spent: 0, marked: 0, tail: Vec::new(), given: 0 };
        Box::new(Held { thoughts, form, now, before: VecDeque::new() })
    }
}

fn crosses(bytes: &[u8]) -> bool {
    let behind = bytes.iter().position(|b| *b == b'>').and_then(|at| bytes.get(at + 1..));
    behind.is_some_and(|behind| behind.iter().any(|b| !b.is_ascii_whitespace()))
}

struct Thoughts {
    vocabulary: Arc<Vocabulary>,
    marks: Marks,
    end: Vec<u32>,
    crossing: Arc<[u32]>,
    budget: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum At {
    /// Before anything was said: thoughts may begin.
    Start,
    Thinking,
    Saying,
}

/// Where an answer is, behind one of its tokens.
#[derive(Clone)]
struct Stage {
    at: At,
    /// Tokens of thoughts.
    spent: u32,
    /// Tokens of the mark that were forced.
    marked: usize,
    /// The newest bytes, as many as a mark may have.
    tail: Vec<u8>,
    /// Tokens that the form was given.
    given: usize,
}

/// An answer whose thoughts are watched.
struct Held {
    thoughts: Thoughts,
    form: Option<Box<dyn Constraint>>,
    now: Stage,
    /// Where it was before each of the newest tokens.
    before: VecDeque<Stage>,
}

impl Stage {
    fn take(&mut self, thoughts: &Thoughts, token: u32) {
        match self.at {
            At::Saying => self.given += 1,
            At::Start => {
                self.tail.extend_from_slice(thoughts.vocabulary.bytes(token));
                let text = self.tail.trim_ascii_start();
                let open = thoughts.marks.open.trim_end().as_bytes();
                if text.starts_with(open) {
                    (self.at, self.tail) = (At::Thinking, Vec::new());
                } else if !open.starts_with(text) {
                    self.at = At::Saying;
                }
            }
            At::Thinking => {
                let forced = thoughts.budget.is_some_and(|budget| self.spent >= budget);
                self.marked += usize::from(forced);
                self.spent = self.spent.saturating_add(u32::from(!forced));
                self.tail.extend_from_slice(thoughts.vocabulary.bytes(token));
                let mark = thoughts.marks.close.as_bytes();
                // The mark's tokens spell it, whatever spaces a tokenizer puts before them.
                if self.tail.windows(mark.len()).any(|bytes| bytes == mark) || self.marked >= thoughts.end.len() {
                    self.at = At::Saying;
                }
                let old = self.tail.len().saturating_sub(mark.len());
                self.tail.drain(..old);
            }
        }
    }
}

impl Constraint for Held {
    fn fill(&mut self, allowed: &mut TokenMask) {
        match (self.now.at, self.form.as_mut()) {
            (At::Saying, Some(form)) => form.fill(allowed),
            (At::Thinking, form) => {
                if self.thoughts.budget.is_some_and(|budget| self.now.spent >= budget) {
                    self.thoughts.end.get(self.now.marked).iter().for_each(|id| allowed.allow(**id));
                    return;
                }
                allowed.words_mut().fill(u32::MAX);
                if form.is_some() {
                    // An answer that ends in its thoughts would lack its form.
                    let ends = self.thoughts.vocabulary.ends.iter();
                    ends.chain(self.thoughts.crossing.iter()).for_each(|id| allowed.forbid(*id));
                }
            }
            _ => allowed.words_mut().fill(u32::MAX),
        }
    }

    fn accept(&mut self, token: u32) {
        if self.before.len() > MAX_DRAFTS as usize {
            self.before.pop_front();
        }
        self.before.push_back(self.now.clone());
        if let Some(form) = self.form.as_mut().filter(|_| self.now.at == At::Saying) {
            form.accept(token);
        }
        self.now.take(&self.thoughts, token);
    }

    fn roll_back(&mut self, tokens: usize) {
        let given = self.now.given;
        for _ in 0..tokens {
            let Some(before) = self.before.pop_back() else { break };
            self.now = before;
        }
        if let Some(form) = self.form.as_mut().filter(|_| given > self.now.given) {
            form.roll_back(given - self.now.given);
        }
    }
}
