//! Writing kernels: each call adds an instruction behind those before it.
//!
//! What can be known at once is computed at once (sums and products of constants, `x + 0`, `x * 1`), and what was computed
//! before in the same or an outer body is not computed again. Constants differ by their bits, so nothing is folded that a
//! device would round.

use crate::computation::{BinaryFunction, Computation, SubgroupFunction, UnaryFunction};
use crate::kernel::{BufferAccess, BufferOwnership, ComputeKernel, Instruction, KernelBuffer, SharedArray};
use crate::place::{KernelMemory, Register, Variable};
use crate::scalar::{ScalarConst, ScalarType};
use std::collections::HashMap;

/// A kernel being written.
#[derive(Debug)]
pub struct KernelWriter {
    kernel: ComputeKernel,
    /// The bodies that are open, the innermost last.
    bodies: Vec<OpenBody>,
    constants: HashMap<Register, ScalarConst>,
}

#[derive(Debug, Default)]
struct OpenBody {
    instructions: Vec<Instruction>,
    known: HashMap<Computation, Register>,
}

impl KernelWriter {
    /// A kernel of groups of so many threads.
    pub fn new(name: impl Into<String>, threads: u32) -> KernelWriter {
        let kernel = ComputeKernel {
            name: name.into(),
            threads,
            buffers: Vec::new(),
            shared: Vec::new(),
            registers: Vec::new(),
            variables: Vec::new(),
            body: Vec::new(),
        };
        KernelWriter { kernel, bodies: vec![OpenBody::default()], constants: HashMap::new() }
    }

    /// The kernel.
    ///
    /// # Panics
    /// Never: every body that was opened was closed.
    pub fn finish(mut self) -> ComputeKernel {
        self.kernel.body = self.bodies.pop().map(|body| body.instructions).unwrap_or_default();
        self.kernel
    }

    /// Threads of a group.
    pub fn threads(&self) -> u32 {
        self.kernel.threads
    }

    /// A buffer more that a launch binds.
    pub fn buffer(
        &mut self,
        name: impl Into<String>,
        ty: ScalarType,
        access: BufferAccess,
        ownership: BufferOwnership,
    ) -> KernelMemory {
        self.kernel.buffers.push(KernelBuffer { name: name.into(), ty, access, ownership });
        KernelMemory::Buffer(self.kernel.buffers.len() as u32 - 1)
    }

    /// Says that a buffer is accessed so, too.
    pub fn touch(&mut self, buffer: KernelMemory, access: BufferAccess) {
        if let KernelMemory::Buffer(number) = buffer {
            let known = &mut self.kernel.buffers[number as usize].access;
            *known = if *known == access { access } else { BufferAccess::ReadWrite };
        }
    }

    /// Memory that a group shares.
    pub fn shared(&mut self, ty: ScalarType, len: u32) -> KernelMemory {
        self.kernel.shared.push(SharedArray { ty, len });
        KernelMemory::Shared(self.kernel.shared.len() as u32 - 1)
    }

    /// The type of a register.
    pub fn ty(&self, register: Register) -> ScalarType {
        self.kernel.ty(register)
    }

    /// A constant.
    pub fn constant(&mut self, value: impl Into<ScalarConst>) -> Register {
        let value = value.into();
        let register = self.compute(Computation::Const(value), value.ty);
        self.constants.insert(register, value);
        register
    }

    /// A u32.
    pub fn u32(&mut self, value: u32) -> Register {
        self.constant(value)
    }

    /// An i32.
    pub fn i32(&mut self, value: i32) -> Register {
        self.constant(value)
    }

    /// An f32.
    pub fn f32(&mut self, value: f32) -> Register {
        self.constant(value)
    }

    /// The thread's number in its group.
    pub fn thread(&mut self) -> Register {
        self.compute(Computation::Thread, ScalarType::U32)
    }

    /// The group's number along an axis of the grid.
    pub fn group(&mut self, axis: u8) -> Register {
        self.compute(Computation::Group(axis), ScalarType::U32)
    }

    /// The thread's number in its subgroup.
    pub fn subgroup_lane(&mut self) -> Register {
        self.compute(Computation::SubgroupLane, ScalarType::U32)
    }

