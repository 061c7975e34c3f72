//! Thoughts that end: within a budget of tokens, and before a form begins.
//!
//! A model marks the end of its thoughts. When a budget is used up the mark is all that it may write next. What an answer's
//! form is said of is what comes behind the mark, so a grammar waits for it.

use crate::error::ApiError;
use crate::fields::{FieldSpec, FieldTable, Fields, honoured, ignored};
use crate::models::Generator;
use crate::response_parser::ThoughtMarks as Marks;
use crate::vocabulary::Vocabulary;
use serde_json::json;
use std::collections::VecDeque;
use std::sync::Arc;
use yirage_engine::limits::MAX_DRAFTS;
use yirage_engine::sampling::{Constraint, TokenMask};
use yirage_model::tokenizer::EncodeOptions;

/// vLLM's, llama.cpp's and Qwen's names of a budget.
pub(crate) const BUDGETS: &[FieldSpec] = &[
    honoured("thinking_token_budget", r#"{"type":["integer","null"],"minimum":-1}"#),
    honoured("thinking_budget_tokens", r#"{"type":["integer","null"],"minimum":-1}"#),
    honoured("thinking_budget", r#"{"type":["integer","null"],"minimum":-1}"#),
];

/// Tokens that thoughts may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ThinkingBudget {
    pub(crate) tokens: u32,
    /// The field that says so.
    pub(crate) field: String,
}

impl ThinkingBudget {
    /// The budget that one of these fields says; -1 is none.
    ///
    /// # Errors
    /// What is no number of tokens; two that differ.
    pub(crate) fn read(fields: &mut Fields, names: &[&str]) -> Result<Option<ThinkingBudget>, ApiError> {
        let mut found: Option<ThinkingBudget> = None;
        for name in names {
            fields.leave_out(name, &json!(-1));
            let Some(tokens) = fields.whole(name, "a number of tokens, or -1 for no limit")? else { continue };
            let field = fields.at(name);
            match &found {
                Some(first) if first.tokens != tokens => {
                    return Err(fields.error(name, format!("`{}` says another number", first.field)));
                }
                _ => found = Some(ThinkingBudget { tokens, field }),
            }
        }
        Ok(found)
    }
}

const THINKING: FieldTable = &[&[honoured("type", "{}"), honoured("budget_tokens", "{}"), ignored("display", "{}")]];

/// Whether a model is to think and for how many tokens: what the field `thinking` says, which is Anthropic's, and
/// DeepSeek's, GLM's and Kimi's beside OpenAI's.
///
/// # Errors
/// What says neither.
pub(crate) fn thinking(
    fields: &mut Fields,
    ignored: &mut Vec<String>,
) -> Result<(Option<bool>, Option<ThinkingBudget>), ApiError> {
    let Some(mut asked) = fields.fields("thinking", THINKING)? else { return Ok((None, None)) };
    let thinks = match asked.text("type")?.as_deref() {
        Some("enabled" | "adaptive" | "auto") => true,
        Some("disabled") => false,
        _ => return Err(asked.error("type", "expected enabled, adaptive, auto or disabled")),
    };
    let budget = ThinkingBudget::read(&mut asked, &["budget_tokens"])?;
    asked.finish_into(ignored)?;
    Ok((Some(thinks), budget))
}

/// What the thoughts of one model's answers are held to.
pub(super) struct ThinkingSetup {
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

impl ThinkingSetup {
    /// # Errors
    /// A model whose thoughts cannot be held to anything.
    pub(super) fn new(
        generator: &Generator,
        marks: Marks,
        budget: Option<&ThinkingBudget>,
        within: bool,
    ) -> Result<ThinkingSetup, ApiError> {
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
        Ok(ThinkingSetup {
            vocabulary,
            marks,
            end,
            crossing: crossing.into(),
            budget: budget.map(|b| b.tokens),
            within,
        })
    }

    /// The constraint of one answer, around the one of its form.
    pub(super) fn around(&self, form: Option<Box<dyn Constraint>>) -> Box<dyn Constraint> {
        let at = match (self.within, &form) {
            (true, _) => ThinkingPhase::Thinking,
            // A form leaves no room for thoughts that the prompt has not opened.
            (false, Some(_)) => ThinkingPhase::Saying,
            (false, None) => ThinkingPhase::Start,
        };
        let thoughts = ThinkingLimits {
            vocabulary: self.vocabulary.clone(),
            marks: self.marks,
            end: self.end.clone(),
            crossing: self.crossing.clone(),
            budget: self.budget,
        };
        let now = ThinkingState { at, spent: 0, marked: 0, tail: Vec::new(), form_tokens: 0 };
        Box::new(ThinkingConstraint { thoughts, form, now, before: VecDeque::new() })
    }
}

fn crosses(bytes: &[u8]) -> bool {
    let behind = bytes.iter().position(|b| *b == b'>').and_then(|at| bytes.get(at + 1..));
    behind.is_some_and(|behind| behind.iter().any(|b| !b.is_ascii_whitespace()))
}

struct ThinkingLimits {
    vocabulary: Arc<Vocabulary>,
    marks: Marks,
    end: Vec<u32>,
    crossing: Arc<[u32]>,
    budget: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ThinkingPhase {
    /// Before anything was said: thoughts may begin.
    Start,
    Thinking,
    Saying,
}

/// Where an answer is, behind one of its tokens.
#[derive(Clone)]
struct ThinkingState {
    at: ThinkingPhase,
    /// Tokens of thoughts.
    spent: u32,
    /// Tokens of the mark that were forced.
    marked: usize,
    /// The newest bytes, as many as a mark may have.
    tail: Vec<u8>,
    /// Tokens that the form was given.
    form_tokens: usize,
}

/// An answer whose thoughts are watched.
struct ThinkingConstraint {
    thoughts: ThinkingLimits,
    form: Option<Box<dyn Constraint>>,
    now: ThinkingState,
    /// Where it was before each of the newest tokens.
    before: VecDeque<ThinkingState>,
}

impl ThinkingState {
    fn take(&mut self, thoughts: &ThinkingLimits, token: u32) {
        match self.at {
            ThinkingPhase::Saying => self.form_tokens += 1,
            ThinkingPhase::Start => {
                self.tail.extend_from_slice(thoughts.vocabulary.bytes(token));
                let text = self.tail.trim_ascii_start();
                let open = thoughts.marks.open.trim_end().as_bytes();
                if text.starts_with(open) {
                    (self.at, self.tail) = (ThinkingPhase::Thinking, Vec::new());
                } else if !open.starts_with(text) {
                    self.at = ThinkingPhase::Saying;
                }
            }
            ThinkingPhase::Thinking => {
                let forced = thoughts.budget.is_some_and(|budget| self.spent >= budget);
                self.marked += usize::from(forced);
                self.spent = self.spent.saturating_add(u32::from(!forced));
                self.tail.extend_from_slice(thoughts.vocabulary.bytes(token));
                let mark = thoughts.marks.close.as_bytes();
                // The mark's tokens spell it, whatever spaces a tokenizer puts before them.
                if self.tail.windows(mark.len()).any(|bytes| bytes == mark) || self.marked >= thoughts.end.len() {
                    self.at = ThinkingPhase::Saying;
                }
                let old = self.tail.len().saturating_sub(mark.len());
                self.tail.drain(..old);
            }
        }
    }
}

impl Constraint for ThinkingConstraint {
    fn fill(&mut self, allowed: &mut TokenMask) {
        match (self.now.at, self.form.as_mut()) {
            (ThinkingPhase::Saying, Some(form)) => form.fill(allowed),
            (ThinkingPhase::Thinking, form) => {
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
        if let Some(form) = self.form.as_mut().filter(|_| self.now.at == ThinkingPhase::Saying) {
            form.accept(token);
        }
        self.now.take(&self.thoughts, token);
    }

    fn roll_back(&mut self, tokens: usize) {
        let given = self.now.form_tokens;
        for _ in 0..tokens {
            let Some(before) = self.before.pop_back() else { break };
            self.now = before;
        }
        if let Some(form) = self.form.as_mut().filter(|_| given > self.now.form_tokens) {
            form.roll_back(given - self.now.form_tokens);
        }
    }
}
