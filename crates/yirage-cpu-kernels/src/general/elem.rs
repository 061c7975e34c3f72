//! Element types that general kernels compute with.

use thiserror::Error;
use yirage_ir::dtype::DType;
use yirage_ir::quant::Format;

/// The type of an element in memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Elem {
    /// IEEE single precision.
    F32,
    /// IEEE half precision.
    F16,
    /// The upper half of an f32.
    BF16,
    /// A signed number of 32 bits.
    I32,
    /// A number of 32 bits without sign.
    U32,
    /// A byte: 0 is false, others are true; 1 is written.
    Bool,
}

/// A type that no general kernel computes with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("elements are {0}: f32, f16, bf16, i32, u32 or bool are wanted")]
pub struct NoElem(pub DType);

impl TryFrom<DType> for Elem {
    type Error = NoElem;

    fn try_from(dtype: DType) -> Result<Elem, NoElem> {
        match dtype {
            DType::Stored(Format::F32) => Ok(Elem::F32),
            DType::Stored(Format::F16) => Ok(Elem::F16),
            DType::Stored(Format::BF16) => Ok(Elem::BF16),
            DType::I32 => Ok(Elem::I32),
            DType::U32 => Ok(Elem::U32),
            DType::Bool => Ok(Elem::Bool),
            other => Err(NoElem(other)),
        }
    }
}

/// What elements are while they are computed with: all fill a lane of 32 bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ComputeType {
    /// An f32, whatever the width in memory.
    Float,
    /// A signed number.
    I32,
    /// A number without sign.
    U32,
    /// All bits set, or none.
    Mask,
}

impl Elem {
    /// Bytes of an element.
    pub fn bytes(self) -> usize {
        match self {
            Elem::F32 | Elem::I32 | Elem::U32 => 4,
            Elem::F16 | Elem::BF16 => 2,
            Elem::Bool => 1,
        }
    }

    /// What an element is computed with as.
    pub fn compute_type(self) -> ComputeType {
        match self {
            Elem::F32 | Elem::F16 | Elem::BF16 => ComputeType::Float,
            Elem::I32 => ComputeType::I32,
            Elem::U32 => ComputeType::U32,
            Elem::Bool => ComputeType::Mask,
        }
    }
}
