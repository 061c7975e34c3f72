//! One parsed template and its rendering.

use std::sync::OnceLock;
use std::thread;

use serde_json::{Map, Value as Json};

use super::capabilities::Capabilities;
use super::error::ChatError;
use super::jinja::{self, Cause, Fault, Input, Tree, Variable};
use super::limits::{MAX_TEMPLATE_BYTES, STACK_BYTES};

/// A parsed chat template.
#[derive(Debug)]
pub struct ChatTemplate {
    name: String,
    tree: Tree,
    /// Found when first asked for.
    capabilities: OnceLock<Capabilities>,
}

/// What a template renders.
#[derive(Clone, Debug)]
pub struct ChatInputs<'a> {
    /// The conversation: objects with `role`, `content` and whatever else clients send.
    pub messages: &'a [Json],
    /// Tools as OpenAI's API describes them.
    pub tools: Option<&'a [Json]>,
    /// Documents for retrieval templates.
    pub documents: Option<&'a [Json]>,
    /// End with the beginning of the assistant's turn.
    pub add_generation_prompt: bool,
    /// Text of the BOS token, empty where there is none.
    pub bos_token: &'a str,
    /// Text of the EOS token, empty where there is none.
    pub eos_token: &'a str,
    /// `enable_thinking`, left undefined where `None`.
    pub enable_thinking: Option<bool>,
    /// `reasoning_effort`, left undefined where `None`.
    pub reasoning_effort: Option<&'a str>,
    /// The user's own variables; they beat the ones above.
    pub kwargs: Map<String, Json>,
    /// What `strftime_now` calls now: seconds since 1970-01-01 UTC.
    pub now: i64,
}

impl<'a> ChatInputs<'a> {
    /// A conversation that the model shall continue, everything else left out; `now` is 1970.
    pub fn new(messages: &'a [Json]) -> Self {
        Self {
            messages,
            tools: None,
            documents: None,
            add_generation_prompt: true,
            bos_token: "",
            eos_token: "",
            enable_thinking: None,
            reasoning_effort: None,
            kwargs: Map::new(),
            now: 0,
        }
    }
}

/// A rendered conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderedChat {
    /// The prompt; special tokens are written as text, so encode it with `parse_special`.
    pub text: String,
    /// The template wrote BOS itself: encode without `add_special`.
    pub starts_with_bos: bool,
}

impl ChatTemplate {
    /// Parses `source`; `name` goes into messages.
    ///
    /// # Errors
    /// [`ChatError::Syntax`], [`ChatError::Limit`].
    pub fn new(name: &str, source: &str) -> Result<Self, ChatError> {
        let name = name.to_owned();
        if source.len() > MAX_TEMPLATE_BYTES {
            let (what, limit) = ("length of the source in bytes", MAX_TEMPLATE_BYTES as u64);
            return Err(ChatError::Limit { name, line: 0, what, limit });
        }
        match on_own_stack(&name, || jinja::parse(source))? {
            Ok(tree) => Ok(Self { name, tree, capabilities: OnceLock::new() }),
            Err(fault) => Err(match fault.into_parts() {
                (line, Cause::Limit { what, limit }) => ChatError::Limit { name, line, what, limit },
                (line, Cause::Wrong(detail) | Cause::Raised(detail)) => ChatError::Syntax { name, line, detail },
            }),
        }
    }

    /// Name given at parsing.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it reads of a conversation, tried once.
    pub fn capabilities(&self) -> &Capabilities {
        self.capabilities.get_or_init(|| Capabilities::of(self))
    }

    /// Renders a conversation.
    ///
    /// # Errors
    /// [`ChatError::Refused`] where the template calls `raise_exception`, [`ChatError::Render`], [`ChatError::Limit`].
    pub fn render(&self, inputs: &ChatInputs<'_>) -> Result<RenderedChat, ChatError> {
        let input = Input { variables: inputs.variables(), now: inputs.now };
        let text =
            on_own_stack(&self.name, || jinja::render(&self.tree, &input))?.map_err(|fault| self.fault(fault))?;
        let starts_with_bos = !inputs.bos_token.is_empty() && text.starts_with(inputs.bos_token);
        Ok(RenderedChat { text, starts_with_bos })
    }

    fn fault(&self, fault: Fault) -> ChatError {
        let name = self.name.clone();
        match fault.into_parts() {
            (line, Cause::Limit { what, limit }) => ChatError::Limit { name, line, what, limit },
            (line, Cause::Raised(message)) => ChatError::Refused { name, line, message },
            (line, Cause::Wrong(detail)) => ChatError::Render { name, line, detail },
        }
    }
}

impl ChatInputs<'_> {
    /// The variables that a template sees.
    fn variables(&self) -> Vec<(&str, Variable<'_>)> {
        let list = |items| Option::map_or(items, Variable::None, Variable::List);
        let mut all = vec![
            ("messages", Variable::List(self.messages)),
            ("tools", list(self.tools)),
            ("documents", list(self.documents)),
            ("add_generation_prompt", Variable::Bool(self.add_generation_prompt)),
            ("bos_token", Variable::Text(self.bos_token)),
            ("eos_token", Variable::Text(self.eos_token)),
        ];
        all.extend(self.enable_thinking.map(|v| ("enable_thinking", Variable::Bool(v))));
        all.extend(self.reasoning_effort.map(|v| ("reasoning_effort", Variable::Text(v))));
        all.extend(self.kwargs.iter().map(|(name, value)| (name.as_str(), Variable::Json(value))));
        all
    }
}

/// Runs `work` on a thread whose stack is known to suffice. Should the thread die, that is an error too.
fn on_own_stack<T: Send>(name: &str, work: impl FnOnce() -> T + Send) -> Result<T, ChatError> {
    let broken = |detail: String| ChatError::Broken { name: name.to_owned(), detail };
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("chat template".to_owned()).stack_size(STACK_BYTES);
        let running = thread.spawn_scoped(scope, work);
        let running = running.map_err(|error| broken(format!("no thread can be started to run it: {error}")))?;
        running.join().map_err(|_| broken("it broke its interpreter; please report this template".to_owned()))
    })
}
