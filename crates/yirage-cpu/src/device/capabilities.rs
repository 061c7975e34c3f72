//! What kernels can compute with at each instruction-set level, which is what `cpuid` says.
//!
//! f16 numbers are widened at every level. There are no instructions for 8-bit floats or for weights of which two in four
//! are zero.

use crate::isa::Isa;
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
    use crate::device::Cpu;
    use yirage_hal::Backend;

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

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_flags_are_those_of_cpuid() {
        let c = Cpu.probe().unwrap()[0].capabilities;
        let avx512 = Isa::Avx512.available();
        assert_eq!(c.bf16, avx512 && is_x86_feature_detected!("avx512bf16"));
        assert_eq!(c.int8, Isa::Avx2.available());
    }

    #[test]
    fn the_ten_facts_of_a_device_are_there() {
        let info = Cpu.probe().unwrap().remove(0);
        assert_eq!((info.backend, info.ordinal, info.software), ("cpu", 0, false));
        assert!(!info.name.is_empty() && info.arch.contains('/') && info.cores.is_some_and(|n| n > 0));
        if cfg!(target_os = "linux") {
            assert!(info.total_memory_bytes.is_some_and(|all| Some(all) >= info.memory_bytes), "{info:?}");
            assert!(info.facts.iter().any(|(name, _)| *name == "cgroup"), "{info:?}");
        }
        // A processor has no driver and no libraries above one.
        assert_eq!((info.driver_version, info.sdk_version), (None, None));
    }
}
