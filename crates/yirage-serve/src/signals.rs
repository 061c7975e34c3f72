//! Requests of the system that the process end. They are taken from the moment there is a [`Signals`], whether or not
//! anybody waits for the next.

use std::io;

/// What asks the process to end: SIGTERM and SIGINT.
#[cfg(unix)]
pub struct Signals {
    term: tokio::signal::unix::Signal,
    int: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    /// Takes them from now on. Within a runtime.
    ///
    /// # Errors
    /// What the system says where it does not tell.
    pub fn taken() -> io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals { term: signal(SignalKind::terminate())?, int: signal(SignalKind::interrupt())? })
    }

    /// Waits for the next.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.term.recv() => {}
            _ = self.int.recv() => {}
        }
    }
}

/// What asks the process to end: Ctrl-C.
#[cfg(windows)]
pub struct Signals(tokio::signal::windows::CtrlC);

#[cfg(windows)]
impl Signals {
    /// Takes them from now on. Within a runtime.
    ///
    /// # Errors
    /// What the system says where it does not tell.
    pub fn taken() -> io::Result<Signals> {
        tokio::signal::windows::ctrl_c().map(Signals)
    }

    /// Waits for the next.
    pub async fn next(&mut self) {
        self.0.recv().await;
    }
}
