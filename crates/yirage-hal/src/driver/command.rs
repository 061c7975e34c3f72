//! What a device's queue is told to do.

use super::memory::BufferSlice;
use yirage_ir::{DType, Op};

/// Code that was given to a device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ModuleId(pub u64);

/// An operation of a vendor's library, made ready for its operands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct OperationId(pub u64);

/// What a command does with the bytes of a binding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BindingAccess {
    /// It reads them.
    Read,
    /// It writes them, and reads none that it has not written.
    Write,
    /// It does both.
    ReadWrite,
}

impl BindingAccess {
    /// Whether bytes change.
    pub fn writes(self) -> bool {
        self != BindingAccess::Read
    }

    /// What one command does that does both.
    #[must_use]
    pub fn and(self, other: BindingAccess) -> BindingAccess {
        if self == other { self } else { BindingAccess::ReadWrite }
    }
}

/// Bytes that a command touches. No other ones does it touch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Binding {
    /// The bytes.
    pub slice: BufferSlice,
    /// What is done with them.
    pub access: BindingAccess,
}

/// What a launch is beside its grid and what it touches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LaunchConfig {
    /// The kernel's name in its code.
    pub entry: String,
    /// Threads of a group, along three axes.
    pub block: [u32; 3],
    /// Bytes of a group's shared memory beside what the code declares.
    pub shared_bytes: u32,
    /// Whether all groups run at the same time, so that they may wait for each other.
    pub cooperative: bool,
    /// Whether it may begin before the command ahead of it has ended; the kernel waits by itself before it touches what
    /// that one writes (programmatic dependent launch). A device that cannot do so begins it after that command.
    pub early_start: bool,
    /// The bytes of the structure that is its last parameter; none where it has no such one.
    pub arguments: Vec<u8>,
}

/// A kernel to run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Launch {
    /// The code.
    pub module: ModuleId,
    /// Which kernel, and how.
    pub config: LaunchConfig,
    /// Groups of threads, along three axes.
    pub grid: [u32; 3],
    /// What it touches, in the order of its parameters. Of two that overlap neither is written.
    pub bindings: Vec<Binding>,
}

/// An operation of a vendor's library to run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OperationCall {
    /// The operation.
    pub operation: OperationId,
    /// Its operands, as it was prepared for them.
    pub bindings: Vec<Binding>,
    /// Memory that it may use as it likes while it runs, at least as much as it said it wants.
    pub workspace: Option<BufferSlice>,
}

/// What the devices of a group do together with a matrix of each: the ops of the same names (`yirage_ir::op`). `Rows` is the
/// number of rows, or for all sizes of a plan how that follows from them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CollectiveCall<Rows = u32> {
    /// The op, with the number of ranks.
    pub op: Op,
    /// The type of the elements.
    pub dtype: DType,
    /// Rows that each rank gives.
    pub rows: Rows,
    /// Elements of a row that each rank gives.
    pub width: u32,
    /// What the rank gives: its rows, one after the other.
    pub from: BufferSlice,
    /// Where it gets what the op says.
    pub to: BufferSlice,
}

/// What a queue does with memory by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemoryCommand {
    /// Copies bytes to other ones, which are as many and do not overlap them.
    Copy {
        /// The bytes.
        from: BufferSlice,
        /// Where they go.
        to: BufferSlice,
    },
    /// Makes every byte this one.
    Fill {
        /// The bytes.
        slice: BufferSlice,
        /// What each becomes.
        byte: u8,
    },
}

/// What a queue does within a step. All of it can be captured and replayed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StepCommand {
    /// Runs a kernel.
    Launch(Launch),
    /// Runs an operation of a library.
    Operation(OperationCall),
    /// Takes part in what the group does. It ends when all ranks have come to it.
    Collective(CollectiveCall),
    /// Copies or fills.
    Memory(MemoryCommand),
}

#[cfg(test)]
mod tests {
    use super::BindingAccess::{Read, ReadWrite, Write};

    #[test]
    fn two_accesses_are_one() {
        assert_eq!([Read.and(Read), Write.and(Write), Read.and(Write)], [Read, Write, ReadWrite]);
        assert_eq!([ReadWrite.and(Read), Write.and(ReadWrite)], [ReadWrite; 2]);
        assert_eq!([Read, Write, ReadWrite].map(super::BindingAccess::writes), [false, true, true]);
    }
}
