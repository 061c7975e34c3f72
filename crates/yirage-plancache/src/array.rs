//! Elements with their type.

use crate::call_error::CallError;
use std::sync::Arc;
use yirage_hal::{HostMemory, Record};
use yirage_ir::{Dim, Dims, Strided, Type};

/// Elements of plain numbers in the host's memory, as many as their type says. Copies share the memory.
#[derive(Clone, Debug)]
pub struct HostArray {
    ty: Type,
    memory: Arc<dyn HostMemory>,
}

impl HostArray {
    /// An array of type `ty`, whose dimensions are fixed, gaps between strided elements included.
    ///
    /// # Errors
    /// [`CallError::Array`]: a type that is no array's, or another number of bytes than it needs.
    pub fn new(ty: Type, memory: Record) -> Result<HostArray, CallError> {
        HostArray::of(ty, Arc::new(memory))
    }

    /// [`HostArray::new`] of memory that somebody else owns, read where it is.
    ///
    /// # Errors
    /// As those of [`HostArray::new`].
    pub fn of(ty: Type, memory: Arc<dyn HostMemory>) -> Result<HostArray, CallError> {
        let wrong = |why: String| CallError::Array { ty: ty.to_string(), why };
        ty.check().map_err(|e| wrong(e.to_string()))?;
        if !ty.is_fixed() || !ty.dtype.is_plain() || ty.activation_format.is_some() {
            return Err(wrong("fixed sizes of f32, f16, bf16, i32, u32 or bool wanted".into()));
        }
        let (given, wanted) = (memory.bytes().len(), ty.storage_bytes(&Dims::default()));
        if given != wanted {
            return Err(wrong(format!("{given} bytes are given, {wanted} are needed")));
        }
        Ok(HostArray { ty, memory })
    }

    /// Its type.
    pub fn ty(&self) -> &Type {
        &self.ty
    }

    /// Its elements as they lie.
    pub fn bytes(&self) -> &[u8] {
        self.memory.bytes()
    }

    /// Memory that a step may read.
    pub(crate) fn shared(&self) -> Arc<dyn HostMemory> {
        self.memory.clone()
    }

    /// Whether its elements lie as those of a value of type `wanted` do. Strides of dimensions of size 1 do not count.
    pub(crate) fn fits(&self, wanted: &Type) -> bool {
        let (Some(has), Some(wants)) = (Strided::of(&self.ty), Strided::of(wanted)) else { return false };
        let alike = |((dim, a), b): ((&Dim, &i64), &i64)| a == b || *dim == Dim::Const(1);
        self.ty.dense() == wanted.dense() && has.shape.iter().zip(&has.strides).zip(&wants.strides).all(alike)
    }
}
