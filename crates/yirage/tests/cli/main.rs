//! The built program, run as its users and other programs run it.
//!
//! Tests that need the small real model skip loudly where it does not lie beside the checkout.
#![allow(clippy::unwrap_used, clippy::print_stderr)] // helpers fail tests by panicking, and skip loudly

mod bench;
mod broken;
mod cache;
mod chat;
mod config;
mod docs;
mod effects;
mod environment;
mod failures;
mod golden;
mod hub;
#[path = "../../../yirage-hub/tests/support/server.rs"]
mod hub_server;
mod inspect;
mod interrupt;
mod kept;
mod limits;
mod output;
mod positional;
mod support;
mod template;
