//! How wide a tolerance may be at most, whatever an op says of itself: the tolerances of InfiniCore's op tests
//! (`test/infiniop/*.py`, absolute and relative), which the project promises to meet. An op that they do not test has the
//! limit of the row that is nearest to what it computes, with the reason.
//!
//! Our arithmetic is f32, so the rows are those of F32 wherever there is one.

use yirage_ir::Op;
use yirage_ir::expr::Func;
use yirage_ir::op::Tolerance;

/// A row of the source: no case's tolerance may be wider.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ToleranceLimit {
    /// The row, as the source names it.
    pub row: &'static str,
    /// Largest absolute part.
    pub abs: f32,
    /// Largest relative part.
    pub rel: f32,
    /// Why this row, where the source has none of the op's own.
    pub reason: &'static str,
}

impl ToleranceLimit {
    const fn new(row: &'static str, abs: f32, rel: f32) -> ToleranceLimit {
        ToleranceLimit { row, abs, rel, reason: "its own" }
    }

    const fn because(self, reason: &'static str) -> ToleranceLimit {
        ToleranceLimit { reason, ..self }
    }

    /// Whether a tolerance is this narrow.
    pub fn allows(&self, tolerance: Tolerance) -> bool {
        match tolerance {
            Tolerance::Exact => true,
            Tolerance::Close { abs, rel } => abs <= self.abs && rel <= self.rel,
            // Each function by itself: see [`of_function`].
            Tolerance::Terms => true,
            // Of a product whose terms do not cancel, the sum of the magnitudes is the result's.
            Tolerance::SumOfProducts { c } => c * f32::EPSILON <= self.rel,
        }
    }
}

const GEMM: ToleranceLimit = ToleranceLimit::new("gemm F32", 0.0, 1e-3);
const LAYER_NORM: ToleranceLimit = ToleranceLimit::new("layer_norm F32", 1e-3, 1e-3);
const ROPE: ToleranceLimit = ToleranceLimit::new("rope F32", 1e-4, 1e-3);
const CAUSAL_SOFTMAX: ToleranceLimit = ToleranceLimit::new("causal_softmax F32", 3e-5, 1e-5);
const SOFTMAX: ToleranceLimit = ToleranceLimit::new("softmax F32", 3e-5, 1e-5);
const SILU: ToleranceLimit = ToleranceLimit::new("silu F32", 1e-7, 1e-7);
const GELU: ToleranceLimit = ToleranceLimit::new("gelu F32", 1e-5, 1e-5);
const ADD: ToleranceLimit = ToleranceLimit::new("add, mul, sub F32", 1e-7, 1e-7);
const FUSED_MOE: ToleranceLimit = ToleranceLimit::new("fused_moe F32", 1e-4, 1e-4);
const EXACT: ToleranceLimit = ToleranceLimit::new("random_sample, rearrange, kv_caching, embedding", 0.0, 0.0);

