//! From what a protocol asks to a model's answers, and from their events to what was said: what every protocol shares.

mod asked;
mod continued;
mod converse;
mod room;
mod speaker;
mod streams;
mod thoughts;
mod turns;

pub(crate) use asked::{Asked, SAMPLING};
pub(crate) use continued::Continues;
pub(crate) use converse::{Conversing, Talk, converse};
pub(crate) use speaker::{End, Ending, SeenToken, Speaker, StopCause};
pub(crate) use streams::start;
pub(crate) use thoughts::{BUDGETS, Budget};
pub(crate) use turns::{Said, Turns, Usage};
