//! What kernels can compute with at each instruction-set level, which is what `cpuid` says.
//!
//! f16 numbers are widened at every level. There are no instructions for 8-bit floats or for weights of which two in four
//! are zero.

use yirage_cpu_kernels::isa::Isa;
use yirage_plan::KernelCapabilities;

/// What kernels can compute with at a level.
pub(super) fn capabilities(isa: Isa) -> KernelCapabilities {
    let bytes = isa != Isa::Scalar;
    KernelCapabilities {
        bf16: matches!(isa, Isa::Avx512Bf16 | Isa::Amx | Isa::NeonBf16),
        int8: bytes,
        int4: bytes,
        flash_attention: true,
        paged_attention: true,
        fused_moe: true,
        ..KernelCapabilities::LEAST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_has_its_row() {
        for (isa, bf16, int8) in [
            (Isa::Scalar, false, false),
            (Isa::Avx2, false, true),
            (Isa::AvxVnni, false, true),
            (Isa::Avx512, false, true),
            (Isa::Avx512Bf16, true, true),
            (Isa::Amx, true, true),
            (Isa::Neon, false, true),
            (Isa::NeonI8mm, false, true),
            (Isa::NeonBf16, true, true),
        ] {
            let c = capabilities(isa);
            assert_eq!((c.bf16, c.int8, c.int4), (bf16, int8, int8), "{isa}");
            assert!(c.fp32 && c.paged_attention && !c.fp16 && !c.fp8 && !c.sparse_2_4 && !c.nccl && !c.hccl, "{isa}");
        }
    }
}
