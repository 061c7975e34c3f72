//! A conversation that a model is to continue, whatever the protocol it came by.

use super::continued::{Continues, ConversationEnding, Wants, conversation_ending, cut, text};
use super::params::GenerationParams;
use super::speaker::Speaker;
use super::streams::{Prompts, start};
use super::thoughts::{ThinkingBudget, ThinkingSetup};
use super::turns::Turns;
use crate::app::App;
use crate::call::RequestContext;
use crate::conversation;
use crate::error::ApiError;
use crate::grammar::{ForcedCalls, Grammar, GrammarKind};
use crate::models::{Generator, ModelLease};
use crate::pictures;
use crate::response_parser::{DeclaredTools, ThoughtMarks};
use crate::tools::{ToolChoice, ToolUse};
use serde_json::{Map, Value};
use yirage_model::chat::ChatInputs;
use yirage_session::PlacedPicture;

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
    pub(crate) budget: Option<ThinkingBudget>,
    pub(crate) add_generation_prompt: bool,
    /// Whether the answer goes on from the last message.
    pub(crate) continues: Continues,
    pub(crate) grammar: Grammar,
    /// Whether tokens are wanted beside the text.
    pub(crate) keeps_tokens: bool,
    /// Parts of fields that change nothing here.
    pub(crate) ignored: Vec<String>,
}

