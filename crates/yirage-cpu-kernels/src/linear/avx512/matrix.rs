//! Full tiles of tokens by the matrix registers of AMX: 16 tokens times 16 rows of codes in one instruction, and the scales
//! in vector registers after it.
//!
//! A matrix of sums reaches the vector registers through memory, so the products of a block begin while the scales of the
//! block two before it are applied. What bounds the loop is that while matrix registers are in use one port alone
//! multiplies floats, one vector a cycle (measured: 48 multiplications take 24 cycles without them and 48 with them). A
//! second port still adds floats. The sums therefore begin at [`START`], whose bits are those of a float: to subtract it as a
//! float converts them.
//!
//! `tilezero` between vector instructions costs more than a load of the start, and a matrix that is stored right after its
//! product holds up the next: the registers of sums alternate.

use super::{add_outliers, finish};
use crate::activation::{Meta, TOKEN_TILE};
use crate::amx::Shapes;
use crate::linear::outliers::OutlierBlocks;
use crate::linear::pass::{PanelPass, fetch};
use crate::linear::unroll::unroll;
use crate::pack::{BLOCK, PANEL_TILES, QuantizedTileFormat, TILE_ROWS, UnitScales};
use crate::simd::Avx512;
use std::arch::asm;
use std::arch::x86_64::*;
use std::mem::offset_of;

/// 1.5 * 2^23. A number of less than 2^22 added to its bits gives the bits of the float that is larger by that number.
const START: f32 = 12_582_912.0;

// The largest sum of a block: 32 products of signed bytes.
const _: () = assert!(BLOCK * 128 * 128 < 1 << 22 && START.to_bits() == 0x4b40_0000);
// What the assembly takes for granted.
const _: () = assert!(size_of::<Meta>() == 16 && offset_of!(Meta, scale) == 0 && offset_of!(Meta, scaled_sum) == 4);
const _: () = assert!(offset_of!(Meta, minus_sum) == 8 && offset_of!(Meta, minus_first) == 12);
const _: () = assert!(size_of::<AmxInt8Accumulators>() == 1024);

/// Bytes of the codes of a block.
const TILE_CODES: usize = TILE_ROWS * BLOCK;
/// Blocks whose sums are in memory.
const RING: usize = 4;
/// Blocks from the beginning of the products to the scales.
const LAG: usize = 2;

/// The sums of a tile of tokens and a tile of rows: `[token][row]`.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct AmxInt8Accumulators([[i32; TILE_ROWS]; TOKEN_TILE]);

/// The integer sums of the newest blocks: a matrix each, with two scales a block one for each half.
type Ring = [AmxInt8Accumulators; 2 * RING];

/// Where those of block `i` are, with so many scales a block.
fn ring_index(i: usize, halves: usize) -> usize {
    i % RING * halves
}

/// What matrices of sums begin with.
static STARTS: AmxInt8Accumulators = AmxInt8Accumulators([[START.to_bits() as i32; TILE_ROWS]; TOKEN_TILE]);

/// The codes of the unit of a tile of rows, signed: `[block][four of k][row][4]`.
#[repr(C, align(64))]
struct Unpacked([[u8; TILE_CODES]; MOST_BLOCKS]);

/// Most blocks of a unit.
const MOST_BLOCKS: usize = 8;

/// Registers 0 to 3 hold sums, 4 tokens, 5 rows. With two scales a block, a product has 16 numbers of k.
const fn shapes(halves: usize) -> Shapes {
    let (sums, k) = ((TOKEN_TILE, 4 * TILE_ROWS), BLOCK / halves);
    let (tokens, rows) = ((TOKEN_TILE, k), (k / 4, 4 * TILE_ROWS));
    Shapes::new([sums, sums, sums, sums, tokens, rows, rows, rows])
}

/// A block's product into register `$c`: the numbers of 16 tokens at `$x` and the codes of 16 rows at `$w`.
macro_rules! product {
    ($c:expr, $x:expr, $w:expr) => {
        asm!(
            "tileloadd tmm{c}, [{start} + {line}]",
            "tileloadd tmm4, [{x} + {token}]",
            "tileloadd tmm5, [{w} + {line}]",
            "tdpbssd tmm{c}, tmm4, tmm5",
            c = const $c, start = in(reg) &raw const STARTS, x = in(reg) $x, w = in(reg) $w,
            line = in(reg) 64usize, token = in(reg) BLOCK, options(nostack, readonly, preserves_flags))
    };
}

/// Writes register `$c`.
macro_rules! put {
    ($c:expr, $to:expr) => {
        asm!("tilestored [{to} + {line}], tmm{c}", c = const $c, to = in(reg) $to, line = in(reg) 64usize,
            options(nostack, preserves_flags))
    };
}

