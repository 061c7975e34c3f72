//! Numbers, scopes and types: what must hold for a kernel to mean anything.

use super::VerifyKernelError;
use super::name::{is_taken, is_word};
use crate::computation::{BinaryFunction, Computation, UnaryFunction};
use crate::kernel::{BufferAccess, ComputeKernel, Instruction};
use crate::limits::{MAX_BODY_DEPTH, MAX_REGISTERS, MAX_SHARED_BYTES, MAX_THREADS};
use crate::place::{KernelMemory, Register, Variable};
use crate::scalar::ScalarType;

/// Checks all rules but those of uniform control flow.
pub(crate) fn check(kernel: &ComputeKernel) -> Result<(), VerifyKernelError> {
    declarations(kernel).map_err(|what| VerifyKernelError::of(kernel, what))?;
    let mut scopes = Scopes {
        kernel,
        registers: vec![NameState::Unseen; kernel.registers.len()],
        variables: vec![NameState::Unseen; kernel.variables.len()],
    };
    scopes.body(&kernel.body, 0)?;
    let never = |places: &[NameState]| places.iter().position(|place| *place == NameState::Unseen);
    let what = match (never(&scopes.registers), never(&scopes.variables)) {
        (Some(number), _) => format!("{} is computed nowhere", Register(number as u32)),
        (None, Some(number)) => format!("{} is declared nowhere", Variable(number as u32)),
        (None, None) => return Ok(()),
    };
    Err(VerifyKernelError::of(kernel, what))
}

/// What stands before the instructions.
fn declarations(kernel: &ComputeKernel) -> Result<(), String> {
    if !is_word(&kernel.name) || is_taken(&kernel.name) {
        return Err("its name is no word that every source can have for a kernel".into());
    }
    if kernel.threads == 0 || kernel.threads > MAX_THREADS {
        return Err(format!("a group of {} threads: it has 1 to {MAX_THREADS}", kernel.threads));
    }
    for (at, buffer) in kernel.buffers.iter().enumerate() {
        if !is_word(&buffer.name) {
            return Err(format!("the name of b{at}, {:?}, is no word", buffer.name));
        }
        if buffer.ty == ScalarType::Bool {
            return Err(format!("elements of b{at} are bools, which no memory has"));
        }
    }
    for (at, array) in kernel.shared.iter().enumerate() {
        if array.ty == ScalarType::Bool {
            return Err(format!("elements of s{at} are bools, which no memory has"));
        }
        if array.len == 0 {
            return Err(format!("s{at} has no elements"));
        }
    }
    if kernel.shared_bytes() > MAX_SHARED_BYTES {
        return Err(format!("a group shares {} bytes: at most {MAX_SHARED_BYTES}", kernel.shared_bytes()));
    }
    if kernel.registers.len() > MAX_REGISTERS as usize {
        return Err(format!("{} registers: at most {MAX_REGISTERS}", kernel.registers.len()));
    }
    Ok(())
}

/// Where a walk through the kernel is, seen from a register or a variable.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NameState {
    /// Before it is computed.
    Unseen,
    /// In the body where it was computed.
    InScope,
    /// Behind that body.
    Behind,
}

struct Scopes<'a> {
    kernel: &'a ComputeKernel,
    registers: Vec<NameState>,
    variables: Vec<NameState>,
}

/// What a body has computed and declared, to be forgotten at its end.
#[derive(Default)]
struct Made {
    registers: Vec<Register>,
    variables: Vec<Variable>,
}

impl<'a> Scopes<'a> {
    fn body(&mut self, body: &'a [Instruction], depth: usize) -> Result<(), VerifyKernelError> {
        self.body_with(body, depth, Made::default())
    }

