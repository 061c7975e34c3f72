//! Chat templates: a conversation to the text a model was trained on.
//!
//! Templates are Jinja as model files carry it, run by an interpreter of our own, with the surroundings those files
//! expect: blocks trimmed, loop controls, Python's string and dict methods, `tojson` in Python's layout,
//! `raise_exception`, `strftime_now`, `{% generation %}` blocks, Python's way to print values.
//!
//! Templates come with model files and are not trusted: what they may build and spend is bounded, see the constants
//! below. They run on a thread of their own, so that the recursion they may need does not depend on the caller's stack.
//!
//! This module does not know tokenizers or files. BOS: a template that writes it itself is reported by
//! [`RenderedChat::starts_with_bos`], so that encoding does not add a second one.

mod call_ids;
mod capabilities;
mod clock;
mod error;
mod inputs;
mod jinja;
mod limits;
mod source;
mod template;
mod trial_steps;
mod turns;

pub use capabilities::{Capabilities, ContentSupport, THOUGHT_NAMES, ThoughtPart, ToolArgumentsFormat};
pub use error::ChatError;
pub use inputs::{ChatInputs, RenderedChat};
pub use limits::{
    MAX_BYTES, MAX_EXPRESSION_DEPTH, MAX_FIELD, MAX_NESTING, MAX_RANGE, MAX_RECURSION, MAX_STEPS, MAX_TEMPLATE_BYTES,
    MAX_TEMPLATES, MAX_TIME, MAX_TRIAL_STEPS, MAX_VALUE_DEPTH, STACK_BYTES,
};
pub use source::{DEFAULT_TEMPLATE, TemplateSources, Templates};
pub use template::ChatTemplate;
pub use trial_steps::TrialSteps;
pub use turns::TurnRules;
