//! The number formats that GGUF files may name: only their names and block sizes, so that tensors can be listed and
//! their extents checked even where no kernel can compute with them.

use yirage_ir::Format;

/// A tensor's number format in a GGUF file, by its number there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct GgmlType(pub u32);

/// Number, name, elements per block, bytes per block of every published format.
const KNOWN: &[(u32, &str, u64, u64)] = &[
    (0, "F32", 1, 4),
    (1, "F16", 1, 2),
    (2, "Q4_0", 32, 18),
    (3, "Q4_1", 32, 20),
    (6, "Q5_0", 32, 22),
    (7, "Q5_1", 32, 24),
    (8, "Q8_0", 32, 34),
    (9, "Q8_1", 32, 40),
    (10, "Q2_K", 256, 84),
    (11, "Q3_K", 256, 110),
    (12, "Q4_K", 256, 144),
    (13, "Q5_K", 256, 176),
    (14, "Q6_K", 256, 210),
    (15, "Q8_K", 256, 292),
    (16, "IQ2_XXS", 256, 66),
    (17, "IQ2_XS", 256, 74),
    (18, "IQ3_XXS", 256, 98),
    (19, "IQ1_S", 256, 50),
    (20, "IQ4_NL", 32, 18),
    (21, "IQ3_S", 256, 110),
    (22, "IQ2_S", 256, 82),
    (23, "IQ4_XS", 256, 136),
    (24, "I8", 1, 1),
    (25, "I16", 1, 2),
    (26, "I32", 1, 4),
    (27, "I64", 1, 8),
    (28, "F64", 1, 8),
    (29, "IQ1_M", 256, 56),
    (30, "BF16", 1, 2),
    (34, "TQ1_0", 256, 54),
    (35, "TQ2_0", 256, 66),
    (39, "MXFP4", 32, 17),
    (40, "NVFP4", 64, 36),
    (41, "Q1_0", 128, 18),
];

impl GgmlType {
    /// The format to compute with, where there is one.
    pub fn format(self) -> Option<Format> {
        Format::from_ggml(self.0)
    }

    /// The published name.
    pub fn name(self) -> Option<&'static str> {
        self.known().map(|k| k.1)
    }

    /// Elements and bytes of a block.
    pub fn block(self) -> Option<(u64, u64)> {
        self.known().map(|k| (k.2, k.3))
    }

    fn known(self) -> Option<&'static (u32, &'static str, u64, u64)> {
        KNOWN.iter().find(|k| k.0 == self.0)
    }
}

impl std::fmt::Display for GgmlType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name} (GGUF type {})", self.0),
            None => write!(f, "an unknown format (GGUF type {})", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_agrees_with_the_formats_that_compute() {
        for format in Format::ALL {
            let info = format.info();
            let ty = GgmlType(info.ggml_type);
            assert_eq!(ty.name().map(str::to_ascii_lowercase).as_deref(), Some(info.name));
            assert_eq!(ty.block(), Some((info.block as u64, info.bytes as u64)), "{}", info.name);
            assert_eq!(ty.format(), Some(*format));
        }
    }
}
