//! The engine: requests in, tokens out, one step after another.

mod admission;
mod choose;
mod core;
mod event;
mod facts;
mod guesses;
mod launch;
mod launched;
mod load;
mod report;
mod request;
mod request_state;
mod statistics;
mod step;
mod verify;

pub use self::core::Engine;
pub use event::Event;
pub use facts::ModelFacts;
pub use request::Request;
