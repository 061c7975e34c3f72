//! The text form of kernels: an instruction a line, bodies in braces. Printing and parsing round-trip exactly.
//!
//! ```text
//! kernel double threads 64 {
//! buffer b0 u32 read own sizes
//! buffer b1 f32 read_write pooled x
//! shared s0 f32 64
//! r0: u32 = thread
//! r1: u32 = load b0 r0
//! r2: u32 = const 64
//! r3: f32 = const 0x00000000
//! var v0: f32 = r3
//! loop r4 from r0 to r1 step r2 {
//!  r5: f32 = load b1 r4
//!  r6: f32 = add r5 r5
//!  set v0 r6
//!  store b1 r4 r6
//! }
//! barrier
//! }
//! ```
//!
//! A float's constant is its bits. The numbers of buffers, arrays, variables and registers are those in the kernel; each
//! register is computed where its type stands.

mod parse;
mod print;

pub use parse::{KernelTextError, parse};
pub(crate) use print::InstructionLine;
pub use print::print;
