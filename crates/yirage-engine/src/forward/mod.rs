//! A model's forward pass, called as its caller likes: which tokens at which positions of which sequence.
//!
//! Plans are those of a [`PlanCache`](yirage_plancache::PlanCache): one for each size of a call, made at the first one.
//! Every value that may change between two calls is a slot of the plan, so a kept plan computes what the call says: its
//! tokens, positions, cached lengths and block tables.
//!
//! There is no scheduler here, no request and no text. Each sequence has blocks of its own for as long as the pass lives,
//! which is what a static cache is; [`Engine`](crate::Engine) is for many callers.

mod checks;
mod core;
mod generate;
mod inputs;
mod kv_reservation;
mod load;
mod names;
mod options;
mod reserve;
mod row;
mod step;

pub use core::Forward;
pub use generate::Generate;
pub use names::NameDifferences;
pub use options::{BesideLogits, ForwardOptions};
pub use row::ForwardRow;
pub use step::ForwardStep;
