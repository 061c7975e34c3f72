//! A kernel: what one thread does, instruction by instruction.

use crate::computation::Computation;
use crate::place::{KernelMemory, Register, Variable};
use crate::scalar::ScalarType;

/// What a kernel does with a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BufferAccess {
    /// It reads elements.
    Read,
    /// It writes elements, and reads none.
    Write,
    /// Both.
    ReadWrite,
}

impl BufferAccess {
    /// All of them.
    pub const ALL: [BufferAccess; 3] = [BufferAccess::Read, BufferAccess::Write, BufferAccess::ReadWrite];

    /// The name in text forms.
    pub fn name(self) -> &'static str {
        match self {
            BufferAccess::Read => "read",
            BufferAccess::Write => "write",
            BufferAccess::ReadWrite => "read_write",
        }
    }

    /// The inverse of [`BufferAccess::name`].
    pub fn parse(name: &str) -> Option<BufferAccess> {
        BufferAccess::ALL.into_iter().find(|access| access.name() == name)
    }
}

/// Whether a binding's memory may lie in one buffer with that of others, which the kernel writes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BufferOwnership {
    /// It is a buffer by itself.
    Own,
    /// It is a part of a buffer of which other parts may be written in the same launch.
    Pooled,
}

impl BufferOwnership {
    /// The name in text forms.
    pub fn name(self) -> &'static str {
        match self {
            BufferOwnership::Own => "own",
            BufferOwnership::Pooled => "pooled",
        }
    }

    /// The inverse of [`BufferOwnership::name`].
    pub fn parse(name: &str) -> Option<BufferOwnership> {
        [BufferOwnership::Own, BufferOwnership::Pooled].into_iter().find(|ownership| ownership.name() == name)
    }
}

/// A buffer that a launch binds.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct KernelBuffer {
    /// A word that sources show.
    pub name: String,
    /// Elements: 32 bits each, never bools.
    pub ty: ScalarType,
    /// What is done with them.
    pub access: BufferAccess,
    /// Where they lie.
    pub ownership: BufferOwnership,
}

/// Memory that the threads of a group share. What is in it when a group begins is not known.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SharedArray {
    /// Elements: 32 bits each, never bools.
    pub ty: ScalarType,
    /// How many.
    pub len: u32,
}

/// What a thread does.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Instruction {
    /// Computes a register.
    Compute(Register, Computation),
    /// Makes a variable, with its first value.
    Declare(Variable, Register),
    /// Changes a variable.
    Set(Variable, Register),
    /// Writes an element of memory.
    Store {
        /// The memory.
        memory: KernelMemory,
        /// Which element.
        at: Register,
        /// Its value.
        value: Register,
    },
    /// Runs the body for a counter that goes from `from` up by `step` as long as it is below `to`; all are u32.
    Loop {
        /// The counter, a register of the body.
        counter: Register,
        /// Its first value.
        from: Register,
        /// What it stays below.
        to: Register,
        /// What it grows by, above 0.
        step: Register,
        /// The body.
        body: Vec<Instruction>,
    },
    /// Runs one of two bodies.
    If {
        /// A bool.
        condition: Register,
        /// Where it is true.
        then: Vec<Instruction>,
        /// Where it is not.
        otherwise: Vec<Instruction>,
    },
    /// Waits until all threads of the group have come here, and what they wrote is seen by all. All threads of a group come to
    /// it, or none.
    Barrier,
}

/// A kernel.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ComputeKernel {
    /// Its name: a word.
    pub name: String,
    /// Threads of a group.
    pub threads: u32,
    /// What a launch binds, in order.
    pub buffers: Vec<KernelBuffer>,
    /// What a group shares.
    pub shared: Vec<SharedArray>,
    /// The type of each register.
    pub registers: Vec<ScalarType>,
    /// The type of each variable.
    pub variables: Vec<ScalarType>,
    /// What each thread does.
    pub body: Vec<Instruction>,
}

impl ComputeKernel {
    /// The type of a register.
    pub fn ty(&self, register: Register) -> ScalarType {
        self.registers[register.0 as usize]
    }

    /// The type of the elements of memory.
    pub fn element(&self, memory: KernelMemory) -> ScalarType {
        match memory {
            KernelMemory::Buffer(number) => self.buffers[number as usize].ty,
            KernelMemory::Shared(number) => self.shared[number as usize].ty,
        }
    }

    /// The kernel with its buffers in another order: place i has what was buffer `order[i]`.
    #[must_use]
    pub fn with_buffer_order(mut self, order: &[usize]) -> ComputeKernel {
        let mut places = vec![0; order.len()];
        for (place, &was) in order.iter().enumerate() {
            places[was] = place as u32;
        }
        self.buffers = order.iter().map(|&was| self.buffers[was].clone()).collect();
        rename(&mut self.body, &places);
        self
    }

    /// Bytes that a group shares.
    pub fn shared_bytes(&self) -> u64 {
        self.shared.iter().map(|array| u64::from(array.len) * 4).sum()
    }
}

/// Gives buffers other numbers.
fn rename(body: &mut [Instruction], places: &[u32]) {
    let renamed = |memory: &mut KernelMemory| {
        if let KernelMemory::Buffer(number) = memory {
            *number = places[*number as usize];
        }
    };
    for instruction in body {
        match instruction {
            Instruction::Compute(_, Computation::Load(memory, _)) | Instruction::Store { memory, .. } => {
                renamed(memory)
            }
            Instruction::Loop { body, .. } => rename(body, places),
            Instruction::If { then, otherwise, .. } => {
                rename(then, places);
                rename(otherwise, places);
            }
            Instruction::Compute(..) | Instruction::Declare(..) | Instruction::Set(..) | Instruction::Barrier => {}
        }
    }
}
