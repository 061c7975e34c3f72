//! The matrix registers of AMX: whether the system grants them, and their shapes.
//!
//! Rust has no stable intrinsics for them, so that whoever computes with them writes assembly. The compiler itself never
//! uses one: what assembly leaves in them stays there until [`Configured`] is dropped.

use std::arch::asm;
use std::arch::x86_64::{__cpuid_count, __get_cpuid_max};
use std::marker::PhantomData;
use std::sync::LazyLock;

/// Matrix registers.
pub const REGISTERS: usize = 8;
/// Most rows of one.
pub const ROWS: usize = 16;
/// Most bytes of a row.
pub const ROW_BYTES: usize = 64;

/// Whether this processor multiplies matrices of bytes and of bf16 numbers, and the system lets this process do so. Asked
/// for once: Linux grants it to a whole process (Documentation/arch/x86/xstate.rst).
pub fn is_granted() -> bool {
    static GRANTED: LazyLock<bool> = LazyLock::new(|| is_there() && ask());
    *GRANTED
}

/// Leaf 7: `AMX-BF16`, `AMX-TILE` and `AMX-INT8` (Intel SDM, volume 2A, CPUID).
fn is_there() -> bool {
    const EDX: u32 = 1 << 22 | 1 << 24 | 1 << 25;
    __get_cpuid_max(0).0 >= 7 && __cpuid_count(7, 0).edx & EDX == EDX
}

/// Asks for the 8 KiB that the system must keep of each thread.
#[cfg(target_os = "linux")]
fn ask() -> bool {
    const ARCH_REQ_XCOMP_PERM: libc::c_long = 0x1023;
    const XFEATURE_XTILEDATA: libc::c_long = 18;
    // SAFETY: takes two numbers and touches no memory of this process.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0 }
}

#[cfg(not(target_os = "linux"))]
fn ask() -> bool {
    false // nobody has tried how other systems grant it
}

/// Rows and bytes of a row of each matrix register: the operand of `ldtilecfg`.
#[repr(C, align(64))]
pub struct Shapes {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    row_bytes: [u16; 16],
    rows: [u8; 16],
}

// What the instruction reads: 64 bytes, of the one palette that there is.
const _: () = {
    let shapes = Shapes::new([(ROWS, ROW_BYTES); REGISTERS]);
    assert!(size_of::<Shapes>() == 64 && shapes.palette == 1 && shapes.rows[7] == 16 && shapes.row_bytes[0] == 64);
};

impl Shapes {
    /// `(rows, bytes of a row)` of each register.
    ///
    /// # Panics
    /// When a register has no row, more rows or longer ones than there are, or cut 32-bit numbers.
    pub const fn new(registers: [(usize, usize); REGISTERS]) -> Shapes {
        let mut shapes = Shapes { palette: 1, start_row: 0, reserved: [0; 14], row_bytes: [0; 16], rows: [0; 16] };
        let mut i = 0;
        while i < REGISTERS {
            let (rows, bytes) = registers[i];
            assert!(rows > 0 && rows <= ROWS && bytes > 0 && bytes <= ROW_BYTES && bytes.is_multiple_of(4));
            (shapes.rows[i], shapes.row_bytes[i]) = (rows as u8, bytes as u16);
            i += 1;
        }
        shapes
    }

    /// Gives this thread's registers these shapes.
    ///
    /// # Safety
    /// [`is_granted`].
    pub unsafe fn configure(&self) -> Configured {
        // SAFETY: `Shapes::new` made shapes that the instruction takes; `Shapes::configure` is promised registers that
        // `is_granted` has found.
        unsafe { asm!("ldtilecfg [{}]", in(reg) self, options(nostack, readonly, preserves_flags)) };
        Configured(PhantomData)
    }
}

/// This thread's matrix registers have shapes. Dropped, they are free again, and the system has nothing of them to keep.
pub struct Configured(PhantomData<*const ()>); // of this thread

impl Drop for Configured {
    fn drop(&mut self) {
        // SAFETY: who configured them has them.
        unsafe { asm!("tilerelease", options(nomem, nostack, preserves_flags)) };
    }
}
