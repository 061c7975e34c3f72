//! Functions of registers, exactly.

use super::fault::KernelProblem;
use super::half::{from_half, to_half};
use super::lanes::{LaneFault, LaneSet, LaneValues};
use crate::computation::{BinaryFunction, UnaryFunction};
use crate::place::Register;
use crate::scalar::ScalarType;

/// A function of floats as one of their bits.
fn floats(f: impl Fn(f32, f32) -> f32) -> impl Fn(u32, u32) -> u32 {
    move |a, b| f(f32::from_bits(a), f32::from_bits(b)).to_bits()
}

/// A comparison of floats as one of their bits.
fn compared(f: impl Fn(f32, f32) -> bool) -> impl Fn(u32, u32) -> u32 {
    move |a, b| u32::from(f(f32::from_bits(a), f32::from_bits(b)))
}

impl LaneValues {
    pub(super) fn unary(
        &mut self,
        to: Register,
        function: UnaryFunction,
        x: Register,
        ty: ScalarType,
        lanes: LaneSet<'_>,
    ) {
        let float = |f: fn(f32) -> f32| move |x| f(f32::from_bits(x)).to_bits();
        match (function, ty) {
            // A sign is a bit, of NaN too.
            (UnaryFunction::Neg, ScalarType::F32) => self.map(to, x, lanes, |x| x ^ 0x8000_0000),
            (UnaryFunction::Abs, ScalarType::F32) => self.map(to, x, lanes, |x| x & 0x7fff_ffff),
            (UnaryFunction::Neg, _) => self.map(to, x, lanes, u32::wrapping_neg),
            (UnaryFunction::Abs, _) => self.map(to, x, lanes, |x| (x as i32).wrapping_abs() as u32),
            (UnaryFunction::Not, ScalarType::Bool) => self.map(to, x, lanes, |x| x ^ 1),
            (UnaryFunction::Not, _) => self.map(to, x, lanes, |x| !x),
            (UnaryFunction::Sqrt, _) => self.map(to, x, lanes, float(f32::sqrt)),
            (UnaryFunction::Floor, _) => self.map(to, x, lanes, float(f32::floor)),
            (UnaryFunction::Round, _) => self.map(to, x, lanes, float(f32::round_ties_even)),
            (UnaryFunction::CountOnes, _) => self.map(to, x, lanes, u32::count_ones),
        }
    }

    pub(super) fn binary(
        &mut self,
        to: Register,
        function: BinaryFunction,
        [a, b]: [Register; 2],
        ty: ScalarType,
        lanes: LaneSet<'_>,
    ) -> Result<(), LaneFault> {
        use BinaryFunction as F;
        match (function, ty) {
            (F::Div | F::Rem | F::Min | F::Max | F::ShiftLeft | F::ShiftRight, _) => {
                return self.partial(to, function, [a, b], ty, lanes);
            }
            (F::Add, ScalarType::F32) => self.map2(to, a, b, lanes, floats(|a, b| a + b)),
            (F::Sub, ScalarType::F32) => self.map2(to, a, b, lanes, floats(|a, b| a - b)),
            (F::Mul, ScalarType::F32) => self.map2(to, a, b, lanes, floats(|a, b| a * b)),
            (F::Less, ScalarType::F32) => self.map2(to, a, b, lanes, compared(|a, b| a < b)),
            (F::LessEqual, ScalarType::F32) => self.map2(to, a, b, lanes, compared(|a, b| a <= b)),
            (F::Equal, ScalarType::F32) => self.map2(to, a, b, lanes, compared(|a, b| a == b)),
            (F::NotEqual, ScalarType::F32) => self.map2(to, a, b, lanes, compared(|a, b| a != b)),
            (F::Less, ScalarType::I32) => self.map2(to, a, b, lanes, |a, b| u32::from((a as i32) < b as i32)),
            (F::LessEqual, ScalarType::I32) => self.map2(to, a, b, lanes, |a, b| u32::from(a as i32 <= b as i32)),
            (F::Add, _) => self.map2(to, a, b, lanes, u32::wrapping_add),
            (F::Sub, _) => self.map2(to, a, b, lanes, u32::wrapping_sub),
            (F::Mul, _) => self.map2(to, a, b, lanes, u32::wrapping_mul),
            (F::And, _) => self.map2(to, a, b, lanes, |a, b| a & b),
            (F::Or, _) => self.map2(to, a, b, lanes, |a, b| a | b),
            (F::Xor, _) => self.map2(to, a, b, lanes, |a, b| a ^ b),
            (F::Less, _) => self.map2(to, a, b, lanes, |a, b| u32::from(a < b)),
            (F::LessEqual, _) => self.map2(to, a, b, lanes, |a, b| u32::from(a <= b)),
            (F::Equal, _) => self.map2(to, a, b, lanes, |a, b| u32::from(a == b)),
            (F::NotEqual, _) => self.map2(to, a, b, lanes, |a, b| u32::from(a != b)),
        }
        Ok(())
    }

