//! [`ByteLanes`] as four 128-bit registers: rows 0..4, 4..8, 8..12 and 12..16.

use super::super::neon::Neon;
use super::ByteLanes;
use std::arch::aarch64::*;

/// An expression for each of the four registers. A macro because a closure would not inherit "always inline".
macro_rules! four {
    ($i:ident => $e:expr) => {{
        macro_rules! at {
            ($n:literal) => {{
                const $i: usize = $n;
                $e
            }};
        }
        [at!(0), at!(1), at!(2), at!(3)]
    }};
}

// SAFETY of every block: the trait's contract gives the memory, every AArch64 processor the instructions.
impl ByteLanes for Neon {
    type Bytes = [uint8x16_t; 4];
    type Registers = [float32x4_t; 4];

    #[inline(always)]
    fn from_registers(registers: [float32x4_t; 4]) -> Self {
        Neon(registers)
    }
    #[inline(always)]
    fn registers(self) -> [float32x4_t; 4] {
        self.0
    }
    #[inline(always)]
    unsafe fn load_bytes(p: *const u8) -> [uint8x16_t; 4] {
        unsafe { four!(I => vld1q_u8(p.add(16 * I))) }
    }
    #[inline(always)]
    unsafe fn store_bytes(p: *mut u8, v: [uint8x16_t; 4]) {
        unsafe { four!(I => vst1q_u8(p.add(16 * I), v[I])) };
    }
    #[inline(always)]
    unsafe fn words(rows: &[*const u8; 16], at: usize) -> [[uint8x16_t; 4]; 4] {
        unsafe {
            let by_rows = four!(I => {
                let row = |r: usize| vreinterpretq_u32_u8(vld1q_u8(rows[4 * I + r].add(at)));
                let (r0, r1, r2, r3) = (row(0), row(1), row(2), row(3));
                let wide = |v: uint32x4_t| vreinterpretq_u64_u32(v);
                let (a, b) = (wide(vtrn1q_u32(r0, r1)), wide(vtrn2q_u32(r0, r1)));
                let (c, d) = (wide(vtrn1q_u32(r2, r3)), wide(vtrn2q_u32(r2, r3)));
                [
                    vreinterpretq_u8_u64(vtrn1q_u64(a, c)),
                    vreinterpretq_u8_u64(vtrn1q_u64(b, d)),
                    vreinterpretq_u8_u64(vtrn2q_u64(a, c)),
                    vreinterpretq_u8_u64(vtrn2q_u64(b, d)),
                ]
            });
            let word = |j: usize| [by_rows[0][j], by_rows[1][j], by_rows[2][j], by_rows[3][j]];
            [word(0), word(1), word(2), word(3)]
        }
    }
    #[inline(always)]
    unsafe fn flip(v: [uint8x16_t; 4]) -> [uint8x16_t; 4] {
        unsafe { four!(I => veorq_u8(v[I], vdupq_n_u8(0x80))) }
    }
    #[inline(always)]
    unsafe fn field(v: [uint8x16_t; 4], from: u32, width: u32, to: u32) -> [uint8x16_t; 4] {
        unsafe {
            // a shift by constants: LLVM makes `ushr` of the negative ones and drops a mask that changes nothing
            let (count, mask) = (vdupq_n_s8(to as i8 - from as i8), vdupq_n_u8((((1u32 << width) - 1) << to) as u8));
            four!(I => vandq_u8(vshlq_u8(v[I], count), mask))
        }
    }
    #[inline(always)]
    unsafe fn or_bytes(a: [uint8x16_t; 4], b: [uint8x16_t; 4]) -> [uint8x16_t; 4] {
        unsafe { four!(I => vorrq_u8(a[I], b[I])) }
    }
    #[inline(always)]
    unsafe fn lookup(table: &[u8; 16], v: [uint8x16_t; 4]) -> [uint8x16_t; 4] {
        unsafe {
            let table = vld1q_u8(table.as_ptr());
            four!(I => vqtbl1q_u8(table, v[I]))
        }
    }
    #[inline(always)]
    unsafe fn byte(v: [uint8x16_t; 4], i: usize) -> Self {
        unsafe {
            let (count, mask) = (vdupq_n_s32(-8 * i as i32), vdupq_n_u32(255));
            Neon(four!(I => vcvtq_f32_u32(vandq_u32(vshlq_u32(vreinterpretq_u32_u8(v[I]), count), mask))))
        }
    }
    #[inline(always)]
    unsafe fn bf16(v: [uint8x16_t; 4], i: usize) -> Self {
        unsafe {
            Neon(four!(I => {
                let pair = vreinterpretq_u32_u8(v[I]);
                vreinterpretq_f32_u32(match i {
                    0 => vshlq_n_u32::<16>(pair),
                    _ => vandq_u32(pair, vdupq_n_u32(0xffff_0000)),
                })
            }))
        }
    }
    #[inline(always)]
    unsafe fn load_f16_in_order(p: *const u8) -> Self {
        unsafe { Neon(four!(I => vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(p.add(8 * I)))))) }
    }
    #[inline(always)]
    unsafe fn load_in_order(p: *const f32) -> Self {
        unsafe { Neon(four!(I => vld1q_f32(p.add(4 * I)))) }
    }
}
