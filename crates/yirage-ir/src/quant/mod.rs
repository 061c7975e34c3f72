//! Stored number formats. One file per format owns its block layout, scalar decode and, where an independent oracle
//! encodes too, its encode.
//!
//! This module knows nothing of tiles, SIMD or devices: `decode` is the meaning of a format, and every kernel is
//! checked against it.

mod bf16;
mod blocks;
mod f16;
mod f32;
pub mod iq4_nl;
pub mod mxfp4;
mod q2_k;
mod q3_k;
mod q4_0;
mod q4_1;
mod q4_k;
mod q5_0;
mod q5_1;
mod q5_k;
mod q6_k;
mod q8_0;

/// Decodes whole blocks.
pub type DecodeBlocks = fn(src: &[u8], dst: &mut [f32]);
/// Encodes whole blocks.
pub type EncodeBlocks = fn(src: &[f32], dst: &mut [u8]);

/// What a stored format is. `decode` and `encode` work on whole blocks.
pub struct FormatInfo {
    /// Lower-case name in text forms: `f32`, `q4_k`.
    pub name: &'static str,
    /// Weights per block (1 for floats).
    pub block: usize,
    /// Bytes per block.
    pub bytes: usize,
    /// The type number in GGUF files.
    pub ggml_type: u32,
    /// Decodes whole blocks: `src.len() / bytes * block == dst.len()`.
    pub decode: DecodeBlocks,
    /// Encodes whole blocks, where an independent oracle to compare with exists.
    pub encode: Option<EncodeBlocks>,
}

impl FormatInfo {
    /// Bytes of a row of `elems` weights; `elems` must be a multiple of the block length.
    pub fn row_bytes(&self, elems: usize) -> usize {
        (elems / self.block).saturating_mul(self.bytes)
    }
}

macro_rules! formats {
    ($($variant:ident = $file:ident),* $(,)?) => {
        /// Every stored format: the only list.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        #[allow(non_camel_case_types, missing_docs)]
        pub enum Format { $($variant),* }

        impl Format {
            /// All formats, in declaration order.
            pub const ALL: &'static [Format] = &[$(Format::$variant),*];

            /// The format's description.
            pub fn info(self) -> &'static FormatInfo {
                match self { $(Format::$variant => &$file::INFO),* }
            }
        }
    };
}

formats! {
    F32 = f32,
    F16 = f16,
    BF16 = bf16,
    Q4_0 = q4_0,
    Q4_1 = q4_1,
    Q5_0 = q5_0,
    Q5_1 = q5_1,
    Q8_0 = q8_0,
    Q2_K = q2_k,
    Q3_K = q3_k,
    Q4_K = q4_k,
    Q5_K = q5_k,
    Q6_K = q6_k,
    IQ4_NL = iq4_nl,
    MXFP4 = mxfp4,
}

impl Format {
    /// The format called `name` in text forms.
    pub fn parse(name: &str) -> Option<Format> {
        Format::ALL.iter().copied().find(|f| f.info().name == name)
    }

    /// The format with this GGUF type number.
    pub fn from_ggml(ty: u32) -> Option<Format> {
        Format::ALL.iter().copied().find(|f| f.info().ggml_type == ty)
    }
}
