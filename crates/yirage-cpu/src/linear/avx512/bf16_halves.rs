//! One token times BF16 weights to the bytes of `tdpbf16ps`, without it: memory gives a fifth less to loads of matrix
//! registers than to those of vectors (28 and 34 GB/s measured), and one token waits for memory alone.

use crate::linear::lanes::{Avx512Lanes, Lanes};
use crate::linear::pass::Pass;
use crate::pack::{BF16, BLOCK, PANEL_TILES, TILE_ROWS, Tile};
use std::arch::asm;
use std::arch::x86_64::{_mm512_set1_epi32, _mm512_setzero_si512};

/// Subnormal factors and results count as zero, as in `tdpbf16ps` (bits 6 and 15 of MXCSR).
const NO_SUBNORMALS: u32 = 1 << 6 | 1 << 15;
/// MXCSR as every program begins.
const USUAL: u32 = 0x1f80;

// What the assembly takes for granted.
const _: () = assert!(BF16::UNIT_BYTES == 1024 && PANEL_TILES == 4 && BLOCK == 32);

/// The sums of a panel's rows.
#[repr(C, align(64))]
struct Sums([[f32; TILE_ROWS]; PANEL_TILES]);

/// One pass for one token. Assembly from beginning to end, since the compiler may move nothing into a part without
/// subnormal numbers, nor out of it.
///
/// # Safety
/// As for [`crate::linear::pass::PassFn`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(super) unsafe fn one(p: &Pass) {
    let mut sums = Sums([[0.0; TILE_ROWS]; PANEL_TILES]);
    static WITHOUT: u32 = USUAL | NO_SUBNORMALS;
    static WITH: u32 = USUAL;
    let step = p.stride * 2 * BLOCK;
    let (high, zero) = (_mm512_set1_epi32(0xffff_0000_u32 as i32), _mm512_setzero_si512());
    macro_rules! unit {
        ($($at:literal $pair:literal)*) => {
            asm!(
                "ldmxcsr dword ptr [{without}]",
                "2:",
                "mov {tile}, -256",
                "3:",
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
                "add {w}, 1024",
                "add {tile}, 64",
                "jnz 3b",
                "add {x}, {step}",
                "dec {units}",
                "jnz 2b",
                "ldmxcsr dword ptr [{with}]",
                without = in(reg) &raw const WITHOUT, with = in(reg) &raw const WITH,
                tile = out(reg) _, w = inout(reg) p.w => _, x = inout(reg) p.x => _, step = in(reg) step,
                units = inout(reg) p.units => _, ahead = in(reg) p.ahead,
                sums = in(reg) (&raw mut sums.0).wrapping_add(1), high = in(zmm_reg) high,
                first = inout(zmm_reg) zero => _, second = out(zmm_reg) _, a = out(zmm_reg) _, b = out(zmm_reg) _,
                c = out(zmm_reg) _, d = out(zmm_reg) _, options(nostack))
        };
    }
    // SAFETY: units and tiles stay in the panel, the pairs in the token's numbers, sums in theirs; prefetches may leave the
    // panel. There is a unit. MXCSR is what it was, as long as it was what Rust takes for granted.
    unsafe {
        unit!(0 0 64 4 128 8 192 12 256 16 320 20 384 24 448 28 512 32 576 36 640 40 704 44 768 48 832 52 896 56 960 60);
        for (tile, sums) in sums.0.iter().enumerate() {
            p.put::<Avx512Lanes>(tile, 0, Avx512Lanes::floats(sums.as_ptr()));
        }
    }
}
