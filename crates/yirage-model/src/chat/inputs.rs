//! What a template is given, and what it gives.

use serde_json::{Map, Value as Json};

use super::jinja::TemplateVariable;
use super::trial_steps::TrialSteps;

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
    /// What the steps of the rendering are taken from, where it is a trial.
    pub trial: Option<&'a TrialSteps>,
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
            trial: None,
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

impl ChatInputs<'_> {
    /// The variables that a template sees.
    pub(super) fn variables(&self) -> Vec<(&str, TemplateVariable<'_>)> {
        let list = |items| Option::map_or(items, TemplateVariable::None, TemplateVariable::List);
        let mut all = vec![
            ("messages", TemplateVariable::List(self.messages)),
            ("tools", list(self.tools)),
            ("documents", list(self.documents)),
            ("add_generation_prompt", TemplateVariable::Bool(self.add_generation_prompt)),
            ("bos_token", TemplateVariable::Text(self.bos_token)),
            ("eos_token", TemplateVariable::Text(self.eos_token)),
        ];
        all.extend(self.enable_thinking.map(|v| ("enable_thinking", TemplateVariable::Bool(v))));
        all.extend(self.reasoning_effort.map(|v| ("reasoning_effort", TemplateVariable::Text(v))));
        all.extend(self.kwargs.iter().map(|(name, value)| (name.as_str(), TemplateVariable::Json(value))));
        all
    }
}
