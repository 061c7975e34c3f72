//! Asking on a thread of its own, and not waiting for ever.

use crate::error::ProbeError;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

/// What `ask` answers within `deadline`. A thread that is late is left behind: nothing can end a call into a library.
pub(crate) fn within<T: Send + 'static>(
    deadline: Duration,
    path: &Path,
    ask: impl FnOnce() -> Result<T, ProbeError> + Send + 'static,
) -> Result<T, ProbeError> {
    let (send, receive) = sync_channel(1);
    let answer = move || {
        // After the deadline nobody listens.
        let _ = send.send(ask());
    };
    let not_asked = |why: String| ProbeError::NotAsked { path: path.to_path_buf(), why };
    thread::Builder::new().name("yirage-probe".into()).spawn(answer).map_err(|e| not_asked(e.to_string()))?;
    match receive.recv_timeout(deadline) {
        Ok(answer) => answer,
        Err(RecvTimeoutError::Timeout) => Err(ProbeError::Deadline { path: path.to_path_buf(), after: deadline }),
        Err(RecvTimeoutError::Disconnected) => Err(not_asked("the asking thread ended without an answer".into())),
    }
}
