//! Activations times packed weights: `out[t][row] = sum over k of x[t][k] * w[row][k]`.
//!
//! `fast` takes int8 activations for quantised weights, bf16 activations for BF16 weights, else f32; `exact` takes f32
//! activations and weights exactly as their format decodes them.
//!
//! One reduction order for each (precision, format), whatever the number of tokens, the tile, the thread, or the
//! position in the batch:
//! * int8 activations (fast, formats with codes): 32-blocks in ascending order. `dot` and the sums are exact integers.
//!   One scale a block: `acc = fma(dot, d_w * d_x, acc)`, then with mins `acc = fma(min, d_x * sum, acc)`. Two scales
//!   a block: `v = dot0 * s0; v = fma(dot1, s1, v)`, with mins `v = fma(min_i, sum_i, v)` for both halves, then
//!   `acc = fma(v, d_x, acc)`. After the last block of a unit (`pack`: up to 8) its outliers, in ascending order:
//!   `acc = fma(w_k, x_k, acc)`, w_k decoded to f32. Equal bits on every instruction set.
//! * f32 activations (exact; fast F16, F32, and BF16 without the BF16 instruction): `acc = fma(w_k, x_k, acc)` for
//!   ascending k, with w_k the f32 value the format decodes to. Equal bits on every instruction set.
//! * bf16 activations (fast BF16 with a BF16 instruction): pairs of k in ascending order. On x86-64 as `vdpbf16ps` adds
//!   them (it takes subnormal numbers for zero). With AMX as `tdpbf16ps` adds the pairs of a 32-block: from zero the products
//!   of the first numbers and apart from them those of the second, then both sums, then that to `acc`. On AArch64 as `bfdot` does: `acc + (w_0 * x_0 + w_1 * x_1)`, each
//!   operation rounded to odd, subnormal numbers taken for zero.
//!
//! Knows nothing of graphs and threads: a call computes the panels it is told to.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod choices;
#[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), allow(dead_code, unused_imports))]
// portable code decodes as it goes
mod decoded;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod float;
#[cfg(target_arch = "aarch64")]
mod neon;
mod outliers;
mod pass;
mod portable;
mod unroll;
mod variant;
pub mod work_items;

#[cfg(target_arch = "x86_64")]
pub(crate) use avx2::{Vnni, groups_before_widening, has_vex};
#[cfg(target_arch = "aarch64")]
pub(crate) use neon::dot;

use crate::activation::{ActivationBufferLayout, ActivationEncoding, TOKEN_TILE, TokenTile};
use crate::isa::{Isa, IsaError};
use crate::pack::{PANEL_ROWS, PackedMatrix, QuantizedTileFormat, TileFormat, for_format};
pub use choices::VariantChoice;
use decoded::DecodedKernel;
use pass::{PanelPass, Passes, PassesFn};
use std::ops::Range;
use variant::MOST_TOGETHER;
pub use variant::{MatmulSchedule, MatmulVariant, TokenTileKernel, VariantError};
use yirage_ir::Format;
use yirage_plan::Precision;

/// The kernels of an instruction set, precision and weight format: resolve once, use for every call.
#[derive(Clone, Copy)]
pub struct Dispatch {
    isa: Isa,
    format: Format,
    form: ActivationEncoding,
    passes: Passes,
    /// For full tiles, if there is a better way than one by one.
    many: Option<FullTiles>,
    /// For one that comes alone, if there is a better way than that of any number of tokens.
    lone: Option<PassesFn>,
    variant: MatmulVariant,
}

/// Kernels of a format.
struct FormatKernels {
    passes: Passes,
    /// As [`Dispatch::many`].
    many: Option<FullTiles>,
    /// As [`Dispatch::lone`].
    lone: Option<PassesFn>,
}

/// How full tiles of tokens meet a panel.
#[derive(Clone, Copy)]
enum FullTiles {
    /// Its weights are decoded to memory.
    Decoded(DecodedKernel),
    /// They share what is read and unpacked of it.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))] // such kernels are of AVX-512
    Together(PassesFn),
    /// As many as [`MatmulVariant::together`] says with a kernel that reads pairs, fewer with the other, which unpacks a panel in
    /// less time.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))] // as above
    Winograd(PassesFn, PassesFn),
}

impl FullTiles {
    /// How many there must be. With BF16 decoded on Zen 3 one tile is slower so, two are about as fast, four are faster.
    fn from(self, variant: &MatmulVariant) -> usize {
        match self {
            FullTiles::Decoded(_) | FullTiles::Together(_) => 2,
            FullTiles::Winograd(..) => variant.together.min(2),
        }
    }
}