    fn body_with(&mut self, body: &'a [Instruction], depth: usize, mut made: Made) -> Result<(), VerifyKernelError> {
        for instruction in body {
            let here = self.instruction(instruction, &mut made);
            here.map_err(|what| VerifyKernelError::at(self.kernel, instruction, what))?;
            if depth == MAX_BODY_DEPTH && matches!(instruction, Instruction::Loop { .. } | Instruction::If { .. }) {
                let what = format!("more than {MAX_BODY_DEPTH} bodies in one another");
                return Err(VerifyKernelError::at(self.kernel, instruction, what));
            }
            match instruction {
                Instruction::Loop { counter, body, .. } => {
                    self.body_with(body, depth + 1, Made { registers: vec![*counter], variables: Vec::new() })?;
                }
                Instruction::If { then, otherwise, .. } => {
                    self.body(then, depth + 1)?;
                    self.body(otherwise, depth + 1)?;
                }
                Instruction::Compute(..)
                | Instruction::Declare(..)
                | Instruction::Set(..)
                | Instruction::Store { .. }
                | Instruction::Barrier => {}
            }
        }
        made.registers.iter().for_each(|register| self.registers[register.0 as usize] = NameState::Behind);
        made.variables.iter().for_each(|variable| self.variables[variable.0 as usize] = NameState::Behind);
        Ok(())
    }

    /// An instruction without its bodies.
    fn instruction(&mut self, instruction: &Instruction, made: &mut Made) -> Result<(), String> {
        match *instruction {
            Instruction::Compute(register, computation) => {
                let ty = self.result(computation)?;
                self.computed(register, ty)?;
                made.registers.push(register);
            }
            Instruction::Declare(variable, first) => {
                let ty = self.read(first)?;
                self.declared(variable, ty)?;
                made.variables.push(variable);
            }
            Instruction::Set(variable, value) => {
                let ty = self.variable(variable)?;
                self.expect(value, ty)?;
            }
            Instruction::Store { memory, at, value } => {
                let ty = self.element(memory, BufferAccess::Write)?;
                self.expect(at, ScalarType::U32)?;
                self.expect(value, ty)?;
            }
            Instruction::Loop { counter, from, to, step, .. } => {
                for bound in [from, to, step] {
                    self.expect(bound, ScalarType::U32)?;
                }
                self.computed(counter, ScalarType::U32)?;
            }
            Instruction::If { condition, .. } => self.expect(condition, ScalarType::Bool)?,
            Instruction::Barrier => {}
        }
        Ok(())
    }

    /// A register that is computed here, of this type.
    fn computed(&mut self, register: Register, ty: ScalarType) -> Result<(), String> {
        let number = register.0 as usize;
        match self.kernel.registers.get(number) {
            None => Err(format!("the kernel has no {register}")),
            Some(_) if self.registers[number] != NameState::Unseen => Err(format!("{register} is computed twice")),
            Some(&declared) if declared != ty => Err(format!("{register} is {declared}, and what is computed {ty}")),
            Some(_) => {
                self.registers[number] = NameState::InScope;
                Ok(())
            }
        }
    }

    fn declared(&mut self, variable: Variable, ty: ScalarType) -> Result<(), String> {
        let number = variable.0 as usize;
        match self.kernel.variables.get(number) {
            None => Err(format!("the kernel has no {variable}")),
            Some(_) if self.variables[number] != NameState::Unseen => Err(format!("{variable} is declared twice")),
            Some(&declared) if declared != ty => Err(format!("{variable} is {declared}, and its first value {ty}")),
            Some(_) => {
                self.variables[number] = NameState::InScope;
                Ok(())
            }
        }
    }

    /// The type of a register that is read here.
    fn read(&self, register: Register) -> Result<ScalarType, String> {
        match self.registers.get(register.0 as usize) {
            None => Err(format!("the kernel has no {register}")),
            Some(NameState::Unseen) => Err(format!("{register} is not computed yet")),
            Some(NameState::Behind) => Err(format!("{register} is computed in a body that has ended")),
            Some(NameState::InScope) => Ok(self.kernel.ty(register)),
        }
    }

    fn variable(&self, variable: Variable) -> Result<ScalarType, String> {
        match self.variables.get(variable.0 as usize) {
            None => Err(format!("the kernel has no {variable}")),
            Some(NameState::Unseen) => Err(format!("{variable} is not declared yet")),
            Some(NameState::Behind) => Err(format!("{variable} is declared in a body that has ended")),
            Some(NameState::InScope) => Ok(self.kernel.variables[variable.0 as usize]),
        }
    }

