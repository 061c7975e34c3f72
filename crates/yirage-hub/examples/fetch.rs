//! Fetches a model, or the default one, and prints where it is: `cargo run -p yirage-hub --example fetch [REFERENCE]`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example talks to its terminal")]

use std::process::ExitCode;
use yirage_hub::{DownloadProgress, Hub, HubEnv, HubError, ModelRef, Resolved};

/// One line per event.
struct Lines;

impl DownloadProgress for Lines {
    fn start(&self, file: &str, total_bytes: Option<u64>, done_bytes: u64) {
        eprintln!("{file}: {done_bytes} of {} bytes are here", total_bytes.unwrap_or(0));
    }
    fn advance(&self, _done_bytes: u64) {}
    fn finish(&self) {
        eprintln!("done");
    }
    fn note(&self, message: &str) {
        eprintln!("{message}");
    }
}

fn fetch() -> Result<Resolved, HubError> {
    let hub = Hub::new(HubEnv::from_env());
    match std::env::args().nth(1) {
        Some(text) => hub.resolve(&ModelRef::parse(&text)?, &Lines),
        None => hub.resolve_default(&Lines),
    }
}

fn main() -> ExitCode {
    match fetch() {
        Ok(model) => {
            println!("{} ({:?}, {:?}): {}", model.name, model.kind, model.origin, model.path.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