impl Dispatch {
    /// The kernels for weights of `format`.
    ///
    /// # Errors
    /// When this CPU lacks `isa`, or what `variant` computes with.
    pub fn new(isa: Isa, variant: MatmulVariant, precision: Precision, format: Format) -> Result<Dispatch, IsaError> {
        let isa = isa.require()?;
        variant.require()?;
        let (form, FormatKernels { passes, many, lone }) = for_format!(format,
            codes => |T| match precision {
                Precision::Fast => (ActivationEncoding::Q8, quantized_kernels::<T>(isa, &variant)),
                Precision::Exact => (ActivationEncoding::F32, float_passes::<T>(isa)),
            },
            floats => |T| match (precision, format, isa) {
                #[cfg(target_arch = "x86_64")]
                (Precision::Fast, Format::BF16, Isa::Avx512Bf16) => {
                    let many = Some(FullTiles::Together(avx512::BF16_TOGETHER));
                    (ActivationEncoding::Bf16, FormatKernels { passes: avx512::BF16_PASSES, many, lone: None })
                }
                #[cfg(target_arch = "x86_64")]
                (Precision::Fast, Format::BF16, Isa::Amx) => {
                    let many = Some(FullTiles::Together(avx512::BF16_MATRIX_TOGETHER));
                    (ActivationEncoding::Bf16, FormatKernels { passes: avx512::bf16_matrix_passes(&variant), many, lone: None })
                }
                #[cfg(target_arch = "aarch64")]
                (Precision::Fast, Format::BF16, Isa::NeonBf16) => {
                    (ActivationEncoding::Bf16, FormatKernels { passes: neon::BF16_PASSES, many: None, lone: None })
                }
                (Precision::Fast, Format::BF16, _) => (ActivationEncoding::RoundedF32, float_passes::<T>(isa)),
                _ => (ActivationEncoding::F32, float_passes::<T>(isa)),
            }
        );
        Ok(Dispatch { isa, format, form, passes, many, lone, variant })
    }

    /// How it goes about products.
    pub fn variant(&self) -> &MatmulVariant {
        &self.variant
    }

    /// How many bytes ahead a pass of so many tokens asks for weights.
    fn ahead(&self, tokens: usize) -> usize {
        if tokens < self.passes.from { self.variant.fetch } else { self.variant.stream }
    }

    /// Most panels that a pass of so many tokens takes.
    fn panels(&self, tokens: usize) -> usize {
        if tokens < self.passes.from { self.passes.panels } else { 1 }
    }

    /// Whether both run the same machine code for a tile of tokens: a level has kernels of its own, or those of one below it.
    pub fn has_kernels_of(&self, other: &Dispatch) -> bool {
        self.passes.sizes.iter().zip(other.passes.sizes).all(|(a, b)| std::ptr::fn_addr_eq(*a, b))
    }

    /// Whether full tiles of tokens are taken in another way than one by one.
    pub fn takes_tiles_together(&self) -> bool {
        self.many.is_some()
    }

    /// The instruction set.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// Bits of a weight's code, for formats that have codes.
    pub fn code_bits(&self) -> Option<u32> {
        for_format!(self.format, codes => |T| Some(T::BITS), floats => |T| {
            let _ = <T as TileFormat>::PUT;
            None
        })
    }

    /// The form the activations must be stored in.
    pub fn form(&self) -> ActivationEncoding {
        self.form
    }

    /// Whether some of so many tokens are read as pairs.
    pub fn reads_pairs(&self, tokens: usize) -> bool {
        matches!(self.many, Some(FullTiles::Winograd(..))) && tokens / TOKEN_TILE >= self.variant.together
    }

    /// How `tokens` rows of `k` activations must be stored.
    pub fn layout(&self, tokens: usize, k: usize) -> ActivationBufferLayout {
        ActivationBufferLayout::new(self.form, tokens, k).with_pairs(self.reads_pairs(tokens))
    }
}

