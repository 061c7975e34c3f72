//! The numbers by which a kernel names what it computes with: registers, variables and memory.

/// A value that is computed once and never changes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Register(pub u32);

/// A place of a thread's own whose value changes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Variable(pub u32);

/// Memory that a kernel reads or writes, by its number in the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum KernelMemory {
    /// A buffer.
    Buffer(u32),
    /// What a group shares.
    Shared(u32),
}