/// The limit of an op's cases.
pub fn of(op: &Op) -> ToleranceLimit {
    match op {
        Op::AllGather(_) | Op::Broadcast(_) | Op::SendRecv(_) => EXACT.because("moves values as rearrange does"),
        Op::AllReduce(_) | Op::ReduceScatter(_) => ADD.because("a sum over the devices, in one order"),
        Op::Attention(_) => CAUSAL_SOFTMAX.because("paged_attention has F16 and BF16 only; its softmax has F32"),
        Op::CausalConv1d(_) | Op::SsmScan(_) | Op::GatedDelta(_) => {
            SOFTMAX.because("f32 sums, of taps or rows of a state")
        }
        Op::Concat(_) | Op::ConcatHeads(_) | Op::View(_) => EXACT.because("moves values as rearrange does"),
        Op::Contract(_) => GEMM,
        Op::Embed(_) => EXACT,
        Op::ExpertBias(_) => ADD.because("an addition"),
        Op::ExpertLinear(_) | Op::ExpertSum(_) => FUSED_MOE.because("a part of it"),
        Op::Fill(_) | Op::Iota(_) => EXACT.because("computes nothing"),
        Op::Gather(_) => EXACT.because("rows by their numbers, as embedding"),
        Op::Hadamard(_) => SOFTMAX.because("f32 sums along a row; gemm F32 has no absolute part for sums that cancel"),
        Op::KvAppend(_) => EXACT,
        Op::LayerNorm(_) => LAYER_NORM,
        Op::Map(_) => GELU.because("an expression of functions, of which gelu is the widest; swiglu is as wide"),
        Op::Reduce(_) => SOFTMAX.because("f32 sums along a row"),
        Op::Linear(_) | Op::MatMul(_) => GEMM,
        Op::Quantize(_) => EXACT.because("codes are integers, and what follows reads them"),
        Op::RmsNorm(_) => LAYER_NORM.because("rms_norm has F16 and BF16 only, which are wider"),
        Op::Rope(_) => ROPE,
        Op::Route(_) => SOFTMAX.because("a softmax or sigmoid and a choice"),
        Op::Sample(_) => EXACT,
        Op::Softmax(_) => SOFTMAX,
        Op::TopK(_) => EXACT.because("moves values as rearrange does"),
    }
}

/// The limit of a function in an expression.
pub fn of_function(func: Func) -> ToleranceLimit {
    match func {
        Func::Silu => SILU,
        Func::GeluErf | Func::GeluTanh => GELU,
        Func::Tanh | Func::Sigmoid | Func::Exp | Func::Log | Func::Pow | Func::Rsqrt => {
            GELU.because("an element-wise function of several operations")
        }
        _ => EXACT.because("one operation that rounds once, or none"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::READ_BACK;
    use yirage_ir::op::{Attention, OpCase};

    fn looser(case: &OpCase) -> Option<String> {
        let limit = of(&case.op);
        let name = format!("{}: {}", case.op.name(), case.name);
        (!limit.allows(case.tolerance)).then(|| format!("{name}: {:?} is wider than {limit:?}", case.tolerance))
    }

    #[test]
    fn no_case_is_looser_than_its_limit() {
        let cases = Op::all_cases();
        let found: Vec<String> = cases.iter().filter_map(looser).collect();
        assert!(cases.len() > 200 && found.is_empty(), "{}", found.join("\n"));
    }

    #[test]
    fn no_function_is_looser_than_its_limit() {
        for &func in Func::ALL {
            let (abs, rel) = func.tolerance();
            let (limit, close) = (of_function(func), Tolerance::Close { abs: abs as f32, rel: rel as f32 });
            assert!(limit.allows(close), "{}: {close:?} is wider than {limit:?}", func.name());
        }
    }

    #[test]
    fn what_is_read_back_through_attention_is_as_close_as_attention() {
        let attention = Op::all_cases().into_iter().find(|case| matches!(case.op, Op::Attention(Attention { .. })));
        let limit = of(&attention.expect("attention has cases").op);
        assert!(limit.allows(READ_BACK), "{READ_BACK:?} is wider than {limit:?}");
    }

    #[test]
    fn wider_tolerances_are_told() {
        for (abs, rel, allowed) in [(3e-5, 1e-5, true), (0.0, 0.0, true), (4e-5, 0.0, false), (0.0, 2e-5, false)] {
            assert_eq!(SOFTMAX.allows(Tolerance::Close { abs, rel }), allowed, "{abs} {rel}");
        }
        for (c, allowed) in [(16.0, true), (8000.0, true), (9000.0, false)] {
            assert_eq!(GEMM.allows(Tolerance::SumOfProducts { c }), allowed, "{c}");
        }
        assert!(EXACT.allows(Tolerance::Exact) && !EXACT.allows(Tolerance::Close { abs: 1e-9, rel: 0.0 }));
    }
}
