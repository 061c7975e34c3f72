//! A conversation that a model is to continue, whatever the protocol it came by.

use super::asked::Asked;
use super::speaker::Speaker;
use super::streams::start;
use super::thoughts::{Budget, Prepared};
use super::turns::Turns;
use crate::app::App;
use crate::call::Call;
use crate::conversation;
use crate::error::ApiError;
use crate::grammar::{Grammar, Shape};
use crate::models::{Generator, Held};
use crate::speech::{CallForm, Family, THINK};
use crate::tools::{Choice, ToolUse};
use serde_json::{Map, Value};
use yirage_model::chat::ChatInputs;

/// A conversation, and what is wanted of its continuation.
#[derive(Debug)]
pub(crate) struct Talk {
    /// Messages in the neutral form.
    pub(crate) messages: Vec<Value>,
    pub(crate) tools: Option<ToolUse>,
    pub(crate) documents: Option<Vec<Value>>,
    /// The client's own variables of the template.
    pub(crate) kwargs: Map<String, Value>,
    pub(crate) reasoning_effort: Option<String>,
    pub(crate) thinking: Option<bool>,
    pub(crate) budget: Option<Budget>,
    pub(crate) add_generation_prompt: bool,
    pub(crate) grammar: Grammar,
    /// Whether tokens are wanted beside the text.
    pub(crate) keeps_tokens: bool,
    /// Parts of fields that change nothing here.
    pub(crate) ignored: Vec<String>,
}

impl Talk {
    /// A conversation of which only the messages are said.
    pub(crate) fn new(messages: Vec<Value>) -> Talk {
        Talk {
            messages,
            tools: None,
            documents: None,
            kwargs: Map::new(),
            reasoning_effort: None,
            thinking: None,
            budget: None,
            add_generation_prompt: true,
            grammar: Grammar::free(),
            keeps_tokens: false,
            ignored: Vec::new(),
        }
    }

    /// The text that the model's template makes of it, and its tokens.
    ///
    /// # Errors
    /// A template that refuses it.
    pub(crate) fn render(&self, generator: &Generator) -> Result<(String, Vec<u32>), ApiError> {
        let shown: Option<Vec<Value>> =
            self.shown_tools().map(|used| used.tools.iter().map(|t| t.shown.clone()).collect());
        let inputs = ChatInputs {
            tools: shown.as_deref(),
            documents: self.documents.as_deref(),
            add_generation_prompt: self.add_generation_prompt,
            enable_thinking: self.thinking,
            reasoning_effort: self.reasoning_effort.as_deref(),
            kwargs: self.kwargs.clone(),
            ..ChatInputs::new(&self.messages)
        };
        generator.render(generator.template(shown.is_some())?, inputs)
    }

    /// The tools that the model hears of.
    fn shown_tools(&self) -> Option<&ToolUse> {
        self.tools.as_ref().filter(|used| used.choice != Choice::None)
    }
}

/// A conversation that goes on.
pub(crate) struct Conversing {
    pub(crate) turns: Turns,
    /// Tokens of the prompt.
    pub(crate) prompt: Vec<u32>,
    /// What of the conversation changes nothing here.
    pub(crate) ignored: Vec<String>,
}

/// Begins the answers to a conversation.
///
/// # Errors
/// A conversation that the model cannot continue as it is asked to.
pub(crate) fn converse(
    app: &App,
    call: &Call,
    held: &Held,
    asked: &Asked,
    talk: &Talk,
) -> Result<Conversing, ApiError> {
    let generator = held.generator()?;
    let used = talk.shown_tools();
    let mut family = generator.template(used.is_some())?.family;
    if used.is_some_and(|used| used.choice == Choice::Auto) && family.calls.is_none() {
        let why = "the model's chat template has no form of calling tools that is known here";
        return Err(ApiError::unsupported("tools", why));
    }
    if used.is_none() {
        family.calls = None;
    }
    let grammar = match used.map(|used| talk.grammar.of_calls(used)).transpose()?.flatten() {
        // A call that has to come is all of the answer, in a form of its own.
        Some(call) => {
            family = Family { calls: Some(CallForm::Bare), thinks: false };
            call
        }
        None => talk.grammar.clone(),
    };
    let (text, prompt) = talk.render(generator)?;
    conversation::check_kept(&talk.messages, &text)?;
    let within_thought = family.thinks && text.trim_end().ends_with(THINK.0);
    let compiled = grammar.compile(generator)?;
    let mut ignored = talk.ignored.clone();
    // Where nothing is thought, no budget of thoughts changes anything.
    ignored.extend(talk.budget.iter().filter(|_| !family.thinks).map(|budget| budget.field.clone()));
    let budget = talk.budget.as_ref().filter(|_| family.thinks);
    let watched = budget.is_some() || within_thought && grammar.shape != Shape::Free;
    let thoughts = watched.then(|| Prepared::new(generator, budget, within_thought)).transpose()?;
    let constraint = || match &thoughts {
        Some(thoughts) => Some(thoughts.around(compiled.constraint())),
        None => compiled.constraint(),
    };
    let streams = start(app, call, held, std::slice::from_ref(&prompt), asked, &constraint)?;
    let parallel = used.is_none_or(|used| used.parallel);
    let turns = Turns::new(streams, asked.n, || {
        let plain = Speaker::plain(&asked.stops, &asked.stop_ids, talk.keeps_tokens);
        plain.of_family(generator, family, within_thought, parallel)
    });
    Ok(Conversing { turns, prompt, ignored })
}
