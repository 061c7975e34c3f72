//! One address for several servers of the same models (replicas): each request goes to one of them, and its answer comes back as
//! it comes.
//!
//! ```text
//! request ─▶ blocks of its prompt ─▶ choice: who has the most of them, unless others have much less to do ─▶ replica
//!                                       ▲                                                                      │
//! health checks ─▶ who takes requests ──┘        answer, piece by piece, to the client ◀────────────────────────┘
//! ```
//! A request whose replica has said nothing of an answer goes to another one, if asking twice does no harm. Once the head of an
//! answer has come it is the client's, whatever becomes of the replica: a stream that breaks off is never begun again by
//! somebody who did not see what came of it.
//!
//! Unknown here: models and tokenizers. What a prompt is follows from the fields that servers of language models have in common,
//! and its blocks are bytes, not tokens.
#![forbid(unsafe_code)]

mod answer;
mod choice;
mod error;
mod figures;
mod forward;
mod health;
mod limits;
mod prefix;
mod prompt_blocks;
mod proxy;
mod replica;
mod server;

pub use choice::{ChoiceReason, ReplicaChoice, ReplicaLoad, choose};
pub use error::RouteError;
pub use prefix::PrefixTable;
pub use prompt_blocks::prompt_blocks;
pub use replica::ReplicaAddress;
pub use server::{RouteOptions, RouteServer, RouteStopper};
