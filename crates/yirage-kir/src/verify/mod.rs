//! Checks of kernels, before anything runs: a kernel that is taken here is understood alike by the interpreter and by each
//! device's compiler.
//!
//! What depends on numbers (indices beside memory, races, divisions by 0), [`crate::interpret`] finds.

mod name;
mod structure;
mod uniform;

use crate::kernel::{ComputeKernel, Instruction};
use crate::text::InstructionLine;
use thiserror::Error;

pub(crate) use structure::check as check_structure;

/// What is wrong with a kernel.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("kernel `{kernel}`{}: {what}", Place(instruction))]
pub struct VerifyKernelError {
    /// The kernel's name.
    pub kernel: String,
    /// The line of the instruction, where it is one.
    pub instruction: Option<String>,
    /// What is wrong.
    pub what: String,
}

struct Place<'a>(&'a Option<String>);

impl std::fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.as_ref().map_or(Ok(()), |line| write!(f, ", `{line}`"))
    }
}

impl VerifyKernelError {
    fn of(kernel: &ComputeKernel, what: String) -> VerifyKernelError {
        VerifyKernelError { kernel: kernel.name.clone(), instruction: None, what }
    }

    fn at(kernel: &ComputeKernel, instruction: &Instruction, what: String) -> VerifyKernelError {
        let line = InstructionLine { kernel, instruction }.to_string();
        VerifyKernelError { instruction: Some(line), ..VerifyKernelError::of(kernel, what) }
    }
}

/// Checks a kernel: numbers and sizes are within limits; each register is computed once, before and in the scope of its uses;
/// types are those that the computations take; memory is accessed as it is declared; and barriers and functions of subgroups
/// stand where all threads of a group come to.
///
/// # Errors
/// The first rule that it breaks.
pub fn verify(kernel: &ComputeKernel) -> Result<(), VerifyKernelError> {
    structure::check(kernel)?;
    uniform::check(kernel)
}