/// What a template made of a conversation.
pub(crate) struct RenderedTalk {
    pub(crate) text: String,
    pub(crate) ids: Vec<u32>,
    /// What changes nothing in it, for this template.
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
            continues: Continues::default(),
            grammar: Grammar::free(),
            keeps_tokens: false,
            ignored: Vec::new(),
        }
    }

    /// The text that the model's template makes of it, and its tokens. Where the answer goes on from the last message the
    /// text ends with that.
    ///
    /// # Errors
    /// A template that refuses it; a last message that nothing can go on from.
    pub(crate) fn render(&self, generator: &Generator) -> Result<RenderedTalk, ApiError> {
        let called = |used: &ToolUse| matches!(used.choice, ToolChoice::Required | ToolChoice::Named(_));
        let wants =
            Wants { form: self.grammar.shape != GrammarKind::Free, call: self.tools.as_ref().is_some_and(called) };
        match conversation_ending(&self.messages, self.continues, wants)? {
            ConversationEnding::Whole => self.rendered(generator, &self.messages, self.add_generation_prompt, None),
            ConversationEnding::Without => {
                let (_, before) = self.messages.split_last().unwrap_or((&Value::Null, &[]));
                self.rendered(generator, before, true, None)
            }
            ConversationEnding::At { messages, word } => self.rendered(generator, &messages, false, Some(&word)),
        }
    }

    fn rendered(
        &self,
        generator: &Generator,
        messages: &[Value],
        add_generation_prompt: bool,
        word: Option<&str>,
    ) -> Result<RenderedTalk, ApiError> {
        let shown: Option<Vec<Value>> =
            self.shown_tools().map(|used| used.tools.iter().map(|t| t.shown.clone()).collect());
        let shown_to = generator.template(shown.is_some())?;
        let without_data = pictures::without_data(messages);
        let messages = shown_to.with_calls_shown(without_data.as_deref().unwrap_or(messages));
        let inputs = ChatInputs {
            tools: shown.as_deref(),
            documents: self.documents.as_deref(),
            add_generation_prompt,
            enable_thinking: self.thinking,
            reasoning_effort: self.reasoning_effort.as_deref(),
            kwargs: self.variables(),
            ..ChatInputs::new(&messages)
        };
        let render = |inputs: ChatInputs<'_>, ignored: Vec<String>| {
            let (text, ids) = generator.render(shown_to, inputs, |text| match word {
                Some(word) => cut(text, word, &self.messages),
                None => Ok(text),
            })?;
            Ok(RenderedTalk { text, ids, ignored })
        };
        let Some(effort) = self.reasoning_effort.as_ref() else { return render(inputs, Vec::new()) };
        // Templates know some of the words for how hard to think, and a few refuse the others: agents send what their
        // makers' models take.
        let without = ChatInputs { reasoning_effort: None, ..inputs.clone() };
        render(inputs, Vec::new()).or_else(|refused: ApiError| {
            let named = format!("reasoning_effort={effort}");
            render(without, vec![named]).map_err(|_| refused)
        })
    }

    /// The client's own variables of the template, and the names that other templates than Qwen's have for the switch of
    /// thoughts: a template reads one of them, and whoever asks for thoughts does not know which.
    fn variables(&self) -> Map<String, Value> {
        let mut all = Map::new();
        if let Some(on) = self.thinking {
            // DeepSeek's and Granite's, Cohere's, MiniMax's.
            all.extend(["thinking", "reasoning"].map(|name| (name.to_owned(), on.into())));
            all.insert("thinking_mode".to_owned(), if on { "enabled" } else { "disabled" }.into());
        }
        all.extend(self.kwargs.clone());
        all
    }

    /// Whether the answer begins within a thought, which the prompt ends with or the text that the answer goes on from has
    /// opened. A template may write a budget into the thought that it opens: what it puts behind the messages is looked at.
    ///
    /// # Errors
    /// A template that refuses the conversation.
    fn is_within_thought(&self, generator: &Generator, marks: ThoughtMarks, prompt: &str) -> Result<bool, ApiError> {
        let last = self.messages.last().filter(|last| last["role"] == "assistant");
        let said = last.filter(|_| self.continues != Continues::Never).map(text);
        if marks.ends(prompt) || said.as_ref().is_some_and(|said| marks.is_open(said)) {
            return Ok(true);
        }
        // Mostly there is no mark at all that is not closed.
        if said.is_some() || !self.add_generation_prompt || !marks.is_open(prompt) {
            return Ok(false);
        }
        let messages = self.rendered(generator, &self.messages, false, None)?.text;
        Ok(prompt.strip_prefix(&messages).is_some_and(|begun| marks.is_open(begun)))
    }

    /// The tools that the model hears of.
    fn shown_tools(&self) -> Option<&ToolUse> {
        self.tools.as_ref().filter(|used| used.choice != ToolChoice::None)
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

/// The prompt with the pictures of its messages.
///
/// # Errors
/// A picture that cannot be read; a model that reads none.
fn with_pictures(
    generator: &Generator,
    messages: &[Value],
    prompt: Vec<u32>,
) -> Result<(Vec<u32>, Vec<PlacedPicture>), ApiError> {
    let files = pictures::files(messages)?;
    if files.is_empty() {
        return Ok((prompt, Vec::new()));
    }
    let reader = generator.model().pictures()?;
    let read = files.iter().map(|file| reader.read(file)).collect::<Result<_, _>>()?;
    Ok(reader.place(&prompt, read)?)
}

/// Begins the answers to a conversation.
///
/// # Errors
/// A conversation that the model cannot continue as it is asked to.
pub(crate) fn converse(
    app: &App,
    call: &RequestContext,
    held: &ModelLease,
    asked: &GenerationParams,
    talk: &Talk,
) -> Result<Conversing, ApiError> {
    let generator = held.generator()?;
    let used = talk.shown_tools();
    let template = generator.template(used.is_some())?;
    let mut family = template.family;
    if used.is_some_and(|used| used.choice == ToolChoice::Auto) && family.calls.is_none() {
        let why = "the model's chat template has no form of calling tools that is known here; leave `tools` out, or force a \
                   call by `tool_choice`";
        return Err(ApiError::unsupported("tools", why));
    }
    if used.is_none() {
        family = family.without_calls();
    }
    let forced = used.filter(|used| matches!(used.choice, ToolChoice::Required | ToolChoice::Named(_)));
    if forced.is_some() {
        talk.grammar.check_allows_calls()?;
    }
    let RenderedTalk { text, ids: prompt, ignored: not_taken } = talk.render(generator)?;
    conversation::check_user_texts(&talk.messages, &text)?;
    let (prompt, pictures) = with_pictures(generator, &talk.messages, prompt)?;
    let within = family.thoughts.map(|marks| talk.is_within_thought(generator, marks, &text));
    let within_thought = within.transpose()?.unwrap_or(false);
    let compile = |grammar: &Grammar| grammar.compile(generator);
    let (compiled, bare) = match forced {
        Some(used) => {
            let ForcedCalls { compiled, bare } =
                ForcedCalls::new(used, template.own.as_ref(), within_thought, compile)?;
            if bare.is_some() {
                family = family.with_bare_calls();
            }
            (compiled, bare)
        }
        None => (compile(&talk.grammar)?, None),
    };
    let mut ignored = [talk.ignored.as_slice(), &not_taken].concat();
    if template.loses_calls(&talk.messages) {
        ignored.push("messages.tool_calls".to_owned());
    }
    let is_held = forced.is_some() || talk.grammar.shape != GrammarKind::Free;
    // Where nothing is thought, no budget of thoughts changes anything; nor where a form leaves no room for thoughts.
    let thinks = family.thoughts.filter(|_| within_thought || !is_held);
    ignored.extend(talk.budget.iter().filter(|_| thinks.is_none()).map(|budget| budget.field.clone()));
    let budget = talk.budget.as_ref().filter(|_| thinks.is_some());
    let watched = budget.is_some() || within_thought && is_held;
    let watched = family.thoughts.filter(|_| watched);
    let thoughts = watched.map(|marks| ThinkingSetup::new(generator, marks, budget, within_thought)).transpose()?;
    let constraint = || match &thoughts {
        Some(thoughts) => Some(thoughts.around(compiled.constraint())),
        None => compiled.constraint(),
    };
    let streams =
        start(app, call, held, Prompts::with_pictures(&prompt, &pictures), asked, &template.marks, &constraint)?;
    let parallel = used.is_none_or(|used| used.parallel);
    let declared = used.map_or_else(DeclaredTools::default, |used| DeclaredTools::new(&used.tools));
    let turns = Turns::new(streams, asked.n, || {
        let plain = Speaker::plain(&asked.stops, &asked.stop_ids, talk.keeps_tokens);
        plain.of_family(&family, within_thought, declared.clone(), parallel)
    });
    Ok(Conversing { turns: turns.with_calls(bare), prompt, ignored })
}