/// Applies the scales of a block to its integer sums with 16 tokens at `$dots` and adds them to `$sums`, in assembly from
/// beginning to end: LLVM reads scales of tokens ahead until sums move to memory. `$each` is what a token takes, from its
/// number, the place of its sums and that of its scale.
macro_rules! add {
    ($sums:ident, $dots:expr, $metas:expr, $each:ident, [$($with:tt)*]) => {
        add!(@ $sums, $dots, $metas, $each, [$($with)*],
            [0 0 0] [1 64 16] [2 128 32] [3 192 48] [4 256 64] [5 320 80] [6 384 96] [7 448 112] [8 512 128]
            [9 576 144] [10 640 160] [11 704 176] [12 768 192] [13 832 208] [14 896 224] [15 960 240])
    };
    (@ $sums:ident, $dots:expr, $metas:expr, $each:ident, [$($with:tt)*], $([$i:literal $at:literal $meta:literal])*) => {{
        let (t, s): (__m512, __m512);
        asm!(
            $($each!($i, $at, $meta),)*
            t = out(zmm_reg) t, s = out(zmm_reg) s, d = in(reg) $dots, m = in(reg) $metas,
            start = in(zmm_reg) _mm512_set1_ps(-START),
            a0 = inout(zmm_reg) $sums[0], a1 = inout(zmm_reg) $sums[1], a2 = inout(zmm_reg) $sums[2],
            a3 = inout(zmm_reg) $sums[3], a4 = inout(zmm_reg) $sums[4], a5 = inout(zmm_reg) $sums[5],
            a6 = inout(zmm_reg) $sums[6], a7 = inout(zmm_reg) $sums[7], a8 = inout(zmm_reg) $sums[8],
            a9 = inout(zmm_reg) $sums[9], a10 = inout(zmm_reg) $sums[10], a11 = inout(zmm_reg) $sums[11],
            a12 = inout(zmm_reg) $sums[12], a13 = inout(zmm_reg) $sums[13], a14 = inout(zmm_reg) $sums[14],
            a15 = inout(zmm_reg) $sums[15], $($with)*
            options(nostack, readonly, preserves_flags));
        let _ = (t, s);
    }};
}

/// A token of a block with one scale.
macro_rules! whole {
    ($i:literal, $at:literal, $meta:literal) => {
        concat!(
            "vaddps {t}, {start}, zmmword ptr [{d} + ",
            $at,
            "]\n",
            "vmulps {s}, {s0}, dword ptr [{m} + ",
            $meta,
            "]{{1to16}}\n",
            "vfmadd231ps {a",
            $i,
            "}, {t}, {s}"
        )
    };
}

/// The same with mins.
macro_rules! whole_mins {
    ($i:literal, $at:literal, $meta:literal) => {
        concat!(whole!($i, $at, $meta), "\nvfmadd231ps {a", $i, "}, {m0}, dword ptr [{m} + ", $meta, " + 4]{{1to16}}")
    };
}

/// A token of a block with two scales.
macro_rules! halves {
    ($i:literal, $at:literal, $meta:literal) => {
        concat!(
            "vaddps {t}, {start}, zmmword ptr [{d} + ",
            $at,
            "]\n",
            "vmulps {t}, {t}, {s0}\n",
            "vaddps {s}, {start}, zmmword ptr [{d} + ",
            $at,
            " + 1024]\n",
            "vfmadd231ps {t}, {s}, {s1}\n",
            "vfmadd231ps {a",
            $i,
            "}, {t}, dword ptr [{m} + ",
            $meta,
            "]{{1to16}}"
        )
    };
}

/// The same with mins.
macro_rules! halves_mins {
    ($i:literal, $at:literal, $meta:literal) => {
        concat!(
            "vaddps {t}, {start}, zmmword ptr [{d} + ",
            $at,
            "]\n",
            "vmulps {t}, {t}, {s0}\n",
            "vaddps {s}, {start}, zmmword ptr [{d} + ",
            $at,
            " + 1024]\n",
            "vfmadd231ps {t}, {s}, {s1}\n",
            "vcvtdq2ps {s}, dword ptr [{m} + ",
            $meta,
            " + 12]{{1to16}}\n",
            "vfnmadd231ps {t}, {s}, {m0}\n",
            "vpbroadcastd {s}, dword ptr [{m} + ",
            $meta,
            " + 8]\n",
            "vpsubd {s}, {s}, dword ptr [{m} + ",
            $meta,
            " + 12]{{1to16}}\n",
            "vcvtdq2ps {s}, {s}\n",
            "vfnmadd231ps {t}, {s}, {m1}\n",
            "vfmadd231ps {a",
            $i,
            "}, {t}, dword ptr [{m} + ",
            $meta,
            "]{{1to16}}"
        )
    };
}

