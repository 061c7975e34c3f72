//! The other ranks of a model, as a device that is one of several reaches them. How they do that it does not know.

use yirage_ir::{DType, Op};

/// The ranks that a device computes a model with, itself among them.
pub trait CpuPeers: Send + Sync {
    /// Which rank the device is, from 0.
    fn rank(&self) -> usize;

    /// How many ranks there are.
    fn ranks(&self) -> u32;

    /// Gives a matrix of so many rows and columns, as bytes, and waits for what the op says of all ranks' matrices. Every rank comes
    /// to the collectives of a step in the order of the plan.
    ///
    /// # Errors
    /// Why there is no result, as text: the step has failed then.
    fn meet(&self, op: &Op, dtype: DType, size: [usize; 2], bytes: &[u8]) -> Result<Vec<u8>, String>;
}
