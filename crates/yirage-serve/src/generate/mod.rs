//! From what a protocol asks to a model's answers, and from their events to what was said: what every protocol shares.

mod adapters;
mod admission;
mod continued;
mod converse;
mod params;
mod prefill;
mod samplers;
mod speaker;
mod streams;
mod thoughts;
mod turns;

pub(crate) use continued::Continues;
pub(crate) use converse::{Conversing, Talk, converse};
pub(crate) use params::{GenerationParams, SAMPLING};
pub(crate) use samplers::{SAMPLERS, read_typical_and_mirostat, unread};
pub(crate) use speaker::{AnswerEnd, AnswerToken, Ending, Speaker, StopCause};
pub(crate) use streams::{Prompts, prefilled, start};
pub(crate) use thoughts::{BUDGETS, ThinkingBudget, thinking};
pub(crate) use turns::{AnswerUpdate, Turns, Usage};
