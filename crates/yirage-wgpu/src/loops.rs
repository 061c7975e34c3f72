//! How often the loops of a kernel run, as far as its text says: one driver ends them early without a word.

use std::collections::HashMap;
use yirage_kir::{Computation, ComputeKernel, Instruction, Register};

/// Rounds after which Mesa's driver for processors (llvmpipe) leaves a loop, whatever its condition says
/// (`LP_MAX_TGSI_LOOP_ITERATIONS`).
pub(crate) const MOST_OF_LLVMPIPE: u64 = 65_535;

/// The most rounds of a loop whose bounds are constants; 0 where there is none.
pub(crate) fn longest(kernel: &ComputeKernel) -> u64 {
    let mut constants = HashMap::new();
    longest_in(&kernel.body, &mut constants)
}

fn longest_in(body: &[Instruction], constants: &mut HashMap<Register, u32>) -> u64 {
    let rounds = body.iter().map(|instruction| match instruction {
        Instruction::Compute(register, Computation::Const(value)) => {
            constants.insert(*register, value.bits);
            0
        }
        Instruction::Loop { from, to, step, body, .. } => {
            let known = [from, to, step].map(|register| constants.get(register).copied());
            let rounds = match known {
                [Some(from), Some(to), Some(step)] => {
                    u64::from(to.saturating_sub(from)).div_ceil(u64::from(step.max(1)))
                }
                _ => 0,
            };
            rounds.max(longest_in(body, constants))
        }
        Instruction::If { then, otherwise, .. } => longest_in(then, constants).max(longest_in(otherwise, constants)),
        Instruction::Compute(..)
        | Instruction::Declare(..)
        | Instruction::Set(..)
        | Instruction::Store { .. }
        | Instruction::Barrier => 0,
    });
    rounds.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use yirage_kir::KernelWriter;

    #[test]
    fn the_longest_loop_is_found_wherever_it_is() {
        let mut w = KernelWriter::new("k", 1);
        let (zero, one, ten, many) = (w.u32(0), w.u32(1), w.u32(10), w.u32(1000));
        let thread = w.thread();
        w.for_each(zero, thread, one, |_, _| {});
        let late = w.less(thread, ten);
        w.when(late, |w| {
            w.for_each(zero, ten, one, |w, _| {
                let three = w.u32(3);
                w.for_each(one, many, three, |_, _| {});
            });
        });
        assert_eq!(longest(&w.finish()), 333);
        assert_eq!(longest(&KernelWriter::new("none", 1).finish()), 0);
    }
}
