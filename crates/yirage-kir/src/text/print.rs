//! Kernels as text.

use crate::computation::Computation;
use crate::kernel::{ComputeKernel, Instruction, KernelBuffer};
use crate::place::{KernelMemory, Register, Variable};
use crate::scalar::{ScalarConst, ScalarType};
use std::fmt::{self, Write};

/// The text of a kernel, which [`verify()`](crate::verify()) takes.
pub fn print(kernel: &ComputeKernel) -> String {
    let mut text = String::new();
    // A text grows without end or not at all.
    let _ = KernelText { kernel, out: &mut text }.kernel();
    text
}

struct KernelText<'a> {
    kernel: &'a ComputeKernel,
    out: &'a mut String,
}

impl KernelText<'_> {
    fn kernel(&mut self) -> fmt::Result {
        let kernel = self.kernel;
        writeln!(self.out, "kernel {} threads {} {{", kernel.name, kernel.threads)?;
        for (at, KernelBuffer { name, ty, access, ownership }) in kernel.buffers.iter().enumerate() {
            writeln!(self.out, "buffer b{at} {ty} {} {} {name}", access.name(), ownership.name())?;
        }
        for (at, array) in kernel.shared.iter().enumerate() {
            writeln!(self.out, "shared s{at} {} {}", array.ty, array.len)?;
        }
        self.body(&kernel.body, 0)?;
        writeln!(self.out, "}}")
    }

    fn body(&mut self, body: &[Instruction], depth: usize) -> fmt::Result {
        body.iter().try_for_each(|instruction| self.instruction(instruction, depth))
    }

    fn instruction(&mut self, instruction: &Instruction, depth: usize) -> fmt::Result {
        writeln!(self.out, "{:depth$}{}", "", InstructionLine { kernel: self.kernel, instruction })?;
        match instruction {
            Instruction::Loop { body, .. } => {
                self.body(body, depth + 1)?;
                self.close(depth, "}")
            }
            Instruction::If { then, otherwise, .. } => {
                self.body(then, depth + 1)?;
                if !otherwise.is_empty() {
                    self.close(depth, "} else {")?;
                    self.body(otherwise, depth + 1)?;
                }
                self.close(depth, "}")
            }
            Instruction::Compute(..)
            | Instruction::Declare(..)
            | Instruction::Set(..)
            | Instruction::Store { .. }
            | Instruction::Barrier => Ok(()),
        }
    }

    fn close(&mut self, depth: usize, brace: &str) -> fmt::Result {
        writeln!(self.out, "{:depth$}{brace}", "")
    }
}

/// The line of an instruction: of one with bodies, what stands before them.
pub(crate) struct InstructionLine<'a> {
    pub(crate) kernel: &'a ComputeKernel,
    pub(crate) instruction: &'a Instruction,
}

impl fmt::Display for InstructionLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.instruction {
            Instruction::Compute(register, computation) => {
                let ty = TypeOf(self.kernel.registers.get(register.0 as usize));
                write!(f, "{register}: {ty} = {computation}")
            }
            Instruction::Declare(variable, first) => {
                let ty = TypeOf(self.kernel.variables.get(variable.0 as usize));
                write!(f, "var {variable}: {ty} = {first}")
            }
            Instruction::Set(variable, value) => write!(f, "set {variable} {value}"),
            Instruction::Store { memory, at, value } => write!(f, "store {memory} {at} {value}"),
            Instruction::Loop { counter, from, to, step, .. } => {
                write!(f, "loop {counter} from {from} to {to} step {step} {{")
            }
            Instruction::If { condition, .. } => write!(f, "if {condition} {{"),
            Instruction::Barrier => f.write_str("barrier"),
        }
    }
}

/// A type, or what is printed of a number that the kernel does not have.
struct TypeOf<'a>(Option<&'a ScalarType>);

impl fmt::Display for TypeOf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.map_or("unknown", |ty| ty.name()))
    }
}

impl fmt::Display for Register {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r{}", self.0)
    }
}

impl fmt::Display for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}", self.0)
    }
}

impl fmt::Display for KernelMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KernelMemory::Buffer(number) => write!(f, "b{number}"),
            KernelMemory::Shared(number) => write!(f, "s{number}"),
        }
    }
}

impl fmt::Display for ScalarConst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ty {
            ScalarType::F32 => write!(f, "0x{:08x}", self.bits),
            ScalarType::I32 => write!(f, "{}", self.bits as i32),
            ScalarType::U32 | ScalarType::Bool => write!(f, "{}", self.bits),
        }
    }
}

impl fmt::Display for Computation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Computation::Const(value) => write!(f, "const {value}"),
            Computation::Thread => f.write_str("thread"),
            Computation::Group(axis) => write!(f, "group {axis}"),
            Computation::SubgroupLane => f.write_str("subgroup_lane"),
            Computation::SubgroupSize => f.write_str("subgroup_size"),
            Computation::Get(variable) => write!(f, "get {variable}"),
            Computation::Load(memory, at) => write!(f, "load {memory} {at}"),
            Computation::Unary(function, x) => write!(f, "{} {x}", function.name()),
            Computation::Binary(function, a, b) => write!(f, "{} {a} {b}", function.name()),
            Computation::Select(condition, a, b) => write!(f, "select {condition} {a} {b}"),
            Computation::Convert(_, x) => write!(f, "convert {x}"),
            Computation::Bitcast(_, x) => write!(f, "bitcast {x}"),
            Computation::UnpackHalf(word, false) => write!(f, "unpack_low {word}"),
            Computation::UnpackHalf(word, true) => write!(f, "unpack_high {word}"),
            Computation::PackHalf(low, high) => write!(f, "pack_half {low} {high}"),
            Computation::Subgroup(function, x) => write!(f, "subgroup_{} {x}", function.name()),
            Computation::SubgroupShuffle(x, lane) => write!(f, "shuffle {x} {lane}"),
        }
    }
}
