//! Which program verified.

use super::record::BuildRecord;

/// Features of the program, and whether each is on.
const FEATURES: [(&str, bool); 13] = [
    ("cpu", cfg!(feature = "cpu")),
    ("cuda", cfg!(feature = "cuda")),
    ("hip", cfg!(feature = "hip")),
    ("musa", cfg!(feature = "musa")),
    ("maca", cfg!(feature = "maca")),
    ("corex", cfg!(feature = "corex")),
    ("ascend", cfg!(feature = "ascend")),
    ("cambricon", cfg!(feature = "cambricon")),
    ("mps", cfg!(feature = "mps")),
    ("vulkan", cfg!(feature = "vulkan")),
    ("dx12", cfg!(feature = "dx12")),
    ("plugins", cfg!(feature = "plugins")),
    ("stories", cfg!(feature = "stories")),
];

impl BuildRecord {
    /// This program.
    pub(super) fn of_this_program() -> BuildRecord {
        BuildRecord {
            version: env!("CARGO_PKG_VERSION").into(),
            commit: option_env!("BUILD_COMMIT").map(Into::into),
            features: FEATURES.iter().filter(|(_, on)| *on).map(|(name, _)| (*name).into()).collect(),
            system: std::env::consts::OS.into(),
            machine: std::env::consts::ARCH.into(),
        }
    }
}
