//! Launches on the queue.

use yirage_hal::driver::Binding;

/// A kernel and what it is called with.
#[derive(Clone, Debug)]
pub(crate) struct SimLaunch {
    pub(crate) module: u64,
    pub(crate) kernel: usize,
    pub(crate) grid: [u32; 3],
    pub(crate) bindings: Vec<Binding>,
    pub(crate) arguments: Vec<u8>,
}
