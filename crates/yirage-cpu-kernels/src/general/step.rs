//! Steps of a program: one function of strips of lanes.

use super::convert::{floats_of_unsigned, not, rounded_to_bf16, signed, unsigned};
use super::elem::ComputeType;
use crate::simd::math::{self, larger, smaller};
use crate::simd::power::{log, pow};
use crate::simd::{LANES, Lanes, WithLanes};
use yirage_ir::expr::Func;

/// What a step does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ElementOpcode {
    /// The same.
    Move,
    /// A function of arguments held so; of `Select`, all but the first.
    Call(Func, ComputeType),
    /// What is held so, held otherwise.
    Convert(ComputeType, ComputeType),
    /// A float as narrow as a half.
    Halve,
    /// A float as narrow as a bf16.
    Shorten,
    /// The program's chain of this number.
    Chain(u16),
}

impl ElementOpcode {
    /// The function, where it is one of floats that costs little more than its store.
    pub(super) fn cheap(self) -> Option<Func> {
        use Func::{Abs, Add, Max, Min, Mul, Neg, Relu, Square, Sub};
        match self {
            ElementOpcode::Call(
                func @ (Add | Sub | Mul | Min | Max | Neg | Abs | Square | Relu),
                ComputeType::Float,
            ) => Some(func),
            _ => None,
        }
    }
}

/// Where a step's argument is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ElementArg {
    /// An input.
    Input(u16),
    /// A constant.
    Constant(u16),
    /// A strip.
    Strip(u16),
}

/// One step of a program. The last one makes the result, which has a place of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ElementInstruction {
    pub(super) code: ElementOpcode,
    pub(super) args: [ElementArg; 3],
    pub(super) out: u16,
}

/// A cheap function; of one argument, the first.
#[inline(always)]
pub(super) fn cheap<V: Lanes>(func: Func, a: V, b: V) -> V {
    match func {
        Func::Add => a.add(b),
        Func::Sub => a.sub(b),
        Func::Mul => a.mul(b),
        Func::Min => smaller(a, b),
        Func::Max => larger(a, b),
        Func::Neg => a.xor(V::word(1 << 31)),
        Func::Abs => a.abs(),
        Func::Square => a.mul(a),
        // The order keeps NaN.
        Func::Relu => V::splat(0.0).max(a),
        other => unreachable!("{} is not cheap, as `Code::cheap` says", other.name()),
    }
}

/// Lanes that a step reads: one after the other, or the same sixteen again and again.
#[derive(Clone, Copy)]
pub(super) struct LaneSource {
    base: *const f32,
    mask: usize,
}

impl LaneSource {
    /// Elements one after the other.
    #[inline(always)]
    pub(super) fn run(base: *const f32) -> LaneSource {
        LaneSource { base, mask: usize::MAX }
    }

    /// Sixteen that are the same.
    #[inline(always)]
    pub(super) fn same(base: *const f32) -> LaneSource {
        LaneSource { base, mask: 0 }
    }

    /// The address of element `i`.
    ///
    /// # Safety
    /// It exists.
    #[inline(always)]
    pub(super) unsafe fn at(self, i: usize) -> *const f32 {
        // SAFETY: what `LaneSource::at` is promised; `StridedInput::within` and `StridedOutput::within` check the
        // operands.
        unsafe { self.base.add(i & self.mask) }
    }
}

/// `self < b` of numbers without sign.
#[inline(always)]
fn below<V: Lanes>(a: V, b: V) -> V {
    let sign = V::word(1 << 31);
    a.xor(sign).whole_less(b.xor(sign))
}

