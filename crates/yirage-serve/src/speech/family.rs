//! How a model marks thoughts and calls, found in its chat template.

/// How calls of tools are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CallForm {
    /// `<tool_call>{"name": ..., "arguments": {...}}</tool_call>`: Hermes, Qwen 2.5 and 3.
    Tagged,
    /// `<tool_call><function=name><parameter=key>value</parameter></function></tool_call>`: Qwen 3 Coder.
    Elements,
    /// `[TOOL_CALLS][{"name": ..., "arguments": {...}}, ...]`: Mistral.
    List,
    /// `{"name": ..., "parameters": {...}}` as all there is, with `<|python_tag|>` before it or not: Llama 3.
    Bare,
}

/// What a template says of its model's output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Family {
    /// How it calls tools; none where the template knows no tools, or no form that is known.
    pub(crate) calls: Option<CallForm>,
    /// Whether it thinks between `<think>` and `</think>`.
    pub(crate) thinks: bool,
}

/// The tags around thoughts.
pub(crate) const THINK: (&str, &str) = ("<think>", "</think>");

impl Family {
    /// What the source of a template says.
    pub(crate) fn of(source: &str) -> Family {
        let has = |what| source.contains(what);
        let calls = if !has("tools") {
            None
        } else if has("<function=") && has("<parameter=") {
            Some(CallForm::Elements)
        } else if has("<tool_call>") {
            Some(CallForm::Tagged)
        } else if has("[TOOL_CALLS]") {
            Some(CallForm::List)
        } else if has("<|python_tag|>") || has("\"parameters\":") && has("ipython") {
            Some(CallForm::Bare)
        } else {
            None
        };
        Family { calls, thinks: has(THINK.1) }
    }
}

impl CallForm {
    /// What stands before a call.
    pub(crate) fn begin(self) -> &'static str {
        match self {
            CallForm::Tagged | CallForm::Elements => "<tool_call>",
            CallForm::List => "[TOOL_CALLS]",
            CallForm::Bare => "<|python_tag|>",
        }
    }

    /// What stands behind it; none where it ends with the answer.
    pub(crate) fn end(self) -> Option<&'static str> {
        match self {
            CallForm::Tagged | CallForm::Elements => Some("</tool_call>"),
            CallForm::List | CallForm::Bare => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_told_by_their_markers() {
        let of = |source| Family::of(source).calls;
        assert_eq!(of("{{ messages }} <tool_call>"), None, "a template without tools has none");
        assert_eq!(of("{% if tools %}<tool_call>"), Some(CallForm::Tagged));
        assert_eq!(of("{% if tools %}<tool_call><function=a><parameter=b>"), Some(CallForm::Elements));
        assert_eq!(of("{% if tools %}[TOOL_CALLS]"), Some(CallForm::List));
        assert_eq!(of("{% if tools %}<|python_tag|>"), Some(CallForm::Bare));
        assert_eq!(of("{% if tools %}"), None);
        assert!(Family::of("x </think> y").thinks && !Family::of("").thinks);
    }
}
