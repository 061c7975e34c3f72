//! [`ByteLanes`] in plain Rust.

use super::super::plain::Plain;
use super::ByteLanes;
use half::f16;
use std::array::from_fn;

impl ByteLanes for Plain {
    type Bytes = [u8; 64];
    type Registers = [f32; 16];

    #[inline(always)]
    fn from_registers(values: [f32; 16]) -> Self {
        Plain(values)
    }
    #[inline(always)]
    fn registers(self) -> [f32; 16] {
        self.0
    }
    #[inline(always)]
    unsafe fn load_bytes(p: *const u8) -> [u8; 64] {
        // SAFETY: `ByteLanes::load_bytes` is promised 64 readable bytes; `launch` or `Dispatch::new` has checked the
        // level.
        unsafe { p.cast::<[u8; 64]>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store_bytes(p: *mut u8, v: [u8; 64]) {
        // SAFETY: `ByteLanes::store_bytes` is promised 64 writable bytes; `launch` or `Dispatch::new` has checked the
        // level.
        unsafe { p.cast::<[u8; 64]>().write_unaligned(v) }
    }
    #[inline(always)]
    unsafe fn words(rows: &[*const u8; 16], at: usize) -> [[u8; 64]; 4] {
        // SAFETY: `ByteLanes::words` is promised 16 readable bytes of each row; `launch` or `Dispatch::new` has
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
    unsafe fn or_bytes(a: [u8; 64], b: [u8; 64]) -> [u8; 64] {
        from_fn(|i| a[i] | b[i])
    }
    #[inline(always)]
    unsafe fn lookup(table: &[u8; 16], v: [u8; 64]) -> [u8; 64] {
        v.map(|b| table[(b & 15) as usize])
    }
    #[inline(always)]
    unsafe fn byte(v: [u8; 64], i: usize) -> Self {
        Plain(from_fn(|r| v[4 * r + i] as f32))
    }
    #[inline(always)]
    unsafe fn bf16(v: [u8; 64], i: usize) -> Self {
        Plain(from_fn(|r| half::bf16::from_le_bytes([v[4 * r + 2 * i], v[4 * r + 2 * i + 1]]).to_f32()))
    }
    #[inline(always)]
    unsafe fn load_f16_in_order(p: *const u8) -> Self {
        // SAFETY: `ByteLanes::load_f16_in_order` is promised 32 readable bytes; `launch` or `Dispatch::new` has checked the
        // level.
        let b = unsafe { p.cast::<[[u8; 2]; 16]>().read_unaligned() };
        Plain(b.map(|h| f16::from_le_bytes(h).to_f32()))
    }
    #[inline(always)]
    unsafe fn load_in_order(p: *const f32) -> Self {
        // SAFETY: `ByteLanes::load_in_order` is promised 64 readable bytes; `launch` or `Dispatch::new` has checked the
        // level.
        Plain(unsafe { p.cast::<[f32; 16]>().read_unaligned() })
    }
}