    /// Functions that not all numbers have a value of.
    fn partial(
        &mut self,
        to: Register,
        function: BinaryFunction,
        [a, b]: [Register; 2],
        ty: ScalarType,
        lanes: LaneSet<'_>,
    ) -> Result<(), LaneFault> {
        use BinaryFunction as F;
        let divided = |f: fn(u32, u32) -> u32| {
            move |a: u32, b: u32| if b == 0 { Err(KernelProblem::DivisionByZero(a)) } else { Ok(f(a, b)) }
        };
        let shifted = |f: fn(u32, u32) -> u32| {
            move |a: u32, bits: u32| if bits < 32 { Ok(f(a, bits)) } else { Err(KernelProblem::Shift(bits)) }
        };
        match (function, ty) {
            (F::Min, _) => self.try_map2(to, a, b, lanes, |a, b| smaller(ty, a, b)),
            (F::Max, _) => self.try_map2(to, a, b, lanes, |a, b| larger(ty, a, b)),
            (F::ShiftLeft, _) => self.try_map2(to, a, b, lanes, shifted(|a, bits| a << bits)),
            (F::ShiftRight, _) => self.try_map2(to, a, b, lanes, shifted(|a, bits| a >> bits)),
            (F::Rem, ScalarType::I32) => {
                self.try_map2(to, a, b, lanes, divided(|a, b| (a as i32).wrapping_rem(b as i32) as u32))
            }
            (F::Rem, _) => self.try_map2(to, a, b, lanes, divided(|a, b| a % b)),
            (_, ScalarType::F32) => {
                self.map2(to, a, b, lanes, floats(|a, b| a / b));
                Ok(())
            }
            (_, ScalarType::I32) => {
                self.try_map2(to, a, b, lanes, divided(|a, b| (a as i32).wrapping_div(b as i32) as u32))
            }
            (_, _) => self.try_map2(to, a, b, lanes, divided(|a, b| a / b)),
        }
    }

    pub(super) fn convert(
        &mut self,
        to: Register,
        x: Register,
        [from, into]: [ScalarType; 2],
        lanes: LaneSet<'_>,
    ) -> Result<(), LaneFault> {
        use ScalarType::{Bool, F32, I32, U32};
        match (from, into) {
            (F32, I32) => return self.try_map(to, x, lanes, to_i32),
            (F32, U32) => return self.try_map(to, x, lanes, to_u32),
            (I32, F32) => self.map(to, x, lanes, |x| (x as i32 as f32).to_bits()),
            (U32 | Bool, F32) => self.map(to, x, lanes, |x| (x as f32).to_bits()),
            (I32 | U32, Bool) => self.map(to, x, lanes, |x| u32::from(x != 0)),
            (F32 | Bool, F32 | Bool) | (I32 | U32 | Bool, I32 | U32) => self.map(to, x, lanes, |x| x),
        }
        Ok(())
    }

    pub(super) fn unpack_half(&mut self, to: Register, word: Register, high: bool, lanes: LaneSet<'_>) {
        let shift = if high { 16 } else { 0 };
        self.map(to, word, lanes, |word| from_half((word >> shift) as u16).to_bits());
    }

    pub(super) fn pack_half(&mut self, to: Register, low: Register, high: Register, lanes: LaneSet<'_>) {
        let half = |bits| u32::from(to_half(f32::from_bits(bits)));
        self.map2(to, low, high, lanes, |low, high| half(low) | half(high) << 16);
    }
}

/// The smaller of two numbers of a type.
pub(super) fn smaller(ty: ScalarType, a: u32, b: u32) -> Result<u32, KernelProblem> {
    Ok(match ty {
        ScalarType::F32 => {
            let (a, b) = ordered(a, b)?;
            a.min(b).to_bits()
        }
        ScalarType::I32 => (a as i32).min(b as i32) as u32,
        ScalarType::U32 | ScalarType::Bool => a.min(b),
    })
}

/// The larger of two numbers of a type.
pub(super) fn larger(ty: ScalarType, a: u32, b: u32) -> Result<u32, KernelProblem> {
    Ok(match ty {
        ScalarType::F32 => {
            let (a, b) = ordered(a, b)?;
            a.max(b).to_bits()
        }
        ScalarType::I32 => (a as i32).max(b as i32) as u32,
        ScalarType::U32 | ScalarType::Bool => a.max(b),
    })
}

/// Two floats, neither of which is NaN.
fn ordered(a: u32, b: u32) -> Result<(f32, f32), KernelProblem> {
    let (a, b) = (f32::from_bits(a), f32::from_bits(b));
    if a.is_nan() || b.is_nan() { Err(KernelProblem::OrderOfNan(a, b)) } else { Ok((a, b)) }
}

fn to_i32(bits: u32) -> Result<u32, KernelProblem> {
    let x = f32::from_bits(bits);
    let inside = (-2_147_483_648.0..2_147_483_648.0).contains(&x);
    if inside { Ok(x as i32 as u32) } else { Err(KernelProblem::Conversion { value: x, ty: ScalarType::I32 }) }
}

fn to_u32(bits: u32) -> Result<u32, KernelProblem> {
    let x = f32::from_bits(bits);
    let inside = x > -1.0 && x < 4_294_967_296.0;
    if inside { Ok(x as u32) } else { Err(KernelProblem::Conversion { value: x, ty: ScalarType::U32 }) }
}
