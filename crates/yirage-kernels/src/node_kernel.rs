//! A kernel as a node of a plan launches it, before anything has an address.

use yirage_hal::driver::GridExtent;
use yirage_ir::{DType, ValueId};
use yirage_kir::ComputeKernel;

/// What a buffer of a kernel is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BufferSource {
    /// The block of the step's sizes.
    Sizes,
    /// A value of the plan's graph.
    Value(ValueId),
    /// A part of a weight.
    Part {
        /// The weight.
        value: ValueId,
        /// The part's first byte.
        offset: u64,
        /// Its bytes.
        bytes: u64,
    },
    /// A node's memory between its kernels.
    Workspace,
}

/// What a kernel reads or writes: a value of the plan, or what a kernel of the same node has left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Operand {
    /// A value of the plan's graph.
    Value(ValueId),
    /// Elements in the node's workspace.
    Temporary {
        /// The first word.
        first_word: u32,
        /// The elements' type.
        dtype: DType,
    },
}

/// A kernel's text in a vendor's language.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct NativeText {
    pub(crate) source: String,
    /// Whether it waits by itself for what earlier launches write.
    pub(crate) waits: bool,
}

/// A kernel of a node.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct NodeKernel {
    /// The kernel; of one in a vendor's language its name, its threads and its buffers alone.
    pub(crate) kernel: ComputeKernel,
    /// Its text, where it is in a vendor's language.
    pub(crate) native: Option<NativeText>,
    /// What its buffers are, in order. The workspace, where it has one, is the last.
    pub(crate) sources: Vec<BufferSource>,
    /// Bytes of the workspace.
    pub(crate) workspace: u64,
    /// Groups of threads.
    pub(crate) grid: [GridExtent; 3],
}

impl NodeKernel {
    /// Whether one of its buffers is the workspace.
    pub(crate) fn uses_workspace(&self) -> bool {
        self.sources.contains(&BufferSource::Workspace)
    }
}
