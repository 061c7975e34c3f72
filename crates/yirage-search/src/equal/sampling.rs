//! Which elements of the outputs two programs are compared at: all, or as many as the budget allows.

use super::axis::{IndexSet, count};
use super::demand::{Demand, sample};
use super::error::NotEqual;
use super::program::EvalProgram;
use yirage_ir::rng::Rng;

/// Two programs of one interface, and how many indices of each dimension of each output are compared.
pub(super) struct OutputSampling<'a> {
    pub(super) original: &'a EvalProgram,
    pub(super) candidate: &'a EvalProgram,
    wanted: Vec<Vec<usize>>,
    budget: u64,
}

/// A sample, and what each program has to compute for it.
pub(super) struct OutputSample {
    pub(super) original: Demand,
    pub(super) candidate: Demand,
    /// Elements of outputs in it.
    pub(super) compared: u64,
}

impl<'a> OutputSampling<'a> {
    /// The largest samples, by halving the longest dimension, that either program computes in `budget` operations.
    ///
    /// # Errors
    /// [`NotEqual::TooLarge`] where even one element of each output takes more.
    pub(super) fn within(
        original: &'a EvalProgram,
        candidate: &'a EvalProgram,
        budget: u64,
        what: &str,
    ) -> Result<OutputSampling<'a>, NotEqual> {
        let sizes = |program: &EvalProgram| -> Vec<Vec<usize>> {
            program.outputs.iter().map(|o| program.values[o.value].sizes.clone()).collect()
        };
        let mut sampling = OutputSampling { original, candidate, wanted: sizes(original), budget };
        let product = |wanted: &Vec<usize>| wanted.iter().fold(1u64, |n, &w| n.saturating_mul(w.max(1) as u64));
        loop {
            // What outputs alone are too many for is not drawn.
            let given: u64 = sampling.wanted.iter().map(product).fold(0, u64::saturating_add);
            let needed = if given > budget {
                given
            } else {
                let drawn = sampling.draw(&mut Rng::new(0));
                drawn.original.work.max(drawn.candidate.work)
            };
            if needed <= budget {
                return Ok(sampling);
            }
            let largest = sampling.wanted.iter_mut().max_by_key(|wanted| product(wanted));
            match largest.and_then(|wanted| wanted.iter_mut().max_by_key(|n| **n)) {
                Some(n) if *n > 1 => *n /= 2,
                _ => return Err(NotEqual::TooLarge { what: what.into(), needed, budget }),
            }
        }
    }

    /// Elements of all outputs.
    pub(super) fn elements(&self) -> u64 {
        let outputs = self.original.outputs.iter();
        outputs.filter_map(|o| self.original.values[o.value].elements()).map(|n| n as u64).sum()
    }

    /// A sample of these sizes.
    pub(super) fn draw(&self, rng: &mut Rng) -> OutputSample {
        let axes = |(output, wanted): (&super::program::EvalOutput, &Vec<usize>)| -> Vec<IndexSet> {
            let sizes = &self.original.values[output.value].sizes;
            sizes.iter().zip(wanted).map(|(&size, &wanted)| sample(size, wanted, rng)).collect()
        };
        let outputs: Vec<Vec<IndexSet>> = self.original.outputs.iter().zip(&self.wanted).map(axes).collect();
        OutputSample {
            original: Demand::of(self.original, &outputs, self.budget),
            candidate: Demand::of(self.candidate, &outputs, self.budget),
            compared: outputs.iter().map(|axes| count(axes) as u64).sum(),
        }
    }
}

/// The index that element `at` of a dense list of chosen ones has along each dimension.
pub(super) fn index(axes: &[IndexSet], mut at: usize) -> Vec<usize> {
    let mut index = vec![0; axes.len()];
    for (slot, axis) in index.iter_mut().zip(axes).rev() {
        *slot = axis.at(at % axis.len());
        at /= axis.len();
    }
    index
}
