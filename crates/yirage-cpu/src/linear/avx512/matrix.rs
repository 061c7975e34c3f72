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

use super::scaled::{add, add_halves};
use super::{add_outliers, finish};
use crate::activation::{Meta, TOKEN_TILE};
use crate::amx::Shapes;
use crate::linear::lanes::Avx512Lanes;
use crate::linear::outliers::Marked;
use crate::linear::pass::{Pass, fetch};
use crate::linear::unroll::unroll;
use crate::pack::{BLOCK, Codes, PANEL_TILES, Scales, TILE_ROWS};
use std::arch::asm;
use std::arch::x86_64::*;

/// 1.5 * 2^23. A number of less than 2^22 added to its bits gives the bits of the float that is larger by that number.
const START: f32 = 12_582_912.0;

// The largest sum of a block: 32 products of signed bytes.
const _: () = assert!(BLOCK * 128 * 128 < 1 << 22 && START.to_bits() == 0x4b40_0000);

/// Bytes of the codes of a block.
const CODES: usize = TILE_ROWS * BLOCK;
/// Blocks whose sums are in memory.
const RING: usize = 4;
/// Blocks from the beginning of the products to the scales.
const LAG: usize = 2;

/// The sums of a tile of tokens and a tile of rows: `[token][row]`.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Matrix([[i32; TILE_ROWS]; TOKEN_TILE]);

/// The integer sums of the newest blocks; those with one scale have one matrix.
type Ring = [[Matrix; 2]; RING];

/// What matrices of sums begin with.
static STARTS: Matrix = Matrix([[START.to_bits() as i32; TILE_ROWS]; TOKEN_TILE]);

/// The codes of the unit of a tile of rows, signed: `[block][four of k][row][4]`.
#[repr(C, align(64))]
struct Unpacked([[u8; CODES]; MOST_BLOCKS]);

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