#[cfg_attr(not(target_arch = "x86_64"), allow(unused_variables))] // kernels of other levels have one way
fn quantized_kernels<T: QuantizedTileFormat>(isa: Isa, variant: &MatmulVariant) -> FormatKernels {
    let passes = match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 | Isa::Avx512Bf16 | Isa::Amx => {
            let many = match variant.many {
                TokenTileKernel::Pairs => FullTiles::Together(avx512::pairs::<T>()),
                TokenTileKernel::Single => FullTiles::Together(avx512::single::<T>()),
                TokenTileKernel::Winograd => match avx512::winograd::<T>() {
                    Some(kernel) => FullTiles::Winograd(kernel, avx512::pairs::<T>()),
                    None => FullTiles::Together(avx512::pairs::<T>()),
                },
                TokenTileKernel::Matrix => FullTiles::Together(avx512::matrix::<T>()),
            };
            let lone = match variant.lone {
                TokenTileKernel::Pairs | TokenTileKernel::Winograd => None,
                TokenTileKernel::Single => Some(avx512::single::<T>()),
                TokenTileKernel::Matrix => Some(avx512::matrix::<T>()),
            };
            return FormatKernels { passes: avx512::quantized_passes::<T>(variant), many: Some(many), lone };
        }
        #[cfg(target_arch = "x86_64")]
        Isa::AvxVnni if avx2::has_vex() => avx2::quantized_passes::<T, avx2::Vnni<true>>(),
        #[cfg(target_arch = "x86_64")]
        Isa::AvxVnni => avx2::quantized_passes::<T, avx2::Vnni<false>>(),
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => avx2::quantized_passes::<T, avx2::Widened>(),
        #[cfg(target_arch = "aarch64")]
        Isa::NeonI8mm | Isa::NeonBf16 => neon::i8mm_quantized_passes::<T>(),
        #[cfg(target_arch = "aarch64")]
        Isa::Neon => neon::quantized_passes::<T>(),
        _ => portable::quantized_passes::<T>(),
    };
    FormatKernels { passes, many: None, lone: None }
}

fn float_passes<T: TileFormat>(isa: Isa) -> FormatKernels {
    let (passes, decoded) = match isa.vectors() {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => (avx512::float_passes::<T>(), avx512::decoded::<T>()),
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => (avx2::float_passes::<T>(), avx2::decoded::<T>()),
        #[cfg(target_arch = "aarch64")]
        Isa::Neon => (neon::float_passes::<T>(), neon::decoded::<T>()),
        _ => return FormatKernels { passes: portable::float_passes::<T>(), many: None, lone: None },
    };
    FormatKernels { passes, many: Some(FullTiles::Decoded(decoded)), lone: None }
}

/// One product: everything but the panels.
pub struct Linear<'a> {
    /// The kernels, for the format of `weights`.
    pub kernel: &'a Dispatch,
    /// The weights.
    pub weights: &'a PackedMatrix,
    /// Which matrix of the stack.
    pub matrix: usize,
    /// Where the activations lie: as the kernel wants it, k as the weights.
    pub layout: ActivationBufferLayout,
    /// The stored activations.
    pub activations: *const u8,
    /// Row t of the result starts at `out + t * ldo`.
    pub out: *mut f32,
    /// Numbers from row to row of the result.
    pub ldo: usize,
    /// If given, row t starts at `out + rows[t] * ldo` instead.
    pub rows: Option<&'a [u32]>,
}

