//! Kernels written at random that a verifier takes: every kind of instruction and computation.

use yirage_kir::{
    BinaryFunction, BufferAccess, BufferOwnership, ComputeKernel, KernelMemory, KernelWriter, Register, ScalarConst,
    ScalarType, SubgroupFunction, UnaryFunction, Variable,
};
use yirage_testkit::rng::Rng;

/// The kernel of a seed.
pub(crate) fn random_kernel(seed: u64) -> ComputeKernel {
    let mut rng = Rng::new(seed);
    let mut w = KernelWriter::new(format!("random_{seed}"), 1 << rng.below(8));
    let mut memory = Vec::new();
    for at in 0..1 + rng.below(4) {
        let access = *rng.choose(&BufferAccess::ALL);
        let ownership = *rng.choose(&[BufferOwnership::Own, BufferOwnership::Pooled]);
        let ty = *rng.choose(&[ScalarType::F32, ScalarType::I32, ScalarType::U32]);
        let buffer = w.buffer(format!("x{at}"), ty, access, ownership);
        memory.push(RandomMemory { memory: buffer, ty, access });
    }
    for _ in 0..rng.below(3) {
        let ty = *rng.choose(&[ScalarType::F32, ScalarType::I32, ScalarType::U32]);
        let shared = w.shared(ty, 1 + rng.below(64) as u32);
        memory.push(RandomMemory { memory: shared, ty, access: BufferAccess::ReadWrite });
    }
    let mut writer = RandomWriter { rng, w, memory, registers: Vec::new(), variables: Vec::new() };
    for ty in ScalarType::ALL {
        writer.constant(ty);
    }
    writer.statements(0);
    writer.w.finish()
}

struct RandomMemory {
    memory: KernelMemory,
    ty: ScalarType,
    access: BufferAccess,
}

struct RandomWriter {
    rng: Rng,
    w: KernelWriter,
    memory: Vec<RandomMemory>,
    /// What is in scope.
    registers: Vec<Register>,
    variables: Vec<(Variable, ScalarType)>,
}

impl RandomWriter {
    fn statements(&mut self, depth: usize) {
        let (registers, variables) = (self.registers.len(), self.variables.len());
        for _ in 0..self.rng.below(if depth == 0 { 24 } else { 8 }) {
            self.statement(depth);
        }
        self.registers.truncate(registers);
        self.variables.truncate(variables);
    }

    fn statement(&mut self, depth: usize) {
        match self.rng.below(14) {
            0 if depth < 5 => {
                let (from, to, step) = (self.any(ScalarType::U32), self.any(ScalarType::U32), self.w.u32(3));
                self.nested(|outer, w| {
                    w.for_each(from, to, step, |w, counter| outer.inside(w, depth, Some(counter)));
                });
            }
            1 if depth < 5 => {
                let condition = self.any(ScalarType::Bool);
                self.nested(|outer, w| w.when(condition, |w| outer.inside(w, depth, None)));
            }
            2 if depth < 5 => {
                let condition = self.any(ScalarType::Bool);
                let mut otherwise = self.branch();
                self.nested(|outer, w| {
                    w.either(condition, |w| outer.inside(w, depth, None), |w| otherwise.inside(w, depth, None));
                });
            }
            3 if depth == 0 => self.w.barrier(),
            4 if depth == 0 => self.subgroup(),
            5 => {
                let ty = *self.rng.choose(&ScalarType::ALL);
                let first = self.any(ty);
                self.variables.push((self.w.variable(first), ty));
            }
            6 if !self.variables.is_empty() => {
                let (variable, ty) = *self.rng.choose(&self.variables);
                let value = self.any(ty);
                self.w.set(variable, value);
            }
            7 => self.store(),
            _ => self.compute(),
        }
    }

    /// A second writer of bodies, for the other branch.
    fn branch(&mut self) -> RandomWriter {
        RandomWriter {
            rng: Rng::new(self.rng.next_u64()),
            w: KernelWriter::new("", 1),
            memory: self.memory.iter().map(|m| RandomMemory { ..*m }).collect(),
            registers: self.registers.clone(),
            variables: self.variables.clone(),
        }
    }

    /// Opens bodies: the writer is lent to `open`, which gives it back to what writes inside.
    fn nested(&mut self, open: impl FnOnce(&mut RandomWriter, &mut KernelWriter)) {
        let mut w = std::mem::replace(&mut self.w, KernelWriter::new("", 1));
        open(self, &mut w);
        self.w = w;
    }

    fn inside(&mut self, w: &mut KernelWriter, depth: usize, counter: Option<Register>) {
        std::mem::swap(&mut self.w, w);
        let known = self.registers.len();
        self.registers.extend(counter);
        self.statements(depth + 1);
        self.registers.truncate(known);
        std::mem::swap(&mut self.w, w);
    }

