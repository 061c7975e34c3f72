//! Layouts of activations: a row of f32 as codes and what is needed to read them. One file per layout owns its blocks,
//! encode and decode; the `layouts!` list below names them all.
//!
//! What a layout says is what its numbers are worth. In which order a device keeps them is the device's own affair.

pub mod q8a;

use crate::attr::AttrValue;
use crate::dtype::DType;
use std::fmt;
use std::str::FromStr;

/// Encodes a part of a row, whole blocks, which are judged together.
pub type Encode = fn(part: &[f32], dst: &mut [u8]);
/// Decodes whole blocks, without rounding.
pub type Decode = fn(src: &[u8], dst: &mut [f64]);

/// What a layout of activations is.
pub struct ActivationFormatSpec {
    /// Lower-case name in text forms, where the element type of a plain value stands.
    pub name: &'static str,
    /// The type of the codes.
    pub dtype: DType,
    /// Numbers of a block.
    pub block: usize,
    /// Bytes of a block as the reference writes it.
    pub bytes: usize,
    /// Encodes whole blocks: `src.len() / block * bytes == dst.len()`.
    pub encode: Encode,
    /// Decodes whole blocks.
    pub decode: Decode,
}

impl ActivationFormatSpec {
    /// Bytes of a row of `elems` numbers as the reference writes it; `elems` must be a multiple of the block length.
    pub fn row_bytes(&self, elems: usize) -> usize {
        (elems / self.block).saturating_mul(self.bytes)
    }
}

macro_rules! layouts {
    ($($variant:ident = $file:ident),* $(,)?) => {
        /// Every layout of activations: the only list. A target names those that it has.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        #[allow(missing_docs)]
        pub enum ActivationFormat { $($variant),* }

        impl ActivationFormat {
            /// All layouts, in declaration order.
            pub const ALL: &'static [ActivationFormat] = &[$(ActivationFormat::$variant),*];

            /// The layout's description.
            pub fn info(self) -> &'static ActivationFormatSpec {
                match self { $(ActivationFormat::$variant => &$file::INFO),* }
            }
        }
    };
}

layouts! {
    Q8A = q8a,
}

impl ActivationFormat {
    /// The layout called `name` in text forms.
    pub fn parse(name: &str) -> Option<ActivationFormat> {
        ActivationFormat::ALL.iter().copied().find(|l| l.info().name == name)
    }
}

impl fmt::Display for ActivationFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.info().name)
    }
}

impl FromStr for ActivationFormat {
    type Err = ();
    fn from_str(name: &str) -> Result<ActivationFormat, ()> {
        ActivationFormat::parse(name).ok_or(())
    }
}

impl AttrValue for ActivationFormat {}