    /// Threads of a subgroup.
    pub fn subgroup_size(&mut self) -> Register {
        self.compute(Computation::SubgroupSize, ScalarType::U32)
    }

    /// An element of memory.
    pub fn load(&mut self, memory: KernelMemory, at: Register) -> Register {
        let ty = self.kernel.element(memory);
        self.compute(Computation::Load(memory, at), ty)
    }

    /// Writes an element of memory.
    pub fn store(&mut self, memory: KernelMemory, at: Register, value: Register) {
        self.push(Instruction::Store { memory, at, value });
    }

    /// A function of one.
    pub fn unary(&mut self, function: UnaryFunction, x: Register) -> Register {
        let ty = self.ty(x);
        self.compute(Computation::Unary(function, x), ty)
    }

    /// A function of two of one type.
    pub fn binary(&mut self, function: BinaryFunction, a: Register, b: Register) -> Register {
        if let Some(known) = self.folded(function, a, b) {
            return known;
        }
        let ty = if function.compares() { ScalarType::Bool } else { self.ty(a) };
        self.compute(Computation::Binary(function, a, b), ty)
    }

    /// The second where the first is true, and the third where not.
    pub fn select(&mut self, condition: Register, a: Register, b: Register) -> Register {
        let ty = self.ty(a);
        self.compute(Computation::Select(condition, a, b), ty)
    }

    /// The number as another type.
    pub fn convert(&mut self, to: ScalarType, x: Register) -> Register {
        if self.ty(x) == to { x } else { self.compute(Computation::Convert(to, x), to) }
    }

    /// The bits as another type.
    pub fn bitcast(&mut self, to: ScalarType, x: Register) -> Register {
        if self.ty(x) == to { x } else { self.compute(Computation::Bitcast(to, x), to) }
    }

    /// The f16 in the low or the high half of a word, as f32.
    pub fn unpack_half(&mut self, word: Register, high: bool) -> Register {
        self.compute(Computation::UnpackHalf(word, high), ScalarType::F32)
    }

    /// Two f32 as f16 in a word.
    pub fn pack_half(&mut self, low: Register, high: Register) -> Register {
        self.compute(Computation::PackHalf(low, high), ScalarType::U32)
    }

    /// What a subgroup makes of a register.
    pub fn subgroup(&mut self, function: SubgroupFunction, x: Register) -> Register {
        let ty = self.ty(x);
        self.compute(Computation::Subgroup(function, x), ty)
    }

    /// What another thread of the subgroup has.
    pub fn shuffle(&mut self, x: Register, lane: Register) -> Register {
        let ty = self.ty(x);
        self.compute(Computation::SubgroupShuffle(x, lane), ty)
    }

    /// A variable with its first value.
    pub fn variable(&mut self, first: Register) -> Variable {
        self.kernel.variables.push(self.ty(first));
        let variable = Variable(self.kernel.variables.len() as u32 - 1);
        self.push(Instruction::Declare(variable, first));
        variable
    }

    /// What a variable holds now.
    pub fn get(&mut self, variable: Variable) -> Register {
        let ty = self.kernel.variables[variable.0 as usize];
        self.compute(Computation::Get(variable), ty)
    }

    /// Changes a variable.
    pub fn set(&mut self, variable: Variable, value: Register) {
        self.push(Instruction::Set(variable, value));
    }

    /// A loop over a counter of u32.
    pub fn for_each(
        &mut self,
        from: Register,
        to: Register,
        step: Register,
        body: impl FnOnce(&mut KernelWriter, Register),
    ) {
        let counter = self.register(ScalarType::U32);
        let body = self.body(|w| body(w, counter));
        self.push(Instruction::Loop { counter, from, to, step, body });
    }

    /// A body that runs where a condition holds.
    pub fn when(&mut self, condition: Register, then: impl FnOnce(&mut KernelWriter)) {
        self.either(condition, then, |_| {});
    }

    /// One of two bodies.
    pub fn either(
        &mut self,
        condition: Register,
        then: impl FnOnce(&mut KernelWriter),
        otherwise: impl FnOnce(&mut KernelWriter),
    ) {
        let (then, otherwise) = (self.body(then), self.body(otherwise));
        self.push(Instruction::If { condition, then, otherwise });
    }

