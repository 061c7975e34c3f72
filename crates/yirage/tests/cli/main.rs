//! The built program, run as its users and other programs run it.
#![allow(clippy::unwrap_used)] // helpers fail tests by panicking

mod backend;
mod backends;
mod bench;
mod bench_graph;
mod bench_serve;
mod broken;
mod cache;
mod chat;
mod config;
mod convert;
mod docs;
mod effects;
mod encoders;
mod environment;
mod every_json;
mod exit_codes;
mod explain;
mod failures;
#[cfg(target_os = "linux")]
mod first_five_minutes;
mod first_steps;
mod glm;
mod golden;
mod graph;
#[cfg(target_os = "linux")]
mod hardware_queue;
mod hub;
#[path = "../../../yirage-hub/tests/suite/support/server.rs"]
mod hub_server;
mod imatrix;
mod inspect;
mod interrupt;
mod kept;
mod limits;
mod lora;
mod output;
mod plan;
mod positional;
mod prompt_cache;
mod quantize;
mod ranks;
mod route;
mod samplers;
mod scale;
mod serve;
mod support;
mod template;
mod verify;
