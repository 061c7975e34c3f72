//! The tensors of a kernel: what is attached, what layers write, and weights that are several in one.

use crate::bytes::SharedBytes;
use crate::elements::KernelDType;
use crate::error::PersistentError;
use crate::limits::{MAX_RANK, MAX_SIZE};

/// A tensor of one kernel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct TensorId(pub(crate) u32);

/// A tensor as its owner gives it.
#[derive(Clone, PartialEq, Debug)]
pub struct KernelTensor {
    /// Sizes, outermost first: 1 to 4 of them.
    pub dims: Vec<u32>,
    /// Its elements' type.
    pub elements: KernelDType,
    /// Its elements, dense and row-major, little-endian. None declares a tensor whose elements nobody reads: a cache, or
    /// the ids of a step.
    pub data: Option<SharedBytes>,
}

impl KernelTensor {
    /// A tensor of `f32`.
    pub fn f32(dims: &[u32], values: &[f32]) -> KernelTensor {
        let data = values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>().into();
        KernelTensor { dims: dims.to_vec(), elements: KernelDType::Floats(yirage_ir::Format::F32), data: Some(data) }
    }

    /// A tensor without elements.
    pub fn declared(dims: &[u32], elements: KernelDType) -> KernelTensor {
        KernelTensor { dims: dims.to_vec(), elements, data: None }
    }

    /// Whether its sizes are sizes and its elements are as many as they say.
    pub(crate) fn check(&self, name: &str) -> Result<(), PersistentError> {
        let wrong = |why| Err(PersistentError::Tensor { name: name.to_owned(), why });
        let sizes = (1..=MAX_RANK).contains(&self.dims.len()) && self.dims.iter().all(|n| (1..=MAX_SIZE).contains(n));
        if !sizes {
            return wrong(format!("its sizes are {:?}: 1 to {MAX_RANK} of 1 to {MAX_SIZE} are wanted", self.dims));
        }
        let elements = self.dims.iter().try_fold(1usize, |n, &m| n.checked_mul(m as usize));
        let Some(wanted) = elements.and_then(|n| n.checked_mul(self.elements.bytes())) else {
            return wrong(format!("its sizes {:?} are more than memory has", self.dims));
        };
        match &self.data {
            Some(data) if data.len() != wanted => {
                wrong(format!("{} bytes are given, {:?} of {} are {wanted}", data.len(), self.dims, self.elements))
            }
            _ => Ok(()),
        }
    }
}

/// Where a tensor's elements come from.
#[derive(Clone, Debug)]
pub(crate) enum TensorSource {
    /// Its owner.
    Attached,
    /// A layer.
    New,
    /// Several weights whose rows are interleaved in so many groups, by their numbers in the builder of their rank.
    Fused { parts: Vec<TensorId>, groups: u32 },
}

/// A tensor that a kernel knows.
#[derive(Clone, Debug)]
pub(crate) struct DeclaredTensor {
    pub(crate) name: String,
    pub(crate) tensor: KernelTensor,
    pub(crate) kind: TensorSource,
}

impl DeclaredTensor {
    /// Elements of a row: all sizes but the first.
    pub(crate) fn width(&self) -> u32 {
        self.tensor.dims.iter().skip(1).fold(1, |n, &m| n.saturating_mul(m))
    }

    pub(crate) fn rows(&self) -> u32 {
        self.tensor.dims[0]
    }
}
