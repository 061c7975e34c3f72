//! Messages that are on their way, and the memory that the library reads and writes until they have come.

use super::abi::{Functions, Handles, text};
use crate::error::CommError;
use crate::transport::WaitLimit;
use std::ffi::c_int;
use std::time::Duration;

/// Looks at open messages after which a rank that waits sleeps between them.
const EAGER_LOOKS: u32 = 2000;
const SLEEP: Duration = Duration::from_micros(50);

/// What the ranks that have sent something have sent, and the ranks whose messages have not come.
type Come = (Vec<(usize, Vec<u8>)>, Vec<usize>);

/// Open messages.
pub(super) struct Requests<'a, H: Handles> {
    functions: &'a Functions<H>,
    comm: H,
    bytes: H,
    open: Vec<OpenMessage<H>>,
    done: Vec<OpenMessage<H>>,
}

struct OpenMessage<H> {
    peer: usize,
    handle: H,
    receives: bool,
    memory: Vec<u8>,
}

impl<'a, H: Handles> Requests<'a, H> {
    pub(super) fn new(functions: &'a Functions<H>, comm: H, bytes: H) -> Requests<'a, H> {
        Requests { functions, comm, bytes, open: Vec::new(), done: Vec::new() }
    }

    pub(super) fn recv(&mut self, peer: usize, tag: c_int, len: usize) -> Result<(), CommError> {
        let mut memory = vec![0; len];
        let mut handle = H::NONE;
        // SAFETY: the memory is this request's until it is done; it is never given back before (`drop`). A round has fewer bytes
        // than the largest number.
        let code = unsafe {
            let place = memory.as_mut_ptr().cast();
            (self.functions.irecv)(place, len as c_int, self.bytes, peer as c_int, tag, self.comm, &raw mut handle)
        };
        self.opened("MPI_Irecv", code, OpenMessage { peer, handle, receives: true, memory })
    }

    pub(super) fn send(&mut self, peer: usize, tag: c_int, bytes: &[u8]) -> Result<(), CommError> {
        // A copy of its own: what the caller lent may be gone when the library still reads.
        let memory = bytes.to_vec();
        let mut handle = H::NONE;
        // SAFETY: the memory is this request's until it is done, as in `Requests::recv`; a round has fewer bytes than the largest number.
        let code = unsafe {
            let (place, len) = (memory.as_ptr().cast(), memory.len() as c_int);
            (self.functions.isend)(place, len, self.bytes, peer as c_int, tag, self.comm, &raw mut handle)
        };
        self.opened("MPI_Isend", code, OpenMessage { peer, handle, receives: false, memory })
    }

    fn opened(&mut self, call: &'static str, code: c_int, request: OpenMessage<H>) -> Result<(), CommError> {
        match code {
            0 => self.open.push(request),
            code => return Err(failed(self.functions, call, code)),
        }
        Ok(())
    }

    /// Waits for all, as long as the call may. Messages that have not come by then stay open for good.
    pub(super) fn finish(mut self, wait: WaitLimit) -> Result<Come, CommError> {
        let mut looks = 0;
        while !self.open.is_empty() && self.look()? {
            if wait.left().is_zero() {
                break;
            }
            looks += 1;
            if looks < EAGER_LOOKS {
                std::thread::yield_now();
            } else {
                std::thread::sleep(SLEEP.min(wait.left()));
            }
        }
        let mut missing: Vec<usize> = self.open.iter().map(|request| request.peer).collect();
        missing.sort_unstable();
        missing.dedup();
        let come = std::mem::take(&mut self.done).into_iter().filter(|request| request.receives);
        Ok((come.map(|request| (request.peer, request.memory)).collect(), missing))
    }

    /// Moves what has come to what is done; whether something is open still.
    fn look(&mut self) -> Result<bool, CommError> {
        let mut at = 0;
        while at < self.open.len() {
            let mut flag = 0;
            // SAFETY: a request that the library has made and not ended yet.
            let code =
                unsafe { (self.functions.test)(&raw mut self.open[at].handle, &raw mut flag, H::IGNORED_STATUS) };
            match (code, flag) {
                (0, 0) => at += 1,
                (0, _) => self.done.push(self.open.swap_remove(at)),
                (code, _) => return Err(failed(self.functions, "MPI_Test", code)),
            }
        }
        Ok(!self.open.is_empty())
    }
}

impl<H: Handles> Drop for Requests<'_, H> {
    fn drop(&mut self) {
        // The library may write to the memory of what is open at any time: it is never given back.
        std::mem::forget(std::mem::take(&mut self.open));
    }
}

/// What the library says of an error.
pub(super) fn failed<H: Handles>(functions: &Functions<H>, call: &'static str, code: c_int) -> CommError {
    // SAFETY: the library writes no more than the longest text.
    let why = text(|buffer, len| unsafe { (functions.error_string)(code, buffer, len) });
    CommError::Transport { call, why: why.unwrap_or_else(|| format!("error {code}")) }
}
