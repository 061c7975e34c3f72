//! The element types that safetensors files may name.

use yirage_ir::Format;

/// A tensor's element type in a safetensors file.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SafeDtype(pub String);

/// Name and bits of every published type.
const KNOWN: &[(&str, u64)] = &[
    ("F32", 32),
    ("F16", 16),
    ("BF16", 16),
    ("U8", 8),
    ("I8", 8),
    ("BOOL", 8),
    ("U16", 16),
    ("I16", 16),
    ("U32", 32),
    ("I32", 32),
    ("U64", 64),
    ("I64", 64),
    ("F64", 64),
    ("C64", 64),
    ("F8_E4M3", 8),
    ("F8_E5M2", 8),
    ("F8_E8M0", 8),
    ("F8_E4M3FNUZ", 8),
    ("F8_E5M2FNUZ", 8),
    ("F6_E2M3", 6),
    ("F6_E3M2", 6),
    ("F4", 4),
];

impl SafeDtype {
    /// The format to compute with, where there is one.
    pub fn format(&self) -> Option<Format> {
        match self.0.as_str() {
            "F32" => Format::parse("f32"),
            "F16" => Format::parse("f16"),
            "BF16" => Format::parse("bf16"),
            _ => None,
        }
    }

    /// Whether elements are plain bytes, as packed blocks of weights are stored.
    pub fn is_bytes(&self) -> bool {
        self.0 == "U8"
    }

    /// Bits of an element; `None` for a type that is not published, whose sizes cannot be checked.
    pub fn bits(&self) -> Option<u64> {
        KNOWN.iter().find(|k| k.0 == self.0).map(|k| k.1)
    }
}

impl std::fmt::Display for SafeDtype {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