/// The unit's codes of a tile of rows, signed.
///
/// # Safety
/// A whole unit at `w`; AVX-512.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
#[inline]
unsafe fn unpack<F: Codes>(ahead: usize, w: *const u8, into: &mut Unpacked) {
    const { assert!(F::UNIT_BLOCKS <= MOST_BLOCKS && (F::UNIT_BLOCKS == 1 || F::UNIT_BLOCKS.is_multiple_of(LAG))) };
    let offset = _mm512_set1_epi8(F::OFFSET as u8 as i8);
    for (b, block) in into.0[..F::UNIT_BLOCKS].iter_mut().enumerate() {
        fetch::<Avx512Lanes, F>(ahead, w, b);
        let to: *mut __m512i = block.as_mut_ptr().cast();
        // SAFETY: the caller has the unit; a block has 8 vectors of codes.
        unsafe {
            unroll!(P in [0 1 2 3] {
                let pair = F::pair::<Avx512Lanes>(w, b, P).map(|codes| match F::OFFSET {
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
struct Unit<'a> {
    codes: &'a Unpacked,
    scales: &'a Scales,
    passes: &'a [Pass<'a>],
    /// Its first block.
    first: usize,
}

impl Unit<'_> {
    /// Begins the products of block `i`, counted through all tiles of tokens, in the registers of `PARITY`, and writes those
    /// of the block before it.
    ///
    /// # Safety
    /// As for [`together`]; `i` is at most one more than the last block, and `PARITY` its last bit.
    #[inline(always)]
    unsafe fn begin<F: Codes, const PARITY: usize>(&self, i: usize, ring: &mut Ring) {
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
                        product!(2, x.add(BLOCK / 2), w.add(CODES / 2));
                    }
                    _ => {
                        product!(1, x, w);
                        product!(3, x.add(BLOCK / 2), w.add(CODES / 2));
                    }
                }
            }
            if (1..=self.passes.len() * F::UNIT_BLOCKS).contains(&i) {
                let to = &mut ring[(i - 1) % RING];
                match (PARITY, F::HALVES) {
                    (1, 1) => put!(0, &raw mut to[0]),
                    (_, 1) => put!(1, &raw mut to[0]),
                    (1, _) => {
                        put!(0, &raw mut to[0]);
                        put!(2, &raw mut to[1]);
                    }
                    _ => {
                        put!(1, &raw mut to[0]);
                        put!(3, &raw mut to[1]);
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
    unsafe fn add<F: Codes>(&self, b: usize, dots: &[Matrix; 2], metas: *const Meta, sums: &mut [__m512; TOKEN_TILE]) {
        let start = _mm512_set1_ps(START);
        let row = |half: usize| b * F::HALVES + half.min(F::HALVES - 1);
        // SAFETY: as promised by the caller; 16 tokens have metas and sums.
        unsafe {
            let dot = |half: usize, token: usize| {
                let bits = _mm512_load_ps(dots[half].0[token].as_ptr().cast());
                _mm512_sub_ps(bits, start)
            };
            let scales = [0, 1].map(|half| _mm512_load_ps(self.scales.scale(row(half)).as_ptr()));
            let mins = [0, 1].map(|half| match F::MINS {
                true => _mm512_load_ps(self.scales.min(row(half)).as_ptr()),
                false => scales[half],
            });
            unroll!(I < TOKEN_TILE {
                let meta = &*metas.add(I);
                sums[I] = match F::HALVES {
                    1 => add::<F>(sums[I], dot(0, I), scales[0], mins[0], meta),
                    _ => add_halves::<F>(sums[I], [dot(0, I), dot(1, I)], scales, mins, meta),
                };
            });
        }
    }

    /// Adds the unit to the sums of all tiles of tokens.
    ///
    /// # Safety
    /// As for [`together`]; the unit's scales are written.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    #[inline]
    unsafe fn run<F: Codes>(&self, rows: usize, ring: &mut Ring, sums: &mut [[[__m512; TOKEN_TILE]; PANEL_TILES]]) {
        // SAFETY: as promised by the caller.
        unsafe {
            self.begin::<F, 0>(0, ring);
            self.begin::<F, 1>(1, ring);
            if F::UNIT_BLOCKS == 1 {
                for (tile, (p, sums)) in self.passes.iter().zip(sums).enumerate() {
                    match tile % 2 {
                        0 => self.begin::<F, 0>(tile + LAG, ring),
                        _ => self.begin::<F, 1>(tile + LAG, ring),
                    }
                    self.add::<F>(0, &ring[tile % RING], p.block(self.first).1, &mut sums[rows]);
                }
                return;
            }
            for (tile, (p, sums)) in self.passes.iter().zip(sums).enumerate() {
                let mut tokens = sums[rows]; // a copy stays in registers
                for b in (0..F::UNIT_BLOCKS).step_by(LAG) {
                    let i = tile * F::UNIT_BLOCKS + b;
                    self.begin::<F, 0>(i + LAG, ring);
                    self.add::<F>(b, &ring[i % RING], p.block(self.first + b).1, &mut tokens);
                    self.begin::<F, 1>(i + 1 + LAG, ring);
                    self.add::<F>(b + 1, &ring[(i + 1) % RING], p.block(self.first + b + 1).1, &mut tokens);
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
unsafe fn together<F: Codes, const T: usize>(passes: &[Pass]) {
    let mut scales = [const { Scales::new() }; PANEL_TILES];
    let mut codes = Unpacked([[0; CODES]; MOST_BLOCKS]);
    let mut ring = [[Matrix([[0; TILE_ROWS]; TOKEN_TILE]); 2]; RING];
    // SAFETY: the level has the registers. Units, tiles and blocks stay in the panel, tokens in their tiles; prefetches may
    // leave it.
    unsafe {
        let _configured = const { &shapes(F::HALVES) }.configure();
        let mut sums = [[[_mm512_setzero_ps(); TOKEN_TILE]; PANEL_TILES]; T];
        let (sums, mut marked) = (&mut sums[..passes.len()], Marked::new(passes));
        let mut unit = passes[0].w;
        for u in 0..passes[0].units {
            let mut w = unit;
            for (rows, scales) in scales.iter_mut().enumerate() {
                F::scales::<Avx512Lanes>(w, scales);
                unpack::<F>(passes[0].ahead, w, &mut codes);
                let unit = Unit { codes: &codes, scales, passes, first: u * F::UNIT_BLOCKS };
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
pub(super) unsafe fn some<F: Codes, const T: usize>(passes: &[Pass]) {
    // SAFETY: as promised by the caller.
    unsafe {
        match passes.len() {
            1 => together::<F, 1>(passes),
            _ => together::<F, T>(passes),
        }
    }
}
