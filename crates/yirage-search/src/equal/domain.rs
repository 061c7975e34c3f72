//! What an evaluation computes with: elements of finite fields, or floats of some kind.
//!
//! A domain knows single elements, runs of them and matrices. Shapes, views and the order of steps are the evaluator's.

use super::axis::IndexSet;
use super::error::NotEqual;
use super::program::EvalInput;
use yirage_ir::DType;
use yirage_ir::expr::Func;
use yirage_ir::op::ReduceKind;

/// Why an evaluation ended early.
#[derive(Debug)]
pub(super) enum EvalStop {
    /// It divided by a zero of the field: other inputs may not.
    Division,
    /// It cannot be done.
    Refused(NotEqual),
}

impl From<NotEqual> for EvalStop {
    fn from(why: NotEqual) -> EvalStop {
        EvalStop::Refused(why)
    }
}

/// The elements of a value, dense and row-major.
#[derive(Clone, Debug)]
pub(super) enum TensorElements<N> {
    /// Floats and bools: what decides may be as unknown as what is computed.
    Numbers(Vec<N>),
    /// Whole numbers, each as its own value.
    Whole(Vec<i64>),
}

/// Some elements of a value.
#[derive(Clone, Debug)]
pub(super) struct SampledTensor<N> {
    pub(super) axes: Vec<IndexSet>,
    pub(super) data: TensorElements<N>,
}

/// The sizes of a product of matrices.
#[derive(Clone, Copy, Debug)]
pub(super) struct Matrices {
    pub(super) m: usize,
    pub(super) k: usize,
    pub(super) n: usize,
}

/// What an evaluation computes with. Bools are the numbers 0 and 1, or something that is not known to be either.
pub(super) trait Domain {
    /// An element.
    type Num: Copy + std::fmt::Debug;

    /// Element `at` (counted row-major) of an input of floats or bools, whose sizes are `sizes`.
    fn input(&mut self, input: &EvalInput, dtype: DType, sizes: &[usize], at: usize) -> Self::Num;

    /// Element `at` of an input of whole numbers.
    fn whole_input(&mut self, input: &EvalInput, at: usize) -> i64;

    /// A constant of an expression or a fill.
    fn constant(&mut self, x: f32) -> Self::Num;

    /// A whole number as a float.
    fn whole(&mut self, x: i64) -> Self::Num;

    /// What a bool is, where that is known.
    fn truth(&self, x: Self::Num) -> Option<bool>;

    /// A function of floats or bools.
    fn call(&mut self, func: Func, x: &[Self::Num]) -> Result<Self::Num, EvalStop>;

    /// A float, a bool or a whole number's float as a float of another width.
    fn cast(&mut self, x: Self::Num, to: DType) -> Self::Num;

    /// A float cut off, or a bool, as a whole number of 32 bits.
    fn cut_off(&mut self, x: Self::Num, to: DType) -> i64;

    /// A reduction of floats of type `dtype`, in order.
    fn reduce(&mut self, kind: ReduceKind, x: &[Self::Num], dtype: DType) -> Result<Self::Num, EvalStop>;

    /// `a [m, k]` times `b [k, n]`, of floats of type `dtype`.
    fn contract(&mut self, a: &[Self::Num], b: &[Self::Num], size: Matrices, dtype: DType) -> Vec<Self::Num>;

    /// Some number that stands for `x` when it is an input of a closed op.
    fn digest(&self, x: Self::Num) -> u64;

    /// An element of an output of a closed op; `hash` follows from all that it depends on.
    fn closed(&mut self, hash: u64) -> Self::Num;
}
