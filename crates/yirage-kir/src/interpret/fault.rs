//! What is wrong with a launch.

use crate::place::KernelMemory;
use crate::scalar::ScalarType;
use thiserror::Error;

/// Why a launch ended.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum KernelFault {
    /// It cannot begin.
    #[error("kernel `{kernel}` is not launched: {why}")]
    Launch {
        /// The kernel's name.
        kernel: String,
        /// What is wrong.
        why: String,
    },
    /// A thread does what a kernel must not.
    #[error("kernel `{kernel}`, `{instruction}`, thread {thread} of group {group:?}: {problem}")]
    Thread {
        /// The kernel's name.
        kernel: String,
        /// The line of the instruction.
        instruction: String,
        /// The thread's number in its group.
        thread: u32,
        /// The group's numbers.
        group: [u32; 3],
        /// What is wrong.
        problem: KernelProblem,
    },
}

/// What a thread must not do.
#[derive(Clone, Copy, PartialEq, Debug, Error)]
pub enum KernelProblem {
    /// An element beside its memory.
    #[error("element {index} of {memory}, which has {len}")]
    Beside {
        /// The memory.
        memory: KernelMemory,
        /// Which element.
        index: u32,
        /// Elements that there are.
        len: usize,
    },
    /// A race within a group.
    #[error(
        "element {index} of {memory} is touched by thread {other} too, one of the two writes, and no barrier is between"
    )]
    RaceInGroup {
        /// The memory.
        memory: KernelMemory,
        /// Which element.
        index: u32,
        /// The other thread, or the first of several.
        other: u32,
    },
    /// A race between groups.
    #[error("element {index} of {memory} is touched by another group too, and one of the two writes")]
    RaceOfGroups {
        /// The memory.
        memory: KernelMemory,
        /// Which element.
        index: u32,
    },
    /// Shared memory that is read before it is written.
    #[error("element {index} of {memory} is read, and no thread of the group has written it")]
    Unwritten {
        /// The memory.
        memory: KernelMemory,
        /// Which element.
        index: u32,
    },
    /// Some threads of the group come to what all must come to.
    #[error("{here} threads of the group come here, and all {all} must")]
    Diverged {
        /// How many come.
        here: usize,
        /// How many the group has.
        all: u32,
    },
    /// The smaller or larger of NaN.
    #[error("the smaller or larger of {0} and {1}")]
    OrderOfNan(f32, f32),
    /// A division of whole numbers by 0.
    #[error("a division of {0} by 0")]
    DivisionByZero(u32),
    /// A shift by all bits or more.
    #[error("a shift by {0} bits")]
    Shift(u32),
    /// A float that the type has no whole number for.
    #[error("{value} as {ty}")]
    Conversion {
        /// The float.
        value: f32,
        /// The type.
        ty: ScalarType,
    },
    /// A loop that does not go on.
    #[error("a loop with step 0")]
    LoopStep,
    /// A loop whose counter wraps around.
    #[error("the counter {counter} grows by {step} beyond 32 bits")]
    LoopOverflow {
        /// The counter.
        counter: u32,
        /// What it grows by.
        step: u32,
    },
    /// A thread of a subgroup that is none.
    #[error("thread {lane} of a subgroup that has {size}")]
    Lane {
        /// Its number in the subgroup.
        lane: u32,
        /// Threads of this subgroup.
        size: u32,
    },
    /// A launch that does not end.
    #[error("the launch has run {0} instructions, and may run no more")]
    Budget(u64),
}