/// A loop of its own over vectors of up to `$n` elements, of as many of the arguments as it has names for.
macro_rules! each {
    ($n:ident, $args:ident, $out:ident, $($x:ident),+ => $e:expr) => {{
        struct StepLoop {
            n: usize,
            args: [LaneSource; 3],
            out: *mut f32,
        }

        impl WithLanes for StepLoop {
            type Out = ();

            #[inline(always)]
            unsafe fn run<V: Lanes>(self) {
                let [$($x,)+ ..] = self.args;
                let mut i = 0;
                while i < self.n {
                    // SAFETY: what `WithLanes::run` is promised; `StridedInput::within` and `StridedOutput::within`
                    // check the operands.
                    unsafe {
                        $(let $x = V::load($x.at(i));)+
                        $e.store(self.out.add(i));
                    }
                    i += LANES;
                }
            }
        }

        // SAFETY: `StepLoop` wants what `float` and `whole` are promised, which this is in.
        unsafe { V::apart(StepLoop { n: $n, args: $args, out: $out }) }
    }};
}

/// The step on `n` elements, up to a multiple of sixteen.
///
/// # Safety
/// The arguments that it reads and `out` have as many.
#[inline(always)]
pub(super) unsafe fn run<V: Lanes>(code: ElementOpcode, n: usize, args: [LaneSource; 3], out: *mut f32) {
    match code {
        ElementOpcode::Move => each!(n, args, out, a => a),
        ElementOpcode::Halve => each!(n, args, out, a => a.halves()),
        ElementOpcode::Shorten => each!(n, args, out, a => rounded_to_bf16(a)),
        // SAFETY: what `run` is promised; for all three; `StridedInput::within` and `StridedOutput::within` check the
        // operands.
        ElementOpcode::Convert(from, to) => unsafe { convert::<V>(from, to, n, args, out) },
        ElementOpcode::Call(Func::Select, _) => each!(n, args, out, a, b, c => a.choose(b, c)),
        ElementOpcode::Call(func, ComputeType::Float) => unsafe { float::<V>(func, n, args, out) },
        ElementOpcode::Call(func, held) => unsafe { whole::<V>(func, held, n, args, out) },
        ElementOpcode::Chain(_) => unreachable!("`Pass::steps` runs chains"),
    }
}

#[inline(always)]
unsafe fn convert<V: Lanes>(from: ComputeType, to: ComputeType, n: usize, args: [LaneSource; 3], out: *mut f32) {
    match (from, to) {
        (ComputeType::Float, ComputeType::I32) => each!(n, args, out, a => signed(a)),
        (ComputeType::Float, ComputeType::U32) => each!(n, args, out, a => unsigned(a)),
        (ComputeType::Float, ComputeType::Mask) => each!(n, args, out, a => not(a.equal(V::splat(0.0)))),
        (ComputeType::I32, ComputeType::Float) => each!(n, args, out, a => a.floats()),
        (ComputeType::U32, ComputeType::Float) => each!(n, args, out, a => floats_of_unsigned(a)),
        (ComputeType::Mask, ComputeType::Float) => each!(n, args, out, a => a.and(V::splat(1.0))),
        (ComputeType::Mask, ComputeType::I32 | ComputeType::U32) => each!(n, args, out, a => a.and(V::word(1))),
        (ComputeType::I32 | ComputeType::U32, ComputeType::Mask) => {
            each!(n, args, out, a => not(a.whole_equal(V::word(0))))
        }
        // The same bits.
        _ => each!(n, args, out, a => a),
    }
}