/// Computes the rows of the panels `panels` (64 rows each) for `tokens`, which are whole tiles. Callers give disjoint
/// parts to threads; results do not depend on how. The weights are read from memory once.
///
/// # Panics
/// When kernel, weights and layout do not belong together, or `panels`, `tokens` or `matrix` does not exist.
///
/// # Safety
/// `activations` holds [`ActivationBufferLayout::bytes`] bytes written by [`ActivationBufferLayout::store`] for every token; `out` is writable at
/// `t * ldo + row` for every token t of `tokens` and row of the panels, and nobody else uses these places meanwhile. No
/// thread packs rows of `weights`.
pub unsafe fn linear(job: &Linear<'_>, panels: Range<usize>, tokens: Range<usize>) {
    let (kernel, weights, layout) = (job.kernel, job.weights, job.layout);
    assert_eq!(kernel.format, weights.format(), "the kernel is for another format");
    assert_eq!((kernel.form, weights.k()), (layout.form(), layout.k()), "activations do not fit kernel and weights");
    assert!(
        layout.has_pairs() || !kernel.reads_pairs(tokens.len()),
        "activations without the pairs that the kernel reads"
    );
    assert!(job.matrix < weights.count() && panels.end <= weights.panels(), "panels {panels:?} do not exist");
    assert!(job.rows.is_none_or(|r| r.len() == layout.tokens()), "a row of the result a token");
    let all = layout.tokens();
    assert!(tokens.start.is_multiple_of(TOKEN_TILE) && tokens.end <= all, "tokens {tokens:?} of {all}");
    assert!(tokens.end == all || tokens.end.is_multiple_of(TOKEN_TILE), "tokens {tokens:?} of {all} cut a tile");
    let tiles = tokens.start / TOKEN_TILE..tokens.end.div_ceil(TOKEN_TILE);
    let full = tiles.start..tokens.end / TOKEN_TILE;
    let lone = kernel.lone.filter(|_| full.len() == 1).map(FullTiles::Together);
    let many = lone.or(kernel.many.filter(|many| full.len() >= many.from(&kernel.variant)));
    let rest = if many.is_some() { full.end..tiles.end } else { tiles };
    let together = (kernel.variant.group / weights.panel_bytes().max(1)).max(1);
    for group in panels.clone().step_by(together) {
        let group = group..panels.end.min(group + together);
        // SAFETY: the panels lie in the weights, the tiles in the activations, `Dispatch::new` checked the CPU, and the
        // caller gives the result's memory. Full tiles come first.
        unsafe {
            if let Some(many) = many {
                job.full_tiles(many, full.clone(), group.clone());
            }
            for tile in rest.clone().map(|tile| layout.tile(tile)) {
                for (part, pass) in kernel.passes.cut(tile.tokens) {
                    outliers::fetch(&job.pass(tile, part.clone(), group.start..group.start + 1));
                    let at_once = kernel.panels(part.len());
                    for first in group.clone().step_by(at_once) {
                        pass(&job.pass(tile, part.clone(), first..group.end.min(first + at_once)));
                    }
                }
            }
        }
    }
}

impl Linear<'_> {
    /// The tiles `full` of tokens times some panels.
    ///
    /// # Safety
    /// As for [`linear`]; the tiles are full.
    unsafe fn full_tiles(&self, many: FullTiles, full: Range<usize>, panels: Range<usize>) {
        let pass = |tile, panel| self.pass(self.layout.tile(tile), 0..TOKEN_TILE, panel..panel + 1);
        // SAFETY: what `Linear::full_tiles` is promised; `linear` has checked panels and tokens, `Dispatch::new` the
        // level.
        unsafe {
            match many {
                FullTiles::Decoded(decoded) => panels.for_each(|panel| {
                    decoded.run(full.len(), &|tile| pass(full.start + tile, panel));
                }),
                FullTiles::Together(kernel) | FullTiles::Winograd(kernel, _) => {
                    let together = self.kernel.variant.together;
                    for first in full.clone().step_by(together) {
                        let count = together.min(full.end - first);
                        let kernel = match many {
                            FullTiles::Winograd(_, fewer) if count < together => fewer,
                            _ => kernel,
                        };
                        for tile in first..first + count {
                            outliers::fetch(&pass(tile, panels.start));
                        }
                        for panel in panels.clone() {
                            let passes: [PanelPass; MOST_TOGETHER] =
                                std::array::from_fn(|i| pass(first + i.min(count - 1), panel));
                            kernel(&passes[..count]);
                        }
                    }
                }
            }
        }
    }

    /// Some panels times the tokens `part` of a tile.
    fn pass(&self, tile: TokenTile, part: Range<usize>, panels: Range<usize>) -> PanelPass<'_> {
        let (at, first_row) = (self.layout.offsets(tile, part.start), panels.start * PANEL_ROWS);
        let tokens = tile.first + part.start..tile.first + part.end;
        let first_token = if self.rows.is_some() { 0 } else { tokens.start };
        PanelPass {
            w: self.weights.panel(self.matrix, panels.start),
            #[cfg(target_arch = "x86_64")]
            panels: panels.len(),
            #[cfg(target_arch = "x86_64")]
            next: self.weights.panel_bytes(),
            tokens: tokens.len(),
            stride: tile.tokens,
            units: self.weights.units(),
            ahead: self.kernel.ahead(tokens.len()),
            x: self.activations.wrapping_add(at.numbers),
            metas: self.activations.wrapping_add(at.metas).cast(),
            outliers: self.activations.wrapping_add(at.outliers).cast(),
            #[cfg(target_arch = "x86_64")]
            pairs: self.activations.wrapping_add(at.pairs).cast(),
            marks: self.activations.wrapping_add(at.marks).cast(),
            words: at.words,
            out: self.out.wrapping_add(first_token * self.ldo + first_row),
            ldo: self.ldo,
            places: self.rows.map(|rows| &rows[tokens]),
            rows: (panels.len() * PANEL_ROWS).min(self.weights.rows() - first_row),
        }
    }
}
