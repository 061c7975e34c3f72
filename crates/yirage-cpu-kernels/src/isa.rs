//! Instruction-set levels of this machine. Detection happens at run time; nothing is compiled for one CPU.

use std::fmt;
use thiserror::Error;

/// An instruction-set level that kernels exist for. On one architecture a higher level includes the lower ones.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Isa {
    /// Portable Rust; the definition of every result.
    Scalar,
    /// x86-64 AVX2 with FMA and F16C.
    Avx2,
    /// [`Isa::Avx2`] with the dot product of bytes in 256-bit registers: AVX-VNNI, or VNNI and VL of AVX-512.
    AvxVnni,
    /// x86-64 AVX-512 F, BW, VL and VNNI (and everything of [`Isa::AvxVnni`]).
    Avx512,
    /// [`Isa::Avx512`] with the BF16 dot product.
    Avx512Bf16,
    /// [`Isa::Avx512Bf16`] with products of tiles of bytes and of bf16 numbers (AMX), which the system must grant.
    Amx,
    /// AArch64 Advanced SIMD with the dot product of signed bytes (FEAT_DotProd).
    Neon,
    /// [`Isa::Neon`] with products of 8-bit integer matrices and the dot product of mixed signs (FEAT_I8MM).
    NeonI8mm,
    /// [`Isa::NeonI8mm`] with BF16 dot and matrix products (FEAT_BF16).
    NeonBf16,
}

/// Why a level cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum IsaError {
    /// The name is none of [`Isa::ALL`].
    #[error("instruction set {0:?} is unknown: use one of {names}", names = Isa::names())]
    Unknown(String),
    /// This CPU lacks the level.
    #[error("instruction set {wanted} is not available on this CPU (best available: {best}): choose {best} or lower")]
    Unavailable {
        /// The level asked for.
        wanted: Isa,
        /// The best level this CPU has.
        best: Isa,
    },
}

impl Isa {
    /// Every level, lowest first.
    pub const ALL: &'static [Isa] = &[
        Isa::Scalar,
        Isa::Avx2,
        Isa::AvxVnni,
        Isa::Avx512,
        Isa::Avx512Bf16,
        Isa::Amx,
        Isa::Neon,
        Isa::NeonI8mm,
        Isa::NeonBf16,
    ];

    /// The name used in configuration.
    pub fn name(self) -> &'static str {
        match self {
            Isa::Scalar => "scalar",
            Isa::Avx2 => "avx2",
            Isa::AvxVnni => "avxvnni",
            Isa::Avx512 => "avx512",
            Isa::Avx512Bf16 => "avx512bf16",
            Isa::Amx => "amx",
            Isa::Neon => "neon",
            Isa::NeonI8mm => "neoni8mm",
            Isa::NeonBf16 => "neonbf16",
        }
    }

    /// The lowest level with the same vector registers. What is no product of bytes or of bf16 numbers is computed alike at
    /// both.
    pub(crate) fn vectors(self) -> Isa {
        match self {
            Isa::Scalar => Isa::Scalar,
            Isa::Avx2 | Isa::AvxVnni => Isa::Avx2,
            Isa::Avx512 | Isa::Avx512Bf16 | Isa::Amx => Isa::Avx512,
            Isa::Neon | Isa::NeonI8mm | Isa::NeonBf16 => Isa::Neon,
        }
    }

    /// The names of all levels, for messages.
    fn names() -> String {
        Isa::ALL.iter().map(|isa| isa.name()).collect::<Vec<_>>().join(", ")
    }

    /// The best level of this CPU.
    pub fn detect() -> Isa {
        Isa::ALL.iter().rev().copied().find(|isa| isa.available()).unwrap_or(Isa::Scalar)
    }

    /// Whether this CPU has the level.
    pub fn available(self) -> bool {
        match self {
            Isa::Scalar => true,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => {
                is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c")
            }
            #[cfg(target_arch = "x86_64")]
            Isa::AvxVnni => {
                Isa::Avx2.available()
                    && (is_x86_feature_detected!("avxvnni")
                        || is_x86_feature_detected!("avx512vl") && is_x86_feature_detected!("avx512vnni"))
            }
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => {
                Isa::Avx2.available()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512vnni")
            }
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512Bf16 => Isa::Avx512.available() && is_x86_feature_detected!("avx512bf16"),
            #[cfg(target_arch = "x86_64")]
            Isa::Amx => Isa::Avx512Bf16.available() && crate::amx::is_granted(),
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => {
                std::arch::is_aarch64_feature_detected!("neon") && std::arch::is_aarch64_feature_detected!("dotprod")
            }
            #[cfg(target_arch = "aarch64")]
            Isa::NeonI8mm => Isa::Neon.available() && std::arch::is_aarch64_feature_detected!("i8mm"),
            #[cfg(target_arch = "aarch64")]
            Isa::NeonBf16 => Isa::NeonI8mm.available() && std::arch::is_aarch64_feature_detected!("bf16"),
            #[allow(unreachable_patterns)] // which arms exist depends on the architecture
            _ => false,
        }
    }

    /// The level called `name`, if this CPU has it.
    pub fn parse(name: &str) -> Result<Isa, IsaError> {
        let isa = Isa::ALL
            .iter()
            .copied()
            .find(|isa| isa.name().eq_ignore_ascii_case(name))
            .ok_or_else(|| IsaError::Unknown(name.to_owned()))?;
        isa.require()
    }

    /// `self`, or an error naming the best level of this CPU.
    pub fn require(self) -> Result<Isa, IsaError> {
        if self.available() { Ok(self) } else { Err(IsaError::Unavailable { wanted: self, best: Isa::detect() }) }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