#[inline(always)]
unsafe fn float<V: Lanes>(func: Func, n: usize, args: [LaneSource; 3], out: *mut f32) {
    match func {
        Func::Add => each!(n, args, out, a, b => cheap(Func::Add, a, b)),
        Func::Sub => each!(n, args, out, a, b => cheap(Func::Sub, a, b)),
        Func::Mul => each!(n, args, out, a, b => cheap(Func::Mul, a, b)),
        Func::Div => each!(n, args, out, a, b => a.div(b)),
        Func::Pow => each!(n, args, out, a, b => pow(a, b)),
        Func::Min => each!(n, args, out, a, b => cheap(Func::Min, a, b)),
        Func::Max => each!(n, args, out, a, b => cheap(Func::Max, a, b)),
        Func::Neg => each!(n, args, out, a => cheap(Func::Neg, a, a)),
        Func::Abs => each!(n, args, out, a => cheap(Func::Abs, a, a)),
        Func::Exp => each!(n, args, out, a => math::exp(a)),
        Func::Log => each!(n, args, out, a => log(a)),
        Func::Sqrt => each!(n, args, out, a => a.sqrt()),
        Func::Rsqrt => each!(n, args, out, a => V::splat(1.0).div(a.sqrt())),
        Func::Recip => each!(n, args, out, a => V::splat(1.0).div(a)),
        Func::Square => each!(n, args, out, a => cheap(Func::Square, a, a)),
        Func::Tanh => each!(n, args, out, a => math::tanh(a)),
        Func::Sigmoid => each!(n, args, out, a => math::sigmoid(a)),
        Func::Silu => each!(n, args, out, a => math::silu(a)),
        Func::GeluErf => each!(n, args, out, a => math::gelu_erf(a)),
        Func::GeluTanh => each!(n, args, out, a => math::gelu_tanh(a)),
        Func::Relu => each!(n, args, out, a => cheap(Func::Relu, a, a)),
        Func::Clamp => each!(n, args, out, a, b, c => smaller(larger(a, b), c)),
        Func::Less => each!(n, args, out, a, b => a.less(b)),
        Func::LessEqual => each!(n, args, out, a, b => a.less_equal(b)),
        Func::Equal => each!(n, args, out, a, b => a.equal(b)),
        Func::NotEqual => each!(n, args, out, a, b => not(a.equal(b))),
        Func::Select => unreachable!("`run` has chosen"),
    }
}

#[inline(always)]
unsafe fn whole<V: Lanes>(func: Func, held: ComputeType, n: usize, args: [LaneSource; 3], out: *mut f32) {
    let signed = held == ComputeType::I32;
    match func {
        Func::Add => each!(n, args, out, a, b => a.wrapping_add(b)),
        Func::Sub => each!(n, args, out, a, b => a.wrapping_sub(b)),
        Func::Mul => each!(n, args, out, a, b => a.wrapping_mul(b)),
        Func::Square => each!(n, args, out, a => a.wrapping_mul(a)),
        Func::Neg => each!(n, args, out, a => V::word(0).wrapping_sub(a)),
        Func::Equal => each!(n, args, out, a, b => a.whole_equal(b)),
        Func::NotEqual => each!(n, args, out, a, b => not(a.whole_equal(b))),
        Func::Abs if signed => each!(n, args, out, a => a.whole_less(V::word(0)).choose(V::word(0).wrapping_sub(a), a)),
        Func::Relu if signed => each!(n, args, out, a => a.whole_less(V::word(0)).choose(V::word(0), a)),
        Func::Abs | Func::Relu => each!(n, args, out, a => a),
        Func::Less if signed => each!(n, args, out, a, b => a.whole_less(b)),
        Func::Less => each!(n, args, out, a, b => below(a, b)),
        Func::LessEqual if signed => each!(n, args, out, a, b => not(b.whole_less(a))),
        Func::LessEqual => each!(n, args, out, a, b => not(below(b, a))),
        Func::Min if signed => each!(n, args, out, a, b => a.whole_less(b).choose(a, b)),
        Func::Min => each!(n, args, out, a, b => below(a, b).choose(a, b)),
        Func::Max if signed => each!(n, args, out, a, b => a.whole_less(b).choose(b, a)),
        Func::Max => each!(n, args, out, a, b => below(a, b).choose(b, a)),
        Func::Clamp if signed => each!(n, args, out, a, b, c => {
            let low = a.whole_less(b).choose(b, a);
            low.whole_less(c).choose(low, c)
        }),
        Func::Clamp => each!(n, args, out, a, b, c => {
            let low = below(a, b).choose(b, a);
            below(low, c).choose(low, c)
        }),
        other => unreachable!("{} of whole numbers, which `Expr::infer` refuses", other.name()),
    }
}
