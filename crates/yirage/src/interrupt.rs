//! Ctrl-C: ends a generation where it stands, and everything else at once.

use crate::failure::{CliFailure, no_thread};
use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

const IDLE: u8 = 0;
const GENERATING: u8 = 1;
const REQUESTED: u8 = 2;

/// The state shared with the signal handler.
#[derive(Clone)]
pub(crate) struct Interrupt(Arc<AtomicU8>);

impl Interrupt {
    /// Installs the handler. Call it once.
    ///
    /// # Errors
    /// [`CliFailure::Device`] when the system has no memory for the handler's thread, [`CliFailure::Other`] when it refuses
    /// for another reason.
    pub(crate) fn install() -> Result<Interrupt, CliFailure> {
        let state = Arc::new(AtomicU8::new(IDLE));
        let shared = Arc::clone(&state);
        ctrlc::set_handler(move || {
            // A first interrupt of a generation asks it to end; any other, also a second one, ends the process.
            if shared.compare_exchange(GENERATING, REQUESTED, Ordering::SeqCst, Ordering::SeqCst).is_err() {
                if std::io::stderr().is_terminal() {
                    // A bar or half a line may stand there. Nobody is left to tell when this fails.
                    let _ = writeln!(std::io::stderr());
                }
                std::process::exit(130);
            }
        })
        .map_err(refused)?;
        Ok(Interrupt(state))
    }

    /// A generation begins: from now on an interrupt asks it to end.
    pub(crate) fn begin(&self) {
        self.0.store(GENERATING, Ordering::SeqCst);
    }

    /// Whether the generation was asked to end.
    pub(crate) fn is_requested(&self) -> bool {
        self.0.load(Ordering::SeqCst) == REQUESTED
    }

    /// The generation is over.
    pub(crate) fn end(&self) {
        self.0.store(IDLE, Ordering::SeqCst);
    }
}

/// Why there is no handler.
fn refused(error: ctrlc::Error) -> CliFailure {
    match error {
        ctrlc::Error::System(e) => no_thread("the thread that waits for interrupts", &e),
        e => CliFailure::Other(format!("the interrupt handler cannot be installed: {e}")),
    }
}
