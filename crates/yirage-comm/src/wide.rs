//! What elements are held in until all ranks' have been taken. It knows neither their types nor who gives them.

/// Numbers that are wide enough to hold what ranks' elements become before it is rounded.
pub trait WideNumber: Copy {
    #[doc(hidden)]
    fn sum(self, other: Self) -> Self;
    #[doc(hidden)]
    fn product(self, other: Self) -> Self;
    #[doc(hidden)]
    fn larger(self, other: Self) -> Self;
    #[doc(hidden)]
    fn smaller(self, other: Self) -> Self;
    #[doc(hidden)]
    fn divided(self, ranks: usize) -> Self;
}

/// Of floats.
#[derive(Clone, Copy)]
pub struct FloatSum(pub(crate) f64);

/// Of integers.
#[derive(Clone, Copy)]
pub struct IntegerSum(pub(crate) i64);

impl WideNumber for FloatSum {
    #[inline(always)]
    fn sum(self, other: FloatSum) -> FloatSum {
        FloatSum(self.0 + other.0)
    }

    #[inline(always)]
    fn product(self, other: FloatSum) -> FloatSum {
        FloatSum(self.0 * other.0)
    }

    #[inline(always)]
    fn larger(self, other: FloatSum) -> FloatSum {
        if self.0.is_nan() || other.0 <= self.0 { self } else { other }
    }

    #[inline(always)]
    fn smaller(self, other: FloatSum) -> FloatSum {
        if self.0.is_nan() || other.0 >= self.0 { self } else { other }
    }

    #[inline(always)]
    fn divided(self, ranks: usize) -> FloatSum {
        FloatSum(self.0 / ranks as f64)
    }
}

impl WideNumber for IntegerSum {
    #[inline(always)]
    fn sum(self, other: IntegerSum) -> IntegerSum {
        IntegerSum(self.0 + other.0)
    }

    #[inline(always)]
    fn product(self, other: IntegerSum) -> IntegerSum {
        IntegerSum(self.0.wrapping_mul(other.0))
    }

    #[inline(always)]
    fn larger(self, other: IntegerSum) -> IntegerSum {
        IntegerSum(self.0.max(other.0))
    }

    #[inline(always)]
    fn smaller(self, other: IntegerSum) -> IntegerSum {
        IntegerSum(self.0.min(other.0))
    }

    #[inline(always)]
    fn divided(self, ranks: usize) -> IntegerSum {
        IntegerSum(self.0 / ranks as i64)
    }
}
