//! Advanced SIMD kernels: a tile of 16 rows is four registers of four rows.
//!
//! Up to two tokens a register of weights is multiplied by a word of a token, chosen by its place in a register: no
//! broadcast, no horizontal sum. With more, i8mm and bf16 multiply two rows by two tokens at once. Rows then have to be
//! brought together in twos, an instruction for each register of weights, which pays from four tokens on: for 16 rows,
//! 32 weights and four tokens 64 products, 32 such instructions and 8 for the tokens, where dot products would be 128.
//!
//! Codes are unsigned, activations signed. i8mm has that product. The dot-product extension has only signed numbers:
//! codes of up to 7 bits are that as they are, those of 8 bits are made signed by flipping their highest bit, which takes
//! their offset of 128 away. All sums are exact, so results equal the other kernels' bit for bit.

mod bf16;
pub(crate) mod dot;
mod quantized;

use super::decoded;
use super::float;
use super::pass::{PanelPass, PassFn, Passes};
use crate::pack::{QuantizedTileFormat, TileFormat};
use crate::simd::Neon;
use dot::{Sdot, Usdot, Usmmla};
use quantized::{BySquares, ByWords};

/// Kernels for f32 activations.
pub(super) fn float_passes<F: TileFormat>() -> Passes {
    let four: PassFn = float_pass::<F, 4>;
    Passes { sizes: [float_pass::<F, 1>, float_pass::<F, 2>, four, four, four], from: 4, step: 4, panels: 1 }
}

decoded::functions!(Neon, target_feature(enable = "neon"));

/// Kernels for int8 activations.
pub(super) fn quantized_passes<F: QuantizedTileFormat>() -> Passes {
    let many: PassFn = quantized_pass::<F, 4, true>;
    Passes {
        sizes: [quantized_pass::<F, 1, false>, quantized_pass::<F, 2, false>, many, many, many],
        from: 4,
        step: 4,
        panels: 1,
    }
}

/// Kernels for int8 activations with i8mm.
pub(super) fn i8mm_quantized_passes<F: QuantizedTileFormat>() -> Passes {
    let many: PassFn = squares_pass::<F>;
    Passes {
        sizes: [i8mm_quantized_pass::<F, 1>, i8mm_quantized_pass::<F, 2>, many, many, many],
        from: 4,
        step: 4,
        panels: 1,
    }
}

/// Kernels for BF16 weights and bf16 activations.
pub(super) const BF16_PASSES: Passes = Passes {
    sizes: [bf16_few::<1, 4>, bf16_few::<2, 2>, bf16_many, bf16_many, bf16_many],
    from: 4,
    step: 4,
    panels: 1,
};

/// # Safety
/// As for [`PassFn`].
unsafe fn float_pass<F: TileFormat, const T: usize>(p: &PanelPass) {
    // SAFETY: what `float_pass` is promised; `linear` has checked panels and tokens, `Dispatch::new` the level.
    unsafe { float::pass::<Neon, F, T>(p) }
}

/// # Safety
/// As for [`PassFn`].
#[target_feature(enable = "dotprod")]
unsafe fn quantized_pass<F: QuantizedTileFormat, const T: usize, const MANY: bool>(p: &PanelPass) {
    // SAFETY: what `quantized_pass` is promised; `linear` has checked panels and tokens, `Dispatch::new` the level.
    unsafe { quantized::pass::<F, ByWords<Sdot>, 4, T, MANY>(p) }
}

/// # Safety
/// As for [`PassFn`].
#[target_feature(enable = "i8mm")]
unsafe fn i8mm_quantized_pass<F: QuantizedTileFormat, const T: usize>(p: &PanelPass) {
    // SAFETY: what `i8mm_quantized_pass` is promised; `linear` has checked panels and tokens, `Dispatch::new` the
    // level.
    unsafe { quantized::pass::<F, ByWords<Usdot>, 4, T, false>(p) }
}

/// # Safety
/// As for [`PassFn`].
#[target_feature(enable = "i8mm")]
unsafe fn squares_pass<F: QuantizedTileFormat>(p: &PanelPass) {
    // SAFETY: what `squares_pass` is promised; `linear` has checked panels and tokens, `Dispatch::new` the level.
    unsafe { quantized::pass::<F, BySquares<Usmmla>, 8, 2, true>(p) }
}

/// # Safety
/// As for [`PassFn`].
#[target_feature(enable = "bf16")]
unsafe fn bf16_few<const T: usize, const S: usize>(p: &PanelPass) {
    // SAFETY: what `bf16_few` is promised; `linear` has checked panels and tokens, `Dispatch::new` the level.
    unsafe { bf16::few::<T, S>(p) }
}

/// # Safety
/// As for [`PassFn`].
#[target_feature(enable = "bf16")]
unsafe fn bf16_many(p: &PanelPass) {
    // SAFETY: what `bf16_many` is promised; `linear` has checked panels and tokens, `Dispatch::new` the level.
    unsafe { bf16::many(p) }
}
