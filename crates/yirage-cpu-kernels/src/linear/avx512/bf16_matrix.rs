//! BF16 weights times bf16 activations by the matrix registers of AMX: 16 tokens times 16 rows and 32 numbers of k in one
//! instruction. Sums stay in the registers from the first unit to the last.
//!
//! `tdpbf16ps` begins two sums at zero, one of the first and one of the second numbers of all pairs in ascending order, each
//! product and addition rounded once; it adds these to each other and that to what is there (Intel SDM, volume 2B).

use crate::activation::TOKEN_TILE;
use crate::amx::Shapes;
use crate::linear::pass::PanelPass;
use crate::pack::{BLOCK, PANEL_TILES, PackedBf16, TILE_ROWS, TileFormat};
use crate::simd::{Avx512, ByteLanes as _};
use std::arch::asm;

/// Bytes of 32 numbers of a token.
const TOKEN_BYTES: usize = 2 * BLOCK;
/// Bytes of the four tiles' units for the same 32 numbers.
const STEP: usize = PANEL_TILES * PackedBf16::UNIT_BYTES;

/// Registers 0 to 3 hold sums, the others tokens or rows, as long as there are full tiles of tokens.
static FULL: Shapes = Shapes::new([(TOKEN_TILE, 64); 8]);

/// The same with so many tokens and one: registers 0 to 3 hold sums, 4 tokens, the others rows.
static FEWER: [Shapes; TOKEN_TILE] = {
    let mut shapes = [const { Shapes::new([(TOKEN_TILE, 64); 8]) }; TOKEN_TILE];
    let mut i = 0;
    while i < TOKEN_TILE {
        let (some, rows) = ((i + 1, 64), (TILE_ROWS, 64));
        shapes[i] = Shapes::new([some, some, some, some, some, rows, rows, rows]);
        i += 1;
    }
    shapes
};

/// Sums of a tile of tokens and a tile of rows: `[token][row]`.
#[repr(C, align(64))]
struct AmxBf16Accumulators([[f32; TILE_ROWS]; TOKEN_TILE]);

/// Asks for `bytes` about `at`.
#[inline(always)]
fn fetch(at: *const u8, bytes: usize) {
    for line in (0..bytes).step_by(64) {
        Avx512::fetch(at.wrapping_add(line));
    }
}

/// Sums begin at zero.
macro_rules! start {
    () => {
        asm!(
            "tilezero tmm0",
            "tilezero tmm1",
            "tilezero tmm2",
            "tilezero tmm3",
            options(nomem, nostack, preserves_flags)
        )
    };
}

/// Writes the sums of register `$c`: those of a tile of rows and the tokens of `$p`.
macro_rules! put {
    ($c:literal, $sums:ident, $p:expr, $tile:expr) => {{
        asm!(concat!("tilestored [{to} + {line}], tmm", $c), to = in(reg) &raw mut $sums.0, line = in(reg) 64usize,
            options(nostack, preserves_flags));
        for (token, sums) in $sums.0[..$p.tokens].iter().enumerate() {
            $p.put::<Avx512>($tile, token, Avx512::load_in_order(sums.as_ptr()).registers());
        }
    }};
}

/// One pass for up to 16 tokens.
///
/// # Safety
/// As for [`crate::linear::pass::PassFn`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
pub(super) unsafe fn any(p: &PanelPass) {
    let mut sums = AmxBf16Accumulators([[0.0; TILE_ROWS]; TOKEN_TILE]);
    // SAFETY: `Isa::require` found the level, so the registers. Units and tiles stay in the panel, tokens in the tile;
    // prefetches may leave it.
    unsafe {
        let _configured = FEWER[p.tokens - 1].configure();
        start!();
        for u in 0..p.units {
            let w = p.w.add(u * STEP);
            if p.ahead > 0 {
                fetch(w.wrapping_add(p.ahead), STEP);
            }
            asm!(
                "tileloadd tmm4, [{x} + {line}]",
                "tileloadd tmm5, [{w} + {line}]",
                "tdpbf16ps tmm0, tmm4, tmm5",
                "tileloadd tmm6, [{w} + {line} + 1024]",
                "tdpbf16ps tmm1, tmm4, tmm6",
                "tileloadd tmm7, [{w} + {line} + 2048]",
                "tdpbf16ps tmm2, tmm4, tmm7",
                "tileloadd tmm5, [{w} + {line} + 3072]",
                "tdpbf16ps tmm3, tmm4, tmm5",
                x = in(reg) p.x.add(u * p.stride * TOKEN_BYTES), w = in(reg) w, line = in(reg) 64usize,
                options(nostack, readonly, preserves_flags));
        }
        put!(0, sums, p, 0);
        put!(1, sums, p, 1);
        put!(2, sums, p, 2);
        put!(3, sums, p, 3);
    }
}

/// One pass for each of some full tiles of tokens that share the panel.
///
/// # Safety
/// As for [`crate::linear::pass::PassFn`], for each of `passes`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
pub(super) unsafe fn together(passes: &[PanelPass]) {
    let (twos, last) = passes.as_chunks::<2>();
    // SAFETY: what `together` is promised; `linear` has checked panels and tokens, `Dispatch::new` the level.
    unsafe {
        for tile in [0, 2] {
            for (i, two) in twos.iter().enumerate() {
                match i {
                    0 => four::<true>(two, tile),
                    _ => four::<false>(two, tile),
                }
            }
        }
        last.iter().for_each(|p| any(p));
    }
}

/// Two tiles of rows and two full tiles of tokens: each is read once for two products. The first tokens that meet the rows
/// ask for those that come later.
///
/// # Safety
/// As for [`together`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
unsafe fn four<const FETCH: bool>([p, q]: &[PanelPass; 2], tile: usize) {
    let mut sums = AmxBf16Accumulators([[0.0; TILE_ROWS]; TOKEN_TILE]);
    // SAFETY: what `four` is promised; `linear` has checked panels and tokens, `Dispatch::new` the level.
    unsafe {
        let _configured = FULL.configure();
        start!();
        for u in 0..p.units {
            let (w, at) = (p.w.add(u * STEP + tile * PackedBf16::UNIT_BYTES), u * p.stride * TOKEN_BYTES);
            if FETCH && p.ahead > 0 {
                fetch(w.wrapping_add(p.ahead), 2 * PackedBf16::UNIT_BYTES);
            }
            asm!(
                "tileloadd tmm4, [{p} + {line}]",
                "tileloadd tmm6, [{w} + {line}]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tileloadd tmm7, [{w} + {line} + 1024]",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tileloadd tmm5, [{q} + {line}]",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tdpbf16ps tmm3, tmm5, tmm7",
                p = in(reg) p.x.add(at), q = in(reg) q.x.add(at), w = in(reg) w, line = in(reg) 64usize,
                options(nostack, readonly, preserves_flags));
        }
        put!(0, sums, p, tile);
        put!(1, sums, p, tile + 1);
        put!(2, sums, q, tile);
        put!(3, sums, q, tile + 1);
    }
}
