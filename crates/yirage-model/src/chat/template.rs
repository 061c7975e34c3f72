//! One parsed template and its rendering.

use std::sync::OnceLock;
use std::thread;

use super::capabilities::Capabilities;
use super::error::ChatError;
use super::inputs::{ChatInputs, RenderedChat};
use super::jinja::{self, Cause, Fault, JinjaTemplate, RenderInput};
use super::limits::{MAX_TEMPLATE_BYTES, STACK_BYTES};

/// A parsed chat template.
#[derive(Debug)]
pub struct ChatTemplate {
    name: String,
    tree: JinjaTemplate,
    /// Found when first asked for.
    capabilities: OnceLock<Capabilities>,
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
        self.capabilities.get_or_init(|| Capabilities::of(&|inputs| self.render(inputs)))
    }

    /// Renders a conversation.
    ///
    /// # Errors
    /// [`ChatError::Refused`] where the template calls `raise_exception`, [`ChatError::Render`], [`ChatError::Limit`].
    pub fn render(&self, inputs: &ChatInputs<'_>) -> Result<RenderedChat, ChatError> {
        let input = RenderInput { variables: inputs.variables(), now: inputs.now, trial: inputs.trial };
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