    /// Waits for all threads of the group.
    pub fn barrier(&mut self) {
        self.push(Instruction::Barrier);
    }

    fn body(&mut self, write: impl FnOnce(&mut KernelWriter)) -> Vec<Instruction> {
        self.bodies.push(OpenBody::default());
        write(self);
        self.bodies.pop().map(|body| body.instructions).unwrap_or_default()
    }

    fn push(&mut self, instruction: Instruction) {
        if let Some(body) = self.bodies.last_mut() {
            body.instructions.push(instruction);
        }
    }

    fn register(&mut self, ty: ScalarType) -> Register {
        self.kernel.registers.push(ty);
        Register(self.kernel.registers.len() as u32 - 1)
    }

    fn compute(&mut self, computation: Computation, ty: ScalarType) -> Register {
        let pure = computation.is_pure();
        if pure && let Some(&known) = self.bodies.iter().rev().find_map(|body| body.known.get(&computation)) {
            return known;
        }
        let register = self.register(ty);
        self.push(Instruction::Compute(register, computation));
        if let Some(body) = self.bodies.last_mut().filter(|_| pure) {
            body.known.insert(computation, register);
        }
        register
    }

    /// The value of a register that is a constant of u32.
    fn known_u32(&self, register: Register) -> Option<u32> {
        self.constants.get(&register).filter(|value| value.ty == ScalarType::U32).map(|value| value.bits)
    }

    /// Index arithmetic that need not be done on the device.
    fn folded(&mut self, function: BinaryFunction, a: Register, b: Register) -> Option<Register> {
        use BinaryFunction::{Add, Div, Mul, Rem, Sub};
        if self.ty(a) != ScalarType::U32 {
            return None;
        }
        match (function, self.known_u32(a), self.known_u32(b)) {
            (Add, Some(x), Some(y)) => Some(self.u32(x.wrapping_add(y))),
            (Sub, Some(x), Some(y)) => Some(self.u32(x.wrapping_sub(y))),
            (Mul, Some(x), Some(y)) => Some(self.u32(x.wrapping_mul(y))),
            (Div, Some(x), Some(y)) if y > 0 => Some(self.u32(x / y)),
            (Rem, Some(x), Some(y)) if y > 0 => Some(self.u32(x % y)),
            (Add | Sub, _, Some(0)) | (Mul | Div, _, Some(1)) => Some(a),
            (Add, Some(0), _) | (Mul, Some(1), _) => Some(b),
            (Mul, Some(0), _) | (Mul, _, Some(0)) | (Rem, _, Some(1)) => Some(self.u32(0)),
            // A division is dear on every device.
            (Div, _, Some(y)) if y.is_power_of_two() => {
                let bits = self.u32(y.trailing_zeros());
                Some(self.shr(a, bits))
            }
            (Rem, _, Some(y)) if y.is_power_of_two() => {
                let mask = self.u32(y - 1);
                Some(self.and(a, mask))
            }
            _ => None,
        }
    }
}

macro_rules! shorthands {
    ($($(#[$doc:meta])* $name:ident = $function:ident;)*) => {
        impl KernelWriter {
            $($(#[$doc])*
            pub fn $name(&mut self, a: Register, b: Register) -> Register {
                self.binary(BinaryFunction::$function, a, b)
            })*
        }
    };
}

shorthands! {
    /// `a + b`.
    add = Add;
    /// `a - b`.
    sub = Sub;
    /// `a * b`.
    mul = Mul;
    /// `a / b`.
    div = Div;
    /// What `a / b` leaves.
    rem = Rem;
    /// The smaller of two that are no NaN.
    min = Min;
    /// The larger of two that are no NaN.
    max = Max;
    /// Bits of both.
    and = And;
    /// Bits of either.
    or = Or;
    /// Bits of one.
    xor = Xor;
    /// `a << b`.
    shl = ShiftLeft;
    /// `a >> b`.
    shr = ShiftRight;
    /// `a < b`.
    less = Less;
    /// `a <= b`.
    less_equal = LessEqual;
    /// `a == b`.
    equal = Equal;
    /// `a != b`.
    not_equal = NotEqual;
}
