//! [`RowLanes`] in plain Rust.

use super::RowLanes;
use half::f16;
use std::array::from_fn;

/// Arrays; any CPU.
pub(crate) struct PortableLanes;

impl RowLanes for PortableLanes {
    type I = [u8; 64];
    type F = [f32; 16];

    #[inline(always)]
    unsafe fn load(p: *const u8) -> [u8; 64] {
        // SAFETY: `RowLanes::load` is promised 64 readable bytes; `row_lanes::launch` or `Dispatch::new` has checked the
        // level.
        unsafe { p.cast::<[u8; 64]>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn put(p: *mut u8, v: [u8; 64]) {
        // SAFETY: `RowLanes::put` is promised 64 writable bytes; `row_lanes::launch` or `Dispatch::new` has checked the
        // level.
        unsafe { p.cast::<[u8; 64]>().write_unaligned(v) }
    }
    #[inline(always)]
    unsafe fn words(rows: &[*const u8; 16], at: usize) -> [[u8; 64]; 4] {
        // SAFETY: `RowLanes::words` is promised 16 readable bytes of each row; `row_lanes::launch` or `Dispatch::new` has
        // checked the level.
        let rows = rows.map(|row| unsafe { row.add(at).cast::<[u8; 16]>().read_unaligned() });
        from_fn(|j| from_fn(|i| rows[i / 4][4 * j + i % 4]))
    }
    #[inline(always)]
    unsafe fn flip(v: [u8; 64]) -> [u8; 64] {
        v.map(|b| b ^ 0x80)
    }
    #[inline(always)]
    unsafe fn field(v: [u8; 64], from: u32, width: u32, to: u32) -> [u8; 64] {
        v.map(|b| (b >> from & (1u8 << width).wrapping_sub(1)) << to)
    }
    #[inline(always)]
    unsafe fn or(a: [u8; 64], b: [u8; 64]) -> [u8; 64] {
        from_fn(|i| a[i] | b[i])
    }
    #[inline(always)]
    unsafe fn lookup(table: &[u8; 16], v: [u8; 64]) -> [u8; 64] {
        v.map(|b| table[(b & 15) as usize])
    }
    #[inline(always)]
    unsafe fn byte(v: [u8; 64], i: usize) -> [f32; 16] {
        from_fn(|r| v[4 * r + i] as f32)
    }
    #[inline(always)]
    unsafe fn bf16(v: [u8; 64], i: usize) -> [f32; 16] {
        from_fn(|r| half::bf16::from_le_bytes([v[4 * r + 2 * i], v[4 * r + 2 * i + 1]]).to_f32())
    }
    #[inline(always)]
    unsafe fn f16(p: *const u8) -> [f32; 16] {
        // SAFETY: `RowLanes::f16` is promised 32 readable bytes; `row_lanes::launch` or `Dispatch::new` has checked the
        // level.
        let b = unsafe { p.cast::<[[u8; 2]; 16]>().read_unaligned() };
        b.map(|h| f16::from_le_bytes(h).to_f32())
    }
    #[inline(always)]
    unsafe fn i8(p: *const u8) -> [f32; 16] {
        // SAFETY: `RowLanes::i8` is promised 16 readable bytes; `row_lanes::launch` or `Dispatch::new` has checked the
        // level.
        unsafe { p.cast::<[i8; 16]>().read_unaligned() }.map(f32::from)
    }
    #[inline(always)]
    unsafe fn floats(p: *const f32) -> [f32; 16] {
        // SAFETY: `RowLanes::floats` is promised 64 readable bytes; `row_lanes::launch` or `Dispatch::new` has checked the
        // level.
        unsafe { p.cast::<[f32; 16]>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store(p: *mut f32, v: [f32; 16]) {
        // SAFETY: `RowLanes::store` is promised 64 writable bytes; `row_lanes::launch` or `Dispatch::new` has checked the
        // level.
        unsafe { p.cast::<[f32; 16]>().write_unaligned(v) }
    }
    #[inline(always)]
    unsafe fn splat(x: f32) -> [f32; 16] {
        [x; 16]
    }
    #[inline(always)]
    unsafe fn sub(a: [f32; 16], b: [f32; 16]) -> [f32; 16] {
        from_fn(|r| a[r] - b[r])
    }
    #[inline(always)]
    unsafe fn mul(a: [f32; 16], b: [f32; 16]) -> [f32; 16] {
        from_fn(|r| a[r] * b[r])
    }
    #[inline(always)]
    unsafe fn fma(a: [f32; 16], b: [f32; 16], c: [f32; 16]) -> [f32; 16] {
        from_fn(|r| a[r].mul_add(b[r], c[r]))
    }
}
