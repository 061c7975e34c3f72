//! Which processor it is, as its maker numbers them.

/// A processor's maker, family and model.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ProcessorId {
    /// The maker, as the processor spells it.
    pub(crate) vendor: String,
    /// Its family, with the extended part.
    pub(crate) family: u32,
    /// Its model, with the extended part.
    pub(crate) model: u32,
}

impl ProcessorId {
    /// This processor's, where it tells.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn here() -> Option<ProcessorId> {
        use std::arch::x86_64::__cpuid;
        let (first, second) = (__cpuid(0), __cpuid(1));
        let vendor = [first.ebx, first.edx, first.ecx].map(u32::to_le_bytes).concat();
        Some(ProcessorId::of(String::from_utf8(vendor).ok()?, second.eax))
    }

    /// Processors of other architectures do not tell without asking the system.
    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) fn here() -> Option<ProcessorId> {
        None
    }

    /// From the word in which a processor tells family and model.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    fn of(vendor: String, word: u32) -> ProcessorId {
        let (base, low) = (word >> 8 & 0xf, word >> 4 & 0xf);
        let family = if base == 0xf { base + (word >> 20 & 0xff) } else { base };
        let model = if base == 0xf || base == 6 { (word >> 16 & 0xf) << 4 | low } else { low };
        ProcessorId { vendor, family, model }
    }
}

#[cfg(test)]
mod tests {
    use super::ProcessorId;

    #[test]
    fn extended_parts_count() {
        let of = |word| {
            let id = ProcessorId::of(String::new(), word);
            (id.family, id.model)
        };
        // an EPYC of Zen 4, a Xeon of Sapphire Rapids, a Pentium
        assert_eq!([of(0x00a1_0f11), of(0x0008_06f8), of(0x0000_052c)], [(0x19, 0x11), (6, 0x8f), (5, 2)]);
    }
}