    /// The type of the elements of memory that is accessed so.
    fn element(&self, memory: KernelMemory, access: BufferAccess) -> Result<ScalarType, String> {
        let ty = match memory {
            KernelMemory::Shared(number) => self.kernel.shared.get(number as usize).map(|array| array.ty),
            KernelMemory::Buffer(number) => match self.kernel.buffers.get(number as usize) {
                Some(buffer) if buffer.access != access && buffer.access != BufferAccess::ReadWrite => {
                    let done = if access == BufferAccess::Write { "written" } else { "read" };
                    return Err(format!("{memory} is declared `{}`, and {done}", buffer.access.name()));
                }
                buffer => buffer.map(|buffer| buffer.ty),
            },
        };
        ty.ok_or_else(|| format!("the kernel has no {memory}"))
    }

    fn expect(&self, register: Register, ty: ScalarType) -> Result<(), String> {
        match self.read(register)? {
            found if found == ty => Ok(()),
            found => Err(format!("{register} is {found}, where {ty} is taken")),
        }
    }

    /// A register of one of some types.
    fn one_of(&self, register: Register, types: &[ScalarType]) -> Result<ScalarType, String> {
        match self.read(register)? {
            found if types.contains(&found) => Ok(found),
            found => Err(format!("{register} is {found}, which is not taken")),
        }
    }

    /// The type of what is computed.
    fn result(&self, computation: Computation) -> Result<ScalarType, String> {
        use ScalarType::{Bool, F32, I32, U32};
        match computation {
            Computation::Const(value) if value.ty == Bool && value.bits > 1 => {
                Err(format!("a bool is 0 or 1, and not {}", value.bits))
            }
            Computation::Const(value) => Ok(value.ty),
            Computation::Group(axis) if axis > 2 => Err(format!("a grid has axes 0, 1 and 2, and not {axis}")),
            Computation::Thread | Computation::Group(_) | Computation::SubgroupLane | Computation::SubgroupSize => {
                Ok(U32)
            }
            Computation::Get(variable) => self.variable(variable),
            Computation::Load(memory, at) => {
                let ty = self.element(memory, BufferAccess::Read)?;
                self.expect(at, U32).map(|()| ty)
            }
            Computation::Unary(function, x) => self.one_of(x, unary_types(function)),
            Computation::Binary(function, a, b) => {
                let ty = self.one_of(a, binary_types(function))?;
                self.expect(b, ty)?;
                Ok(if function.compares() { Bool } else { ty })
            }
            Computation::Select(condition, a, b) => {
                self.expect(condition, Bool)?;
                let ty = self.read(a)?;
                self.expect(b, ty).map(|()| ty)
            }
            Computation::Convert(Bool, x) => self.one_of(x, &[I32, U32, Bool]).map(|_| Bool),
            Computation::Convert(to, x) => self.read(x).map(|_| to),
            Computation::Bitcast(Bool, _) => Err("no bits are a bool's".into()),
            Computation::Bitcast(to, x) => self.one_of(x, &[F32, I32, U32]).map(|_| to),
            Computation::UnpackHalf(word, _) => self.expect(word, U32).map(|()| F32),
            Computation::PackHalf(low, high) => {
                self.expect(low, F32)?;
                self.expect(high, F32).map(|()| U32)
            }
            Computation::Subgroup(_, x) => self.one_of(x, &[F32, I32, U32]),
            Computation::SubgroupShuffle(x, lane) => {
                self.expect(lane, U32)?;
                self.one_of(x, &[F32, I32, U32])
            }
        }
    }
}

fn unary_types(function: UnaryFunction) -> &'static [ScalarType] {
    use ScalarType::{Bool, F32, I32, U32};
    match function {
        UnaryFunction::Neg | UnaryFunction::Abs => &[F32, I32],
        UnaryFunction::Not => &[I32, U32, Bool],
        UnaryFunction::Sqrt | UnaryFunction::Floor | UnaryFunction::Round => &[F32],
        UnaryFunction::CountOnes => &[U32],
    }
}

fn binary_types(function: BinaryFunction) -> &'static [ScalarType] {
    use BinaryFunction as F;
    use ScalarType::{Bool, F32, I32, U32};
    match function {
        F::Add | F::Sub | F::Mul | F::Div | F::Min | F::Max | F::Less | F::LessEqual => &[F32, I32, U32],
        F::Rem => &[I32, U32],
        F::And | F::Or | F::Xor => &[I32, U32, Bool],
        F::ShiftLeft | F::ShiftRight => &[U32],
        F::Equal | F::NotEqual => &[F32, I32, U32, Bool],
    }
}
