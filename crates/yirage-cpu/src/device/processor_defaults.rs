//! How products go on processors that somebody has measured, so that the first start is good before anything is measured.

use crate::machine::ProcessorId;
use std::ops::RangeInclusive;
use yirage_cpu_kernels::isa::Isa;
use yirage_cpu_kernels::linear::MatmulVariant;

/// A processor's choices.
struct ProcessorDefaults {
    name: &'static str,
    vendor: &'static str,
    family: u32,
    models: &'static [RangeInclusive<u32>],
    levels: &'static [Isa],
    /// What differs from [`MatmulVariant::of_level`].
    choices: &'static str,
}

/// Every level's own choices are those of Zen 5 and Zen 3, on which they were measured.
const KNOWN: [ProcessorDefaults; 5] = [
    ProcessorDefaults {
        name: "Zen 3",
        vendor: "AuthenticAMD",
        family: 0x19,
        models: &[0x00..=0x0f, 0x20..=0x5f],
        levels: &[Isa::Avx2],
        choices: "",
    },
    ProcessorDefaults {
        name: "Zen 4",
        vendor: "AuthenticAMD",
        family: 0x19,
        models: &[0x10..=0x1f, 0x60..=0x7f, 0xa0..=0xaf],
        levels: &[Isa::Avx512, Isa::Avx512Bf16],
        choices: "fetch=0,few8=8,many=winograd",
    },
    ProcessorDefaults {
        name: "Zen 5",
        vendor: "AuthenticAMD",
        family: 0x1a,
        models: &[0x00..=0xff],
        levels: &[Isa::Avx512, Isa::Avx512Bf16],
        choices: "",
    },
    ProcessorDefaults {
        name: "Emerald Rapids",
        vendor: "GenuineIntel",
        family: 6,
        models: &[0xcf..=0xcf],
        levels: &[Isa::Amx],
        choices: "fetch=4K,few=15,few8=15,panels=2,group=512K",
    },
    ProcessorDefaults {
        name: "Xeon with AMX",
        vendor: "GenuineIntel",
        family: 6,
        models: &[0x00..=0xce, 0xd0..=0xff],
        levels: &[Isa::Amx],
        choices: "fetch=2K,lone=matrix",
    },
];

/// The choices of a processor at a level, and the name of the processor if it is known.
pub(super) fn choices(isa: Isa, identity: Option<&ProcessorId>) -> (MatmulVariant, Option<&'static str>) {
    let is = |known: &&ProcessorDefaults| {
        identity.is_some_and(|id| {
            known.vendor == id.vendor
                && known.family == id.family
                && known.models.iter().any(|models| models.contains(&id.model))
        }) && known.levels.contains(&isa)
    };
    let generic = MatmulVariant::of_level(isa);
    match KNOWN.iter().find(is) {
        Some(known) => (generic.with(known.choices).unwrap_or(generic), Some(known.name)),
        None => (generic, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_known_by_family_and_model_and_the_rest_has_its_levels_choices() {
        let amd = |family, model| ProcessorId { vendor: "AuthenticAMD".into(), family, model };
        let of = |isa, id: &ProcessorId| choices(isa, Some(id));
        assert_eq!(of(Isa::Avx512Bf16, &amd(0x19, 0x11)).1, Some("Zen 4"));
        assert_eq!(of(Isa::Avx512, &amd(0x19, 0x61)).1, Some("Zen 4"));
        assert_eq!(of(Isa::Avx2, &amd(0x19, 0x01)).1, Some("Zen 3"));
        assert_eq!(of(Isa::Avx512, &amd(0x1a, 0x24)).1, Some("Zen 5"));
        let xeon = ProcessorId { vendor: "GenuineIntel".into(), family: 6, model: 0xad };
        assert_eq!(
            of(Isa::Amx, &xeon),
            (MatmulVariant::of_level(Isa::Amx).with("fetch=2K,lone=matrix").unwrap(), Some("Xeon with AMX"))
        );
        let emerald = ProcessorId { vendor: "GenuineIntel".into(), family: 6, model: 0xcf };
        assert_eq!(of(Isa::Amx, &emerald).1, Some("Emerald Rapids"));
        let intel = ProcessorId { vendor: "GenuineIntel".into(), family: 6, model: 0x8f };
        for (isa, id) in [(Isa::Avx512, &intel), (Isa::Avx2, &amd(0x19, 0x11)), (Isa::Scalar, &amd(0x1a, 2))] {
            assert_eq!(of(isa, id), (MatmulVariant::of_level(isa), None));
        }
        assert_eq!(choices(Isa::Neon, None), (MatmulVariant::of_level(Isa::Neon), None));
    }

    #[test]
    fn every_line_of_the_table_makes_choices_that_exist() {
        for known in &KNOWN {
            for &isa in known.levels {
                MatmulVariant::of_level(isa).with(known.choices).unwrap();
            }
        }
    }
}
