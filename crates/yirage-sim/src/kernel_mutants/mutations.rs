//! Mistakes that kernels are given.

use yirage_kir::{BinaryFunction, Computation, ComputeKernel, Instruction, Register, ScalarConst, ScalarType, text};

/// A mistake.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Mutation {
    /// A barrier is left out.
    NoBarrier,
    /// A store is left out.
    NoStore,
    /// A variable is not changed.
    NoSet,
    /// A loop runs once too often.
    BoundTooHigh,
    /// A loop runs once too few.
    BoundTooLow,
    /// A loop's step is larger by one.
    WrongStride,
    /// A loop begins one later.
    BeginsLate,
    /// The other branch is taken.
    OtherBranch,
    /// The element behind is read.
    LoadBehind,
    /// The element behind is written.
    StoreBehind,
    /// Every thread is the first.
    WrongThread,
    /// Every group is the first.
    WrongGroup,
    /// Operands are swapped, where it matters in which order they are.
    Swapped,
}

const ALL: [Mutation; 13] = [
    Mutation::NoBarrier,
    Mutation::NoStore,
    Mutation::NoSet,
    Mutation::BoundTooHigh,
    Mutation::BoundTooLow,
    Mutation::WrongStride,
    Mutation::BeginsLate,
    Mutation::OtherBranch,
    Mutation::LoadBehind,
    Mutation::StoreBehind,
    Mutation::WrongThread,
    Mutation::WrongGroup,
    Mutation::Swapped,
];

/// A kernel with each mistake at each place that allows it, with the line that is another.
pub(super) fn mutants(kernel: &ComputeKernel) -> Vec<(Mutation, String, ComputeKernel)> {
    let before = text::print(kernel);
    let mut made = Vec::new();
    for mutation in ALL {
        for place in 0.. {
            let mut mutant = kernel.clone();
            let mut body = std::mem::take(&mut mutant.body);
            let mut left = place;
            let end = !change_in(&mut body, mutation, &mut mutant.registers, &mut left);
            if end {
                break;
            }
            mutant.body = body;
            let after = text::print(&mutant);
            let differs = before.lines().zip(after.lines()).find(|(before, after)| before != after);
            let line = differs.map_or_else(String::new, |(before, after)| format!("{before} | {after}"));
            made.push((mutation, line, mutant));
        }
    }
    made
}

/// Makes a mistake at the place behind so many others; false where there are not so many.
fn change_in(
    body: &mut Vec<Instruction>,
    mutation: Mutation,
    registers: &mut Vec<ScalarType>,
    left: &mut usize,
) -> bool {
    for at in 0..body.len() {
        if allows(&body[at], mutation) {
            if *left == 0 {
                change(body, at, mutation, registers);
                return true;
            }
            *left -= 1;
        }
        let changed = match &mut body[at] {
            Instruction::Loop { body, .. } => change_in(body, mutation, registers, left),
            Instruction::If { then, otherwise, .. } => {
                change_in(then, mutation, registers, left) || change_in(otherwise, mutation, registers, left)
            }
            _ => false,
        };
        if changed {
            return true;
        }
    }
    false
}

fn allows(instruction: &Instruction, mutation: Mutation) -> bool {
    use BinaryFunction::{Div, Rem, ShiftLeft, ShiftRight, Sub};
    match mutation {
        Mutation::NoBarrier => matches!(instruction, Instruction::Barrier),
        Mutation::NoStore | Mutation::StoreBehind => matches!(instruction, Instruction::Store { .. }),
        Mutation::NoSet => matches!(instruction, Instruction::Set(..)),
        Mutation::BoundTooHigh | Mutation::BoundTooLow | Mutation::WrongStride | Mutation::BeginsLate => {
            matches!(instruction, Instruction::Loop { .. })
        }
        Mutation::OtherBranch => matches!(instruction, Instruction::If { .. }),
        Mutation::LoadBehind => matches!(instruction, Instruction::Compute(_, Computation::Load(..))),
        Mutation::WrongThread => matches!(instruction, Instruction::Compute(_, Computation::Thread)),
        Mutation::WrongGroup => matches!(instruction, Instruction::Compute(_, Computation::Group(0))),
        Mutation::Swapped => match instruction {
            Instruction::Compute(_, Computation::Binary(Sub | Div | Rem | ShiftLeft | ShiftRight, a, b)) => a != b,
            Instruction::Compute(_, Computation::Select(_, a, b)) => a != b,
            _ => false,
        },
    }
}

fn change(body: &mut Vec<Instruction>, at: usize, mutation: Mutation, registers: &mut Vec<ScalarType>) {
    if matches!(mutation, Mutation::NoBarrier | Mutation::NoStore | Mutation::NoSet) {
        body.remove(at);
        return;
    }
    // One more or less than a register, computed before the instruction.
    let [one, moved] = [registers.len(), registers.len() + 1].map(|number| Register(number as u32));
    let function = if mutation == Mutation::BoundTooLow { BinaryFunction::Sub } else { BinaryFunction::Add };
    let place = match &mut body[at] {
        Instruction::Loop { to, .. } if matches!(mutation, Mutation::BoundTooHigh | Mutation::BoundTooLow) => to,
        Instruction::Loop { step, .. } if mutation == Mutation::WrongStride => step,
        Instruction::Loop { from, .. } => from,
        Instruction::Compute(_, Computation::Load(_, at)) | Instruction::Store { at, .. } => at,
        Instruction::Compute(_, Computation::Binary(_, a, b) | Computation::Select(_, a, b)) => {
            return std::mem::swap(a, b);
        }
        Instruction::If { then, otherwise, .. } => return std::mem::swap(then, otherwise),
        Instruction::Compute(_, computation) => {
            *computation = Computation::Const(ScalarConst::from(0u32));
            return;
        }
        _ => return,
    };
    let was = std::mem::replace(place, moved);
    registers.extend([ScalarType::U32; 2]);
    let constant = Instruction::Compute(one, Computation::Const(ScalarConst::from(1u32)));
    let sum = Instruction::Compute(moved, Computation::Binary(function, was, one));
    body.splice(at..at, [constant, sum]);
}
