//! Where all threads of a group come to, or none: barriers and functions of subgroups stand there alone.
//!
//! A register is uniform where all threads of a group surely have the same: constants, the group's number, what is read at
//! uniform indices of buffers that nobody writes in the launch, and functions of these. A variable is uniform where it is
//! only ever set to what is uniform, where all threads come to.

use super::VerifyKernelError;
use crate::computation::Computation;
use crate::kernel::{ComputeKernel, Instruction};
use crate::place::{KernelMemory, Register};
use crate::render::is_read_only;

/// Checks that barriers and functions of subgroups stand in uniform control flow.
pub(super) fn check(kernel: &ComputeKernel) -> Result<(), VerifyKernelError> {
    let (registers, variables) = (vec![true; kernel.registers.len()], vec![true; kernel.variables.len()]);
    let mut analysis = UniformAnalysis { kernel, registers, variables, changed: false };
    // What differs between threads is found round by round: a loop reads at its beginning what its end has set.
    loop {
        analysis.changed = false;
        analysis.body(&kernel.body, true)?;
        if !analysis.changed {
            return Ok(());
        }
    }
}

struct UniformAnalysis<'a> {
    kernel: &'a ComputeKernel,
    /// Whether each may still be uniform.
    registers: Vec<bool>,
    variables: Vec<bool>,
    changed: bool,
}

impl UniformAnalysis<'_> {
    /// A body that all threads come to, or maybe not.
    fn body(&mut self, body: &[Instruction], all: bool) -> Result<(), VerifyKernelError> {
        body.iter().try_for_each(|instruction| self.instruction(instruction, all))
    }

    fn instruction(&mut self, instruction: &Instruction, all: bool) -> Result<(), VerifyKernelError> {
        let refuse = |what: &str| {
            let what = format!("{what} where maybe not all threads of a group come to");
            Err(VerifyKernelError::at(self.kernel, instruction, what))
        };
        match instruction {
            Instruction::Barrier if !all => return refuse("a barrier"),
            Instruction::Compute(_, Computation::Subgroup(..) | Computation::SubgroupShuffle(..)) if !all => {
                return refuse("a function of a subgroup");
            }
            Instruction::Compute(register, computation) => {
                let uniform = self.computation(computation);
                self.register(*register, uniform);
            }
            Instruction::Declare(variable, value) | Instruction::Set(variable, value) => {
                let uniform = all && self.uniform(*value);
                let known = &mut self.variables[variable.0 as usize];
                self.changed |= *known && !uniform;
                *known &= uniform;
            }
            Instruction::Loop { counter, from, to, step, body } => {
                let all = all && [from, to, step].into_iter().all(|&bound| self.uniform(bound));
                self.register(*counter, all);
                self.body(body, all)?;
            }
            Instruction::If { condition, then, otherwise } => {
                let all = all && self.uniform(*condition);
                self.body(then, all)?;
                self.body(otherwise, all)?;
            }
            Instruction::Store { .. } | Instruction::Barrier => {}
        }
        Ok(())
    }

    fn uniform(&self, register: Register) -> bool {
        self.registers[register.0 as usize]
    }

    fn register(&mut self, register: Register, uniform: bool) {
        let known = &mut self.registers[register.0 as usize];
        self.changed |= *known && !uniform;
        *known &= uniform;
    }

    fn computation(&self, computation: &Computation) -> bool {
        let own = match *computation {
            Computation::Thread
            | Computation::SubgroupLane
            | Computation::SubgroupSize
            | Computation::Subgroup(..)
            | Computation::SubgroupShuffle(..)
            | Computation::Load(KernelMemory::Shared(_), _) => false,
            Computation::Load(KernelMemory::Buffer(number), _) => is_read_only(&self.kernel.buffers[number as usize]),
            Computation::Get(variable) => self.variables[variable.0 as usize],
            _ => true,
        };
        own && computation.operands().all(|register| self.uniform(register))
    }
}
