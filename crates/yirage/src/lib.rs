//! The `yirage` command: options are parsed, then resolved to typed settings, then a command runs.
//!
//! It is a library for its two programs alone: the one of this crate, and the one that the Python package installs. Both own
//! their process, and have [`yirage_process::last_resort::Allocator`] as the global allocator.
//!
//! Standard output carries results and nothing else; notes, progress and errors go to standard error. This crate is
//! the only one that reads options, their environment variables and the configuration file. It names no backend.
#![forbid(unsafe_code)]

mod bench;
mod bench_graph;
mod bench_serve;
mod commands;
mod console;
mod download;
mod failure;
mod generate;
mod interrupt;
mod locate;
mod logit_row;
mod options;
mod plan_file;
mod profiling;
mod prompt_cache;
#[cfg_attr(not(target_os = "linux"), path = "ranks_elsewhere.rs")]
mod ranks;
mod roofline;
mod scale;
mod session;
mod settings;
mod verify;

use failure::CliFailure;
use options::{CliCommand, Invocation};
use std::ffi::OsString;
use std::time::Instant;
use yirage_process::last_resort;

/// Runs the command with these arguments, of which the first is the program's name, and gives the exit code. The process
/// is the command's own from then on: what a limit or too little memory does to it is decided here.
pub fn main(arguments: Vec<OsString>) -> u8 {
    let started = Instant::now();
    yirage_process::file_size_limits_are_errors();
    last_resort::install(failure::WOULD_NOT_FIT);
    ranks::remember_program(arguments.first());
    if let Some(followed) = ranks::follow_if_started() {
        return followed.map_or_else(|failure| failure::report(&failure, false), |()| 0);
    }
    let json = options::wants_json(arguments.iter().cloned());
    let invocation = match options::parse(arguments) {
        Ok(invocation) => invocation,
        Err(failure) => return failure::report(&failure, json),
    };
    let json = invocation.layers.is_on("json");
    let ended = run(&invocation, started);
    ranks::wait_for_end();
    match ended {
        Ok(()) => 0,
        Err(failure) => failure::report(&failure, json),
    }
}

fn run(invocation: &Invocation, started: Instant) -> Result<(), CliFailure> {
    let layers = &invocation.layers;
    let console = console::Console::new(layers)?;
    if ranks::follow_under_mpi(layers, invocation.command)? {
        return Ok(());
    }
    if let Err(why) = yirage_mmap::guard_mappings() {
        console.note(&format!("a file that is cut off while in use will end this program: {why}"));
    }
    for note in &invocation.notes {
        console.note(note);
    }
    let positional = invocation.positional.first().map(String::as_str);
    match invocation.command {
        CliCommand::Run => commands::run::run(layers, &console, started),
        CliCommand::Chat => commands::chat::run(layers, &console, started),
        CliCommand::Serve => commands::serve::run(layers, &console, &invocation.positional),
        CliCommand::Route => commands::route::run(layers, &console, &invocation.positional),
        CliCommand::Logits => commands::logits::run(layers, &console, started),
        CliCommand::Perplexity => commands::perplexity::run(layers, &console, started),
        CliCommand::Embed => commands::embed::run(layers, &console),
        CliCommand::Rerank => commands::rerank::run(layers, &console),
        CliCommand::Tokenize => commands::tokenize::run(layers, &console),
        CliCommand::Inspect => commands::inspect::run(layers, &console),
        CliCommand::Convert => commands::convert::run(layers, &console),
        CliCommand::Imatrix => commands::imatrix::run(layers, &console),
        CliCommand::Quantize => commands::quantize::run(layers, &console),
        CliCommand::Pull => commands::pull::run(layers, &console, positional),
        CliCommand::List => commands::list::run(layers, &console),
        CliCommand::Rm => commands::rm::run(layers, &console, positional.unwrap_or_default()),
        CliCommand::Cache => commands::cache::run(layers, &console, positional.unwrap_or_default()),
        CliCommand::Devices => commands::devices::run(&console),
        CliCommand::Doctor => commands::doctor::run(layers, &console),
        CliCommand::Verify => commands::verify::run(layers, &console),
        CliCommand::Bench => commands::bench::run(layers, &console),
        CliCommand::Scale => commands::scale::run(layers, &console),
        CliCommand::BenchGraph => commands::bench_graph::run(layers, &console, &invocation.positional),
        CliCommand::BenchServe => commands::bench_serve::run(layers, &console),
        CliCommand::BackendInfo => commands::backend::info::run(layers, &console),
        CliCommand::BackendOptimize => commands::backend::optimize::run(layers, &console),
        CliCommand::BackendBenchmark => commands::backend::benchmark::run(layers, &console, &invocation.positional),
        CliCommand::BackendSet => commands::backend::default::set(layers, &console, positional.unwrap_or_default()),
        CliCommand::BackendReset => commands::backend::default::reset(layers, &console),
        CliCommand::BackendSave => commands::backend::config::save(layers, &console, positional.unwrap_or_default()),
        CliCommand::BackendLoad => commands::backend::config::load(layers, &console, positional.unwrap_or_default()),
        CliCommand::BackendShow => commands::backend::config::show(layers, &console),
        CliCommand::BackendTest => commands::backend::test::run(layers, &console),
        CliCommand::GraphRun => commands::graph::run::run(layers, &console, positional.unwrap_or_default()),
        CliCommand::GraphShow => commands::graph::show::run(layers, &console, positional.unwrap_or_default()),
        CliCommand::GraphCheck => commands::graph::check::run(layers, &console, positional.unwrap_or_default()),
        CliCommand::PlanSave => commands::plan::save::run(layers, &console, positional.unwrap_or_default()),
        CliCommand::PlanShow => commands::plan::show::run(&console, positional.unwrap_or_default()),
        CliCommand::PlanCheck => commands::plan::check::run(layers, &console, positional.unwrap_or_default()),
        CliCommand::PlanRun => commands::plan::run::run(layers, &console, positional.unwrap_or_default()),
        CliCommand::Completions => commands::completions::run(&console, positional.unwrap_or_default()),
        CliCommand::Version => commands::version::run(&console),
        CliCommand::Explain => commands::explain::run(layers, &console),
        CliCommand::ConfigExplain => commands::config::run(layers, &console),
    }
}
