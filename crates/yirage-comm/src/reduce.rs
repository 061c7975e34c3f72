//! What is made of the elements of all ranks, in one order: rank 0 first, the last rank last.

use crate::element::CommElement;
use crate::wide::WideNumber;
use std::fmt;

/// What all ranks' elements of one place become.
///
/// Floats are taken in f64 from rank 0 to the last, and the whole is rounded once, to `f32` and from there to the element's
/// type, as the collectives of plans define it. Integers are taken exactly; what does not fit the type keeps its lowest bits.
/// A maximum or minimum of which one is NaN is NaN; of equals it is the first rank's, so of `-0` and `0` too.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ReduceOp {
    /// The sum.
    Sum,
    /// The product.
    Prod,
    /// The largest.
    Max,
    /// The smallest.
    Min,
    /// The sum divided by the number of ranks; of integers the quotient towards zero.
    Avg,
}

impl ReduceOp {
    /// All of them.
    pub const ALL: [ReduceOp; 5] = [ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Max, ReduceOp::Min, ReduceOp::Avg];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            ReduceOp::Sum => "sum",
            ReduceOp::Prod => "prod",
            ReduceOp::Max => "max",
            ReduceOp::Min => "min",
            ReduceOp::Avg => "avg",
        }
    }
}

impl fmt::Display for ReduceOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What the elements of some places become, while the ranks' come in.
pub(crate) struct Reducing<T: CommElement> {
    op: ReduceOp,
    ranks: usize,
    sums: Vec<T::Sum>,
}

impl<T: CommElement> Reducing<T> {
    pub(crate) fn new(op: ReduceOp) -> Reducing<T> {
        Reducing { op, ranks: 0, sums: Vec::new() }
    }

    /// The next rank's elements.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        let elements = bytes.chunks_exact(size_of::<T>()).map(T::read);
        self.ranks += 1;
        if self.ranks == 1 {
            self.sums.clear();
            self.sums.extend(elements);
            return;
        }
        let places = self.sums.iter_mut().zip(elements);
        match self.op {
            ReduceOp::Sum | ReduceOp::Avg => places.for_each(|(sum, x)| *sum = sum.sum(x)),
            ReduceOp::Prod => places.for_each(|(sum, x)| *sum = sum.product(x)),
            ReduceOp::Max => places.for_each(|(sum, x)| *sum = sum.larger(x)),
            ReduceOp::Min => places.for_each(|(sum, x)| *sum = sum.smaller(x)),
        }
    }

    /// The results, of which there are as many as places; other elements can be taken afterwards.
    pub(crate) fn finish(&mut self, out: &mut [T]) {
        let ranks = std::mem::take(&mut self.ranks);
        let results = out.iter_mut().zip(&self.sums);
        match self.op {
            ReduceOp::Avg => results.for_each(|(out, sum)| *out = T::rounded(sum.divided(ranks))),
            _ => results.for_each(|(out, sum)| *out = T::rounded(*sum)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ReduceOp, Reducing};
    use crate::element::CommElement;
    use half::{bf16, f16};

    fn reduced<T: CommElement + Default>(op: ReduceOp, ranks: &[T]) -> T {
        let (mut reducing, mut out) = (Reducing::new(op), [T::default()]);
        ranks.iter().for_each(|x| reducing.take(T::as_bytes(&[*x])));
        reducing.finish(&mut out);
        out[0]
    }

    #[test]
    fn a_sum_is_rounded_once() {
        // Each small one by itself is lost beside the large one in f32.
        let ranks = [16_777_216.0f32, 1.0, 1.0, 1.0];
        assert_eq!(reduced(ReduceOp::Sum, &ranks), 16_777_220.0);
        let ranks = [2048.0f32, 1.0, 1.0].map(f16::from_f32);
        assert_eq!(reduced(ReduceOp::Sum, &ranks), f16::from_f32(2050.0));
        let ranks = [256.0f32, 1.0, 1.0].map(bf16::from_f32);
        assert_eq!(reduced(ReduceOp::Avg, &ranks), bf16::from_f32(86.0));
    }

    #[test]
    fn integers_keep_their_lowest_bits_and_averages_are_towards_zero() {
        assert_eq!(reduced(ReduceOp::Sum, &[i32::MAX, 1]), i32::MIN);
        assert_eq!(reduced(ReduceOp::Prod, &[i32::MAX, i32::MAX, 3]), 3);
        assert_eq!(reduced(ReduceOp::Avg, &[-3i32, -4]), -3);
        assert_eq!(reduced(ReduceOp::Sum, &[200u8, 100]), 44);
        assert_eq!(reduced(ReduceOp::Avg, &[200u8, 100]), 150);
    }

    #[test]
    fn nan_is_kept_and_of_equals_the_first() {
        for op in [ReduceOp::Max, ReduceOp::Min] {
            assert!(reduced(op, &[1.0f32, f32::NAN, 2.0]).is_nan(), "{op}");
            assert!(reduced(op, &[f32::NAN, 1.0]).is_nan(), "{op}");
            assert!(reduced(op, &[-0.0f32, 0.0]).is_sign_negative(), "{op}");
        }
        assert_eq!((reduced(ReduceOp::Max, &[1i32, 5, 3]), reduced(ReduceOp::Min, &[4u8, 2, 3])), (5, 2));
    }
}
