//! Products of AMX's matrix registers, four matrices of sums in turn, which is what keeps their unit busy.

use crate::amx::Shapes;
use std::arch::asm;

/// Operations of a round: 16 tokens, 32 numbers and 16 rows a product.
pub(super) const ROUND_OPS: u64 = 4 * 16 * 32 * 16 * 2;

/// A loop of the product `$product`; tokens have rows of `$bytes` bytes, and there are a quarter as many rows of weights.
macro_rules! products {
    ($name:ident, $product:literal, $bytes:literal) => {
        /// # Safety
        /// The system grants AMX.
        pub(super) unsafe fn $name(rounds: u64) -> u64 {
            const SUMS: (usize, usize) = (16, 64);
            const TOKENS: (usize, usize) = (16, $bytes);
            const ROWS: (usize, usize) = ($bytes / 4, 64);
            const SHAPES: Shapes = Shapes::new([SUMS, SUMS, SUMS, SUMS, TOKENS, ROWS, ROWS, ROWS]);
            // SAFETY: granted. Registers only. Configured, all are zero.
            unsafe {
                let _configured = SHAPES.configure();
                for _ in 0..rounds {
                    asm!(
                        concat!($product, " tmm0, tmm4, tmm5"),
                        concat!($product, " tmm1, tmm4, tmm5"),
                        concat!($product, " tmm2, tmm4, tmm5"),
                        concat!($product, " tmm3, tmm4, tmm5"),
                        options(nomem, nostack, preserves_flags)
                    );
                }
            }
            rounds
        }
    };
}

products!(bytes, "tdpbssd", 32);
products!(bf16, "tdpbf16ps", 64);