/// The unit's codes of a tile of rows, signed.
///
/// # Safety
/// A whole unit at `w`; AVX-512.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
#[inline]
unsafe fn unpack<F: QuantizedTileFormat>(ahead: usize, w: *const u8, into: &mut Unpacked) {
    const { assert!(F::UNIT_BLOCKS <= MOST_BLOCKS && (F::UNIT_BLOCKS == 1 || F::UNIT_BLOCKS.is_multiple_of(LAG))) };
    let offset = _mm512_set1_epi8(F::OFFSET as u8 as i8);
    for (b, block) in into.0[..F::UNIT_BLOCKS].iter_mut().enumerate() {
        fetch::<Avx512, F>(ahead, w, b);
        let to: *mut __m512i = block.as_mut_ptr().cast();
        // SAFETY: `unpack` is promised the unit; a block has 8 vectors of codes; `linear` has checked panels and
        // tokens, `Dispatch::new` the level.
        unsafe {
            unroll!(P in [0 1 2 3] {
                let pair = F::pair::<Avx512>(w, b, P).map(|codes| match F::OFFSET {
                    0 => codes,
                    _ => _mm512_sub_epi8(codes, offset),
                });
                _mm512_store_si512(to.add(2 * P), pair[0]);
                _mm512_store_si512(to.add(2 * P + 1), pair[1]);
            });
        }
    }
}

/// A unit of a tile of rows and its sums with some tiles of tokens.
struct AmxUnitPass<'a> {
    codes: &'a Unpacked,
    scales: &'a UnitScales,
    passes: &'a [PanelPass<'a>],
    /// Its first block.
    first: usize,
}

impl AmxUnitPass<'_> {
    /// Begins the products of block `i`, counted through all tiles of tokens, in the registers of `PARITY`, and writes those
    /// of the block before it.
    ///
    /// # Safety
    /// As for [`together`]; `i` is at most one more than the last block, and `PARITY` its last bit.
    #[inline(always)]
    unsafe fn begin<F: QuantizedTileFormat, const PARITY: usize>(&self, i: usize, ring: &mut Ring) {
        // SAFETY: the block exists, in the tokens and in the codes.
        unsafe {
            if i < self.passes.len() * F::UNIT_BLOCKS {
                let (tile, b) = (i / F::UNIT_BLOCKS, i % F::UNIT_BLOCKS);
                let (x, w) = (self.passes[tile].block(self.first + b).0, self.codes.0[b].as_ptr());
                match (PARITY, F::HALVES) {
                    (0, 1) => product!(0, x, w),
                    (_, 1) => product!(1, x, w),
                    (0, _) => {
                        product!(0, x, w);
                        product!(2, x.add(BLOCK / 2), w.add(TILE_CODES / 2));
                    }
                    _ => {
                        product!(1, x, w);
                        product!(3, x.add(BLOCK / 2), w.add(TILE_CODES / 2));
                    }
                }
            }
            if (1..=self.passes.len() * F::UNIT_BLOCKS).contains(&i) {
                let to = ring.as_mut_ptr().add(ring_index(i - 1, F::HALVES));
                match (PARITY, F::HALVES) {
                    (1, 1) => put!(0, to),
                    (_, 1) => put!(1, to),
                    (1, _) => {
                        put!(0, to);
                        put!(2, to.add(1));
                    }
                    _ => {
                        put!(1, to);
                        put!(3, to.add(1));
                    }
                }
            }
        }
    }

    /// Adds block `b` of the unit to the sums of a tile of tokens, from its integer sums.
    ///
    /// # Safety
    /// As for [`together`]; the block's scales are written.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    #[inline]
    unsafe fn add<F: QuantizedTileFormat>(
        &self,
        b: usize,
        dots: *const AmxInt8Accumulators,
        metas: *const Meta,
        sums: &mut [__m512; TOKEN_TILE],
    ) {
        let row = |half: usize| b * F::HALVES + half.min(F::HALVES - 1);
        // SAFETY: what `AmxUnitPass::add` is promised; 16 tokens have metas and sums; `linear` has checked panels and
        // tokens, `Dispatch::new` the level.
        unsafe {
            let [s0, s1] = [0, 1].map(|half| _mm512_load_ps(self.scales.scale(row(half)).as_ptr()));
            let mins = |half: usize| _mm512_load_ps(self.scales.min(row(half)).as_ptr());
            match (F::HALVES, F::MINS) {
                (1, false) => add!(sums, dots, metas, whole, [s0 = in(zmm_reg) s0,]),
                (1, true) => {
                    add!(sums, dots, metas, whole_mins, [s0 = in(zmm_reg) s0, m0 = in(zmm_reg) mins(0),]);
                }
                (_, false) => {
                    add!(sums, dots, metas, halves, [s0 = in(zmm_reg) s0, s1 = in(zmm_reg) s1,]);
                }
                (_, true) => {
                    add!(sums, dots, metas, halves_mins, [
                        s0 = in(zmm_reg) s0, s1 = in(zmm_reg) s1, m0 = in(zmm_reg) mins(0), m1 = in(zmm_reg) mins(1),
                    ]);
                }
            }
        }
    }

    /// Adds the unit to the sums of all tiles of tokens.
    ///
    /// # Safety
    /// As for [`together`]; the unit's scales are written.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    #[inline]
    unsafe fn run<F: QuantizedTileFormat>(
        &self,
        rows: usize,
        ring: &mut Ring,
        sums: &mut [[[__m512; TOKEN_TILE]; PANEL_TILES]],
    ) {
        // SAFETY: what `AmxUnitPass::run` is promised; `linear` has checked panels and tokens, `Dispatch::new` the
        // level.
        unsafe {
            self.begin::<F, 0>(0, ring);
            self.begin::<F, 1>(1, ring);
            if F::UNIT_BLOCKS == 1 {
                for (tile, (p, sums)) in self.passes.iter().zip(sums).enumerate() {
                    match tile % 2 {
                        0 => self.begin::<F, 0>(tile + LAG, ring),
                        _ => self.begin::<F, 1>(tile + LAG, ring),
                    }
                    self.add::<F>(
                        0,
                        &raw const ring[ring_index(tile, F::HALVES)],
                        p.block(self.first).1,
                        &mut sums[rows],
                    );
                }
                return;
            }
            for (tile, (p, sums)) in self.passes.iter().zip(sums).enumerate() {
                let mut tokens = sums[rows]; // a copy stays in registers
                for b in (0..F::UNIT_BLOCKS).step_by(LAG) {
                    let i = tile * F::UNIT_BLOCKS + b;
                    self.begin::<F, 0>(i + LAG, ring);
                    self.add::<F>(b, &raw const ring[ring_index(i, F::HALVES)], p.block(self.first + b).1, &mut tokens);
                    self.begin::<F, 1>(i + 1 + LAG, ring);
                    self.add::<F>(
                        b + 1,
                        &raw const ring[ring_index(i + 1, F::HALVES)],
                        p.block(self.first + b + 1).1,
                        &mut tokens,
                    );
                }
                sums[rows] = tokens;
            }
        }
    }
}

