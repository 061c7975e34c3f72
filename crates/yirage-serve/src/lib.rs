//! Models over HTTP: the protocols that clients of language models speak.
//!
//! [`Server::bind`] takes [`ServeOptions`] and models ([`ModelEntry`]), [`Server::start`] serves them on threads of its own,
//! [`Server::until_signal`] until the process is asked to end. Every field of a request is honoured, refused by its name
//! with a 400, or ignored and named in the header `x-yirage-ignored`. An answer whose client goes away is cancelled.
//!
//! Unknown here: how models are found and on which device they run ([`ModelOpener`] brings them), and what a model computes.
#![forbid(unsafe_code)]

mod answer_fields;
mod answers;
mod anthropic;
mod app;
mod bodies;
mod call;
mod conversation;
mod encoders;
mod endpoints;
mod error;
mod fields;
mod fim;
mod generate;
mod grammar;
mod guard;
mod idle;
mod keys;
mod limits;
mod llamacpp;
mod lmstudio;
mod metrics;
mod models;
mod ollama;
mod openai;
mod openapi;
mod ops;
mod options;
mod page;
mod pictures;
mod prefill;
mod prompt;
mod reply;
mod response_parser;
mod responses;
mod router;
mod server;
mod signals;
mod sse;
mod store;
mod template_calls;
mod tls;
mod tools;
mod unloading;
mod unstalled;
mod vocabulary;

pub use bodies::{BodyVerdict, Walked, body_paths, read_body, read_form, walk_form};
pub use keys::{ApiKeys, KeysError};
pub use limits::MAX_BODY;
pub use models::{
    AdapterFiles, Description, Generator, ModelEntry, ModelOpener, PrefillAddressError, PrefillServer, Served,
    SlotFiles,
};
pub use options::ServeOptions;
pub use server::{Drained, RunningServer, ServeError, Server, ServerBreaker, UntilSignal};
pub use signals::Signals;
pub use template_calls::TemplateCalls;
pub use tls::{Tls, TlsError};
