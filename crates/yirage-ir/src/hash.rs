//! A stable hash: the same on every machine, build and run, for equal text forms.

/// 128 bits of FNV-1a (Fowler, Noll and Vo): keys of caches of our own making, not a defence against collisions made
/// on purpose.
pub fn fnv128(bytes: &[u8]) -> u128 {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes.iter().fold(BASIS, |h, &b| (h ^ u128::from(b)).wrapping_mul(PRIME))
}

impl crate::graph::Graph {
    /// The hash of the text form.
    pub fn stable_hash(&self) -> u128 {
        fnv128(crate::text::print(self).as_bytes())
    }
}