/// One pass for each of some full tiles of tokens that share the panel.
///
/// # Safety
/// As for [`crate::linear::pass::PassFn`], for each of `passes`; there are at most `T`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
unsafe fn together<F: QuantizedTileFormat, const T: usize>(passes: &[PanelPass]) {
    let mut scales = [const { UnitScales::new() }; PANEL_TILES];
    let mut codes = Unpacked([[0; TILE_CODES]; MOST_BLOCKS]);
    let mut ring = [AmxInt8Accumulators([[0; TILE_ROWS]; TOKEN_TILE]); 2 * RING];
    // SAFETY: `Variant::require` found the registers granted. Units, tiles and blocks stay in the panel, tokens in their
    // tiles; prefetches may leave it.
    unsafe {
        let _configured = const { &shapes(F::HALVES) }.configure();
        let mut sums = [[[_mm512_setzero_ps(); TOKEN_TILE]; PANEL_TILES]; T];
        let (sums, mut marked) = (&mut sums[..passes.len()], OutlierBlocks::new(passes));
        let mut unit = passes[0].w;
        for u in 0..passes[0].units {
            marked.fetch::<F>(u);
            let mut w = unit;
            for (rows, scales) in scales.iter_mut().enumerate() {
                F::scales::<Avx512>(w, scales);
                unpack::<F>(passes[0].ahead, w, &mut codes);
                let unit = AmxUnitPass { codes: &codes, scales, passes, first: u * F::UNIT_BLOCKS };
                unit.run::<F>(rows, &mut ring, sums);
                w = w.add(F::UNIT_BYTES);
            }
            if marked.blocks::<F>(u) != 0 {
                add_outliers::<F, TOKEN_TILE>(&mut marked, u, unit, &scales, sums);
            }
            unit = w;
        }
        finish(passes, sums);
    }
}

/// [`together`] for any number of full tiles of tokens up to `T`: one alone needs less room.
///
/// # Safety
/// As for that.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub(super) unsafe fn some<F: QuantizedTileFormat, const T: usize>(passes: &[PanelPass]) {
    // SAFETY: what `some` is promised; `linear` has checked panels and tokens, `Dispatch::new` the level.
    unsafe {
        match passes.len() {
            1 => together::<F, 1>(passes),
            _ => together::<F, T>(passes),
        }
    }
}
