//! What tensors of a kernel are made of, by the names that Python libraries have for it.

use crate::error::PersistentError;
use std::fmt;
use yirage_ir::Format;

/// The type of a tensor's elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KernelDType {
    /// Numbers.
    Floats(Format),
    /// 8-bit floats E4M3, which stand for numbers together with scales.
    Float8E4M3,
    /// Token ids and positions of 4 bytes.
    Int32,
    /// Token ids and positions of 8 bytes.
    Int64,
}

impl KernelDType {
    /// The type of a name: `float32`, `float16`, `bfloat16`, `float8_e4m3fn`, `int32` or `int64`, also behind `torch.`;
    /// Mirage's `fp8_e4m3` as well.
    ///
    /// # Errors
    /// [`PersistentError::Unsupported`] for any other.
    pub fn parse(name: &str) -> Result<KernelDType, PersistentError> {
        match name.strip_prefix("torch.").unwrap_or(name) {
            "float32" | "float" => Ok(KernelDType::Floats(Format::F32)),
            "float16" | "half" => Ok(KernelDType::Floats(Format::F16)),
            "bfloat16" => Ok(KernelDType::Floats(Format::BF16)),
            "float8_e4m3fn" | "fp8_e4m3" => Ok(KernelDType::Float8E4M3),
            "int32" | "int" => Ok(KernelDType::Int32),
            "int64" | "long" => Ok(KernelDType::Int64),
            _ => Err(PersistentError::Unsupported {
                what: format!("the element type `{name}`"),
                why: "tensors of a kernel are float32, float16, bfloat16, float8_e4m3fn, int32 or int64".into(),
            }),
        }
    }

    /// Bytes of an element.
    pub fn bytes(self) -> usize {
        match self {
            KernelDType::Floats(format) => format.info().row_bytes(1),
            KernelDType::Float8E4M3 => 1,
            KernelDType::Int32 => 4,
            KernelDType::Int64 => 8,
        }
    }
}

impl fmt::Display for KernelDType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            KernelDType::Floats(Format::F16) => "float16",
            KernelDType::Floats(Format::BF16) => "bfloat16",
            KernelDType::Floats(Format::F32) => "float32",
            KernelDType::Floats(other) => other.info().name,
            KernelDType::Float8E4M3 => "float8_e4m3fn",
            KernelDType::Int32 => "int32",
            KernelDType::Int64 => "int64",
        })
    }
}
