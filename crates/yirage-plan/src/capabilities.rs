//! What kernels on a device can compute with, as twelve facts.
//!
//! A backend derives them from its hardware: the CPU from its instruction set, the others from a table by architecture.
//! They say what can pay there; the search of the compiler and defaults of engines go by them. Which kernels exist is what
//! [`Target::kernels`](crate::Target::kernels) says. Knows no vendor.

/// Twelve facts about a device. What is not known to be there counts as absent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct KernelCapabilities {
    /// Arithmetic of 32-bit floats.
    pub fp32: bool,
    /// Products of f16 numbers by instructions of their own, not widened.
    pub fp16: bool,
    /// Products of bf16 numbers by instructions of their own.
    pub bf16: bool,
    /// Products of 8-bit floats by instructions of their own.
    pub fp8: bool,
    /// Products of 8-bit integers by instructions of their own.
    pub int8: bool,
    /// Products of 4-bit codes, which may become bytes in registers.
    pub int4: bool,
    /// Products that skip two of each four weights.
    pub sparse_2_4: bool,
    /// Attention in one pass over keys and values, without a matrix of scores in memory.
    pub flash_attention: bool,
    /// Attention over blocks that need not be neighbours.
    pub paged_attention: bool,
    /// The experts of a mixture in one kernel.
    pub fused_moe: bool,
    /// A library of collectives with NCCL's interface.
    pub nccl: bool,
    /// A library of collectives with HCCL's interface.
    pub hccl: bool,
}

impl KernelCapabilities {
    /// A device of which nothing is known but that it computes.
    pub const LEAST: KernelCapabilities = KernelCapabilities {
        fp32: true,
        fp16: false,
        bf16: false,
        fp8: false,
        int8: false,
        int4: false,
        sparse_2_4: false,
        flash_attention: false,
        paged_attention: false,
        fused_moe: false,
        nccl: false,
        hccl: false,
    };

    /// Every fact with its name, in the order of the fields.
    pub fn flags(&self) -> [(&'static str, bool); 12] {
        [
            ("fp32", self.fp32),
            ("fp16", self.fp16),
            ("bf16", self.bf16),
            ("fp8", self.fp8),
            ("int8", self.int8),
            ("int4", self.int4),
            ("sparse_2_4", self.sparse_2_4),
            ("flash_attention", self.flash_attention),
            ("paged_attention", self.paged_attention),
            ("fused_moe", self.fused_moe),
            ("nccl", self.nccl),
            ("hccl", self.hccl),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twelve_facts_have_names_of_their_own() {
        let flags = KernelCapabilities::LEAST.flags();
        let names: std::collections::BTreeSet<_> = flags.iter().map(|(name, _)| name).collect();
        assert_eq!((flags.len(), names.len()), (12, 12));
        let there: Vec<_> = flags.iter().filter(|(_, there)| *there).map(|(name, _)| *name).collect();
        assert_eq!(there, ["fp32"]);
        assert!(KernelCapabilities::default().flags().iter().all(|(_, there)| !there));
    }
}
