//! What tensors of a kernel are made of, by the names that Python libraries have for it.

use crate::error::PersistentError;
use std::fmt;
use yirage_ir::Format;

/// The type of a tensor's elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Elements {
    /// Numbers.
    Floats(Format),
    /// 8-bit floats E4M3, which stand for numbers together with scales.
    Float8E4M3,
    /// Token ids and positions of 4 bytes.
    Int32,
    /// Token ids and positions of 8 bytes.
    Int64,
}

impl Elements {
    /// The type of a name: `float32`, `float16`, `bfloat16`, `float8_e4m3fn`, `int32` or `int64`, also behind `torch.`;
    /// Mirage's `fp8_e4m3` as well.
    ///
    /// # Errors
    /// [`PersistentError::Unsupported`] for any other.
    pub fn parse(name: &str) -> Result<Elements, PersistentError> {
        match name.strip_prefix("torch.").unwrap_or(name) {
            "float32" | "float" => Ok(Elements::Floats(Format::F32)),
            "float16" | "half" => Ok(Elements::Floats(Format::F16)),
            "bfloat16" => Ok(Elements::Floats(Format::BF16)),
            "float8_e4m3fn" | "fp8_e4m3" => Ok(Elements::Float8E4M3),
            "int32" | "int" => Ok(Elements::Int32),
            "int64" | "long" => Ok(Elements::Int64),
            _ => Err(PersistentError::Unsupported {
                what: format!("the element type `{name}`"),
                why: "tensors of a kernel are float32, float16, bfloat16, float8_e4m3fn, int32 or int64".into(),
            }),
        }
    }

    /// Bytes of an element.
    pub fn bytes(self) -> usize {
        match self {
            Elements::Floats(format) => format.info().row_bytes(1),
            Elements::Float8E4M3 => 1,
            Elements::Int32 => 4,
            Elements::Int64 => 8,
        }
    }
}

impl fmt::Display for Elements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Elements::Floats(Format::F16) => "float16",
            Elements::Floats(Format::BF16) => "bfloat16",
            Elements::Floats(Format::F32) => "float32",
            Elements::Floats(other) => other.info().name,
            Elements::Float8E4M3 => "float8_e4m3fn",
            Elements::Int32 => "int32",
            Elements::Int64 => "int64",
        })
    }
}
