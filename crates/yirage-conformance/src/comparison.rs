//! What a device gave for a case beside what the reference gives: whether it is close enough, and how far it is.

use crate::bounds;
use yirage_ir::op::OpCase;
use yirage_ir::tensor::Data;
use yirage_ir::{Op, Tensor};

/// How far a case's results are from the reference's. Numbers that are equal, NaN with NaN included, are 0 apart; where
/// anything goes, nothing counts.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct CaseError {
    /// Largest difference; infinite where one of the two is no number.
    pub absolute: f64,
    /// Largest difference over the largest magnitude of the output that it is of.
    pub relative: f64,
    /// Largest share of what a value's tolerance allows; infinite where that is nothing.
    pub of_tolerance: f64,
}

impl CaseError {
    /// The larger of each.
    #[must_use]
    pub fn most(self, other: CaseError) -> CaseError {
        CaseError {
            absolute: self.absolute.max(other.absolute),
            relative: self.relative.max(other.relative),
            of_tolerance: self.of_tolerance.max(other.of_tolerance),
        }
    }
}

/// A case's outputs beside the reference's.
#[derive(Clone, Debug, Default)]
pub(crate) struct CaseComparison {
    pub(crate) error: CaseError,
    /// The first value that is too far away.
    pub(crate) wrong: Option<String>,
    /// Whether all that are too far away are off by a rounding that a device may choose.
    pub(crate) only_rounded: bool,
}

/// Relative difference of log-probabilities that were rounded otherwise.
const ROUNDING: f64 = 2e-7;

impl CaseComparison {
    /// Compares the outputs of a case.
    ///
    /// # Errors
    /// Outputs of another number, type or size.
    pub(crate) fn of(case: &OpCase, got: &[Data], want: &[Tensor]) -> Result<CaseComparison, String> {
        if got.len() != want.len() {
            return Err(format!("{} outputs, {} wanted", got.len(), want.len()));
        }
        let mut all = CaseComparison { only_rounded: true, ..CaseComparison::default() };
        for (index, (got, want)) in got.iter().zip(want).enumerate() {
            all.output(case, index, got, want).map_err(|why| format!("output {index}: {why}"))?;
        }
        Ok(all)
    }

    /// One output: as close as its case demands; integers are equal, where anything is known of them.
    fn output(&mut self, case: &OpCase, index: usize, got: &Data, want: &Tensor) -> Result<(), String> {
        let (got, want) = match (got, &want.data) {
            (Data::F32(got), Data::F32(want)) => (wide(got), wide(want)),
            (Data::I32(got), Data::I32(want)) => (wide(got), wide(want)),
            (Data::U32(got), Data::U32(want)) => (wide(got), wide(want)),
            (Data::Bool(got), Data::Bool(want)) => (wide(got), wide(want)),
            (got, want) => return Err(format!("{got:?}, the reference gives {want:?}")),
        };
        if got.len() != want.len() {
            return Err(format!("{} values, {} wanted", got.len(), want.len()));
        }
        let largest = want.iter().filter(|w| w.is_finite()).fold(0.0, |most: f64, w| most.max(w.abs()));
        let bounds = bounds::of(case, index, &want);
        for (i, ((&g, &w), bound)) in got.iter().zip(&want).zip(bounds).enumerate() {
            if g == w || (g.is_nan() && w.is_nan()) || bound == f64::INFINITY {
                continue;
            }
            let difference = finite_or_infinite((g - w).abs());
            let over = |of: f64| if of > 0.0 { difference / of } else { f64::INFINITY };
            let error = CaseError { absolute: difference, relative: over(largest), of_tolerance: over(bound) };
            self.error = self.error.most(error);
            if difference > bound {
                let why = format!("output {index}: value {i} is {g}, the reference gives {w}, within {bound:e} wanted");
                self.wrong.get_or_insert(why);
                self.only_rounded &= is_logprob(&case.op, index) && difference <= ROUNDING * w.abs();
            }
        }
        Ok(())
    }
}

/// Log-probabilities of a sampler are wanted to the bit, which a device whose compiler may fuse a product and a sum cannot
/// promise; which token is chosen, it can.
fn is_logprob(op: &Op, output: usize) -> bool {
    matches!(op, Op::Sample(_)) && matches!(output, 2 | 4)
}

fn finite_or_infinite(difference: f64) -> f64 {
    if difference.is_nan() { f64::INFINITY } else { difference }
}

fn wide<T: Copy + Into<f64>>(values: &[T]) -> Vec<f64> {
    values.iter().map(|&x| x.into()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use yirage_ir::op::{Softmax, Tolerance};

    fn case(op: Op, tolerance: Tolerance) -> OpCase {
        OpCase { name: "a".into(), op, ins: Vec::new(), tolerance }
    }

    fn softmax(got: &[f32], want: &[f32]) -> CaseComparison {
        let case = case(Op::from(Softmax {}), Tolerance::Close { abs: 0.5, rel: 0.0 });
        let want = [Tensor::f32([want.len()], want.to_vec())];
        CaseComparison::of(&case, &[Data::F32(got.to_vec())], &want).unwrap()
    }

    #[test]
    fn errors_are_the_largest_of_each_kind() {
        let close = softmax(&[1.0, 4.25, f32::NAN], &[1.0, 4.0, f32::NAN]);
        assert_eq!(close.error, CaseError { absolute: 0.25, relative: 0.0625, of_tolerance: 0.5 });
        assert_eq!(close.wrong, None);
        let far = softmax(&[3.0, 0.0], &[2.0, 0.0]);
        assert_eq!(far.wrong.unwrap(), "output 0: value 0 is 3, the reference gives 2, within 5e-1 wanted");
        assert_eq!((far.error.of_tolerance, far.only_rounded), (2.0, false));
        let lost = softmax(&[f32::NAN], &[1.0]);
        assert!(lost.wrong.is_some() && lost.error.absolute.is_infinite());
    }

    #[test]
    fn outputs_of_another_kind_are_no_numbers_to_compare() {
        let case = case(Op::from(Softmax {}), Tolerance::Exact);
        let want = [Tensor::f32([1], vec![0.0])];
        for got in [Data::I32(vec![0]), Data::F32(vec![0.0; 2])] {
            assert!(CaseComparison::of(&case, &[got], &want).unwrap_err().starts_with("output 0: "));
        }
        assert_eq!(CaseComparison::of(&case, &[], &want).unwrap_err(), "0 outputs, 1 wanted");
    }
}
