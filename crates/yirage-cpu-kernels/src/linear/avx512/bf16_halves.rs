//! One token times BF16 weights to the bytes of `tdpbf16ps`, without it: memory gives a fifth less to loads of matrix
//! registers than to those of vectors (28 and 34 GB/s measured), and one token waits for memory alone.

use crate::linear::pass::PanelPass;
use crate::linear::variant::MOST_PANELS;
use crate::pack::{BLOCK, PANEL_TILES, PackedBf16, TILE_ROWS, TileFormat};
use crate::simd::{Avx512, ByteLanes as _};
use std::arch::asm;
use std::arch::x86_64::{_mm512_set1_epi32, _mm512_setzero_si512};
use std::mem::offset_of;

/// Subnormal factors and results count as zero, as in `tdpbf16ps` (bits 6 and 15 of MXCSR).
const NO_SUBNORMALS: u32 = 1 << 6 | 1 << 15;
/// MXCSR as every program begins.
const USUAL: u32 = 0x1f80;

/// Bytes of the four tiles' units for the same 32 numbers.
const STEP: usize = PANEL_TILES * PackedBf16::UNIT_BYTES;

// What the assembly takes for granted.
const _: () = assert!(PackedBf16::UNIT_BYTES == 1024 && BLOCK == 32);

/// The sums of rows: of each tile those of the panels in turns.
#[repr(C, align(64))]
struct HalvesAccumulators([[f32; TILE_ROWS]; PANEL_TILES * MOST_PANELS]);

/// What the assembly reads, which has no registers for it.
struct HalvesAsmArgs {
    /// MXCSR while it computes.
    without: u32,
    /// MXCSR behind it.
    with: u32,
    /// Bytes of the sums, negative.
    sums: isize,
    panels: usize,
    /// From a tile to the same of the next panel.
    next: usize,
    /// From that behind the last panel back to the next tile.
    back: usize,
    /// From a token's numbers to those of the next unit.
    numbers: usize,
}

/// One pass for one token and up to [`MOST_PANELS`] panels, whose tiles it takes in turns.
///
/// # Safety
/// As for [`crate::linear::pass::PassFn`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(super) unsafe fn one(p: &PanelPass) {
    let mut sums = HalvesAccumulators([[0.0; TILE_ROWS]; PANEL_TILES * MOST_PANELS]);
    // What the first units ask for is their panel's; what the others ask for is behind all panels of the pass.
    let first = p.units.saturating_sub(p.ahead.div_ceil(STEP)).max(1);
    // SAFETY: what `one` is promised; there is a unit; `linear` has checked panels and tokens, `Dispatch::new` the
    // level.
    unsafe {
        some(p, 0, first, &mut sums);
        if first < p.units {
            some(p, first, p.units - first, &mut sums);
        }
        for (i, sums) in sums.0[..PANEL_TILES * p.panels].iter().enumerate() {
            let tile = i % p.panels * PANEL_TILES + i / p.panels;
            p.put::<Avx512>(tile, 0, Avx512::load_in_order(sums.as_ptr()).registers());
        }
    }
}

/// Adds `count` units from unit `first` on. Assembly from beginning to end, since the compiler may move nothing into a part
/// without subnormal numbers, nor out of it.
///
/// # Safety
/// As for [`one`]; the units exist, and `count` is not 0.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn some(p: &PanelPass, first: usize, count: usize, sums: &mut HalvesAccumulators) {
    let tiles = PANEL_TILES * p.panels;
    let steps = HalvesAsmArgs {
        without: USUAL | NO_SUBNORMALS,
        with: USUAL,
        sums: -((tiles * size_of::<[f32; TILE_ROWS]>()) as isize),
        panels: p.panels,
        next: p.next,
        back: (p.panels * p.next).wrapping_sub(PackedBf16::UNIT_BYTES),
        numbers: p.stride * 2 * BLOCK,
    };
    let (high, zero) = (_mm512_set1_epi32(0xffff_0000_u32 as i32), _mm512_setzero_si512());
    macro_rules! unit {
        ($($at:literal $pair:literal)*) => {
            asm!(
                "ldmxcsr dword ptr [{steps} + {without}]",
                "2:",
                "mov {tile}, qword ptr [{steps} + {all_sums}]",
                "3:",
                "mov {panels}, qword ptr [{steps} + {all_panels}]",
                "4:",
                "vpxord {first}, {first}, {first}",
                "vpxord {second}, {second}, {second}",
                $(
                    concat!("prefetcht0 byte ptr [{w} + {ahead} + ", $at, "]"),
                    concat!("vmovdqu32 {c}, zmmword ptr [{w} + ", $at, "]"),
                    "vpslld {a}, {c}, 16",
                    concat!("vpslld {b}, dword ptr [{x} + ", $pair, "]{{1to16}}, 16"),
                    "vpandd {c}, {c}, {high}",
                    concat!("vpandd {d}, {high}, dword ptr [{x} + ", $pair, "]{{1to16}}"),
                    "vfmadd231ps {first}, {a}, {b}",
                    "vfmadd231ps {second}, {c}, {d}",
                )*
                "vaddps {first}, {first}, {second}",
                "vaddps {first}, {first}, zmmword ptr [{sums} + {tile}]",
                "vmovaps zmmword ptr [{sums} + {tile}], {first}",
                "add {w}, qword ptr [{steps} + {next}]",
                "add {tile}, 64",
                "dec {panels}",
                "jnz 4b",
                "sub {w}, qword ptr [{steps} + {back}]",
                "test {tile}, {tile}",
                "jnz 3b",
                "add {x}, qword ptr [{steps} + {numbers}]",
                "dec {units}",
                "jnz 2b",
                "ldmxcsr dword ptr [{steps} + {with}]",
                without = const offset_of!(HalvesAsmArgs, without), with = const offset_of!(HalvesAsmArgs, with),
                all_sums = const offset_of!(HalvesAsmArgs, sums), all_panels = const offset_of!(HalvesAsmArgs, panels),
                next = const offset_of!(HalvesAsmArgs, next), back = const offset_of!(HalvesAsmArgs, back),
                numbers = const offset_of!(HalvesAsmArgs, numbers), steps = in(reg) &raw const steps,
                tile = out(reg) _, panels = out(reg) _, w = inout(reg) p.w.add(first * STEP) => _,
                x = inout(reg) p.x.add(first * steps.numbers) => _, units = inout(reg) count => _,
                ahead = in(reg) p.ahead_of(first * STEP),
                sums = in(reg) sums.0.as_mut_ptr().add(tiles), high = in(zmm_reg) high,
                first = inout(zmm_reg) zero => _, second = out(zmm_reg) _, a = out(zmm_reg) _, b = out(zmm_reg) _,
                c = out(zmm_reg) _, d = out(zmm_reg) _, options(nostack))
        };
    }
    // SAFETY: units and tiles stay in their panel, the pairs in the token's numbers, sums in theirs; prefetches may leave the
    // panel. MXCSR is what it was, as long as it was what Rust takes for granted.
    unsafe {
        unit!(0 0 64 4 128 8 192 12 256 16 320 20 384 24 448 28 512 32 576 36 640 40 704 44 768 48 832 52 896 56 960 60);
    }
}