    fn constant(&mut self, ty: ScalarType) -> Register {
        let bits = if ty == ScalarType::Bool { self.rng.below(2) } else { self.rng.next_u64() };
        let register = self.w.constant(ScalarConst { ty, bits: bits as u32 });
        self.registers.push(register);
        register
    }

    /// A register of the type that is in scope.
    fn any(&mut self, ty: ScalarType) -> Register {
        let known: Vec<Register> = self.registers.iter().copied().filter(|&r| self.w_type(r) == ty).collect();
        if known.is_empty() || self.rng.one_in(8) { self.constant(ty) } else { *self.rng.choose(&known) }
    }

    fn w_type(&self, register: Register) -> ScalarType {
        self.w.ty(register)
    }

    fn store(&mut self) {
        let at = self.any(ScalarType::U32);
        let to = self.rng.below(self.memory.len() as u64) as usize;
        let RandomMemory { memory, ty, access } = self.memory[to];
        if access != BufferAccess::Read {
            let value = self.any(ty);
            self.w.store(memory, at, value);
        }
    }

    fn subgroup(&mut self) {
        let ty = *self.rng.choose(&[ScalarType::F32, ScalarType::I32, ScalarType::U32]);
        let (x, lane) = (self.any(ty), self.any(ScalarType::U32));
        let made = match self.rng.below(2) {
            0 => self.w.shuffle(x, lane),
            _ => {
                let function = *self.rng.choose(SubgroupFunction::ALL);
                self.w.subgroup(function, x)
            }
        };
        self.registers.push(made);
    }

    fn compute(&mut self) {
        let made = match self.rng.below(12) {
            0 => self.w.thread(),
            1 => {
                let axis = self.rng.below(3) as u8;
                self.w.group(axis)
            }
            2 if self.rng.one_in(2) => self.w.subgroup_lane(),
            2 => self.w.subgroup_size(),
            3 if !self.variables.is_empty() => {
                let (variable, _) = *self.rng.choose(&self.variables);
                self.w.get(variable)
            }
            4 => {
                let at = self.any(ScalarType::U32);
                let from = self.rng.below(self.memory.len() as u64) as usize;
                let RandomMemory { memory, access, .. } = self.memory[from];
                if access == BufferAccess::Write {
                    return;
                }
                self.w.load(memory, at)
            }
            5 => self.unary(),
            6 => {
                let ty = *self.rng.choose(&ScalarType::ALL);
                let (condition, a, b) = (self.any(ScalarType::Bool), self.any(ty), self.any(ty));
                self.w.select(condition, a, b)
            }
            7 => {
                let (from, to) = (*self.rng.choose(&ScalarType::ALL), *self.rng.choose(&ScalarType::ALL));
                let x = self.any(from);
                let to = if from == ScalarType::F32 && to == ScalarType::Bool { from } else { to };
                self.w.convert(to, x)
            }
            8 => {
                let words = [ScalarType::F32, ScalarType::I32, ScalarType::U32];
                let (from, to) = (*self.rng.choose(&words), *self.rng.choose(&words));
                let x = self.any(from);
                self.w.bitcast(to, x)
            }
            9 if self.rng.one_in(2) => {
                let (word, high) = (self.any(ScalarType::U32), self.rng.one_in(2));
                self.w.unpack_half(word, high)
            }
            9 => {
                let (low, high) = (self.any(ScalarType::F32), self.any(ScalarType::F32));
                self.w.pack_half(low, high)
            }
            _ => self.binary(),
        };
        self.registers.push(made);
    }

    fn unary(&mut self) -> Register {
        use UnaryFunction::{Abs, CountOnes, Floor, Neg, Not, Round, Sqrt};
        let function = *self.rng.choose(UnaryFunction::ALL);
        let types: &[ScalarType] = match function {
            Neg | Abs => &[ScalarType::F32, ScalarType::I32],
            Not => &[ScalarType::I32, ScalarType::U32, ScalarType::Bool],
            Sqrt | Floor | Round => &[ScalarType::F32],
            CountOnes => &[ScalarType::U32],
        };
        let ty = *self.rng.choose(types);
        let x = self.any(ty);
        self.w.unary(function, x)
    }

    fn binary(&mut self) -> Register {
        use BinaryFunction::{And, Equal, NotEqual, Or, Rem, ShiftLeft, ShiftRight, Xor};
        use ScalarType::{Bool, F32, I32, U32};
        let function = *self.rng.choose(BinaryFunction::ALL);
        let types: &[ScalarType] = match function {
            Rem => &[I32, U32],
            And | Or | Xor => &[I32, U32, Bool],
            ShiftLeft | ShiftRight => &[U32],
            Equal | NotEqual => &ScalarType::ALL,
            _ => &[F32, I32, U32],
        };
        let ty = *self.rng.choose(types);
        let (a, b) = (self.any(ty), self.any(ty));
        self.w.binary(function, a, b)
    }
}
