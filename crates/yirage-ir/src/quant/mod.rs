//! Stored number formats. One file per format owns its block layout, scalar decode and, where an independent oracle
//! encodes too, its encode.
//!
//! This module knows nothing of tiles, SIMD or devices: `decode` is the meaning of a format, and every kernel is
//! checked against it.

mod f16;
mod f32;

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
    pub decode: fn(src: &[u8], dst: &mut [f32]),
    /// Encodes whole blocks, where an independent oracle to compare with exists.
    pub encode: Option<fn(src: &[f32], dst: &mut [u8])>,
}

impl FormatInfo {
    /// Bytes of a row of `elems` weights; `elems` must be a multiple of the block length.
    pub fn row_bytes(&self, elems: usize) -> usize {
        elems / self.block * self.bytes
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
