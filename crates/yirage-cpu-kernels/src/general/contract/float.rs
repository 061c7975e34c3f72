//! Floats of every width as lanes of f32.

use crate::simd::{LANES, Lanes};
use half::{bf16, f16};

/// A float in memory; f32 holds it exactly.
pub(crate) trait Float: Copy {
    /// Sixteen from anywhere.
    ///
    /// # Safety
    /// They exist.
    unsafe fn load<V: Lanes>(p: *const Self) -> V;
    /// One.
    fn wide(self) -> f32;
}

impl Float for f32 {
    #[inline(always)]
    unsafe fn load<V: Lanes>(p: *const f32) -> V {
        // SAFETY: `Float::load` is promised sixteen; `StridedInput::within` and `StridedOutput::within` check the
        // operands, `contract` the scratch.
        unsafe { V::load(p) }
    }
    #[inline(always)]
    fn wide(self) -> f32 {
        self
    }
}

impl Float for f16 {
    #[inline(always)]
    unsafe fn load<V: Lanes>(p: *const f16) -> V {
        // SAFETY: `Float::load` is promised sixteen; `StridedInput::within` and `StridedOutput::within` check the
        // operands, `contract` the scratch.
        unsafe { V::load_f16(p.cast()) }
    }
    #[inline(always)]
    fn wide(self) -> f32 {
        self.to_f32()
    }
}

impl Float for bf16 {
    #[inline(always)]
    unsafe fn load<V: Lanes>(p: *const bf16) -> V {
        // SAFETY: `Float::load` is promised sixteen; `StridedInput::within` and `StridedOutput::within` check the
        // operands, `contract` the scratch.
        unsafe { V::load_u16(p.cast()) }.shl::<16>()
    }
    #[inline(always)]
    fn wide(self) -> f32 {
        self.to_f32()
    }
}

/// Sixteen, of which the first `n` (1 to 16) exist; the others are 0.
///
/// # Safety
/// They exist.
#[inline(always)]
pub(super) unsafe fn load<V: Lanes, E: Float>(p: *const E, n: usize) -> V {
    if n >= LANES {
        // SAFETY: sixteen exist.
        return unsafe { E::load(p) };
    }
    let mut all = [0.0; LANES];
    for (i, x) in all.iter_mut().enumerate().take(n) {
        // SAFETY: `load` is promised the first n; `StridedInput::within` and `StridedOutput::within` check the
        // operands, `contract` the scratch.
        *x = unsafe { p.add(i).read() }.wide();
    }
    V::of(&all)
}

/// A call with the type that `$elem` says as `$E`; none of whole numbers, which `Contract::new` has refused.
macro_rules! with_float {
    ($elem:expr, $E:ident => $call:expr) => {
        match $elem {
            $crate::general::Elem::F16 => {
                type $E = half::f16;
                $call
            }
            $crate::general::Elem::BF16 => {
                type $E = half::bf16;
                $call
            }
            _ => {
                type $E = f32;
                $call
            }
        }
    };
}
pub(super) use with_float;
