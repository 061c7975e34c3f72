//! Outputs of a step in the host's memory.

use crate::error::HalError;
use crate::record::{HostMemory, Record};
use bytemuck::AnyBitPattern;
use yirage_ir::{DType, Dims, Tensor, Type};

/// The outputs of a step that were read.
#[derive(Clone, Default, Debug)]
pub struct Outputs {
    dims: Dims,
    /// By the plan's number; those that were not read are none.
    read: Vec<Option<(Type, Record)>>,
}

impl Outputs {
    /// Outputs of a step of these sizes, each as long as its type says.
    pub(crate) fn new(dims: Dims, read: Vec<Option<(Type, Record)>>) -> Outputs {
        Outputs { dims, read }
    }

    /// The sizes of the step.
    pub fn dims(&self) -> &Dims {
        &self.dims
    }

    /// The elements of an output as they lie, row-major, and their type.
    ///
    /// # Errors
    /// An output that was not read, or is a cache state.
    pub fn bytes(&self, index: usize) -> Result<(&Type, &[u8]), HalError> {
        self.output(index).map(|(ty, record)| (ty, record.bytes()))
    }

    /// The elements of an output, without a copy.
    ///
    /// # Errors
    /// As [`Outputs::bytes`].
    pub fn take(&mut self, index: usize) -> Result<Record, HalError> {
        let taken = self.read.get_mut(index).and_then(Option::take);
        taken.map(|(_, record)| record).ok_or_else(|| not_read(index))
    }

    /// An output of any type.
    ///
    /// # Errors
    /// As [`Outputs::bytes`].
    pub fn tensor(&self, index: usize) -> Result<Tensor, HalError> {
        self.output(index).map(|(ty, record)| Tensor::from_memory(ty, &self.dims, record.bytes()))
    }

    /// An output of floats.
    ///
    /// # Errors
    /// As [`Outputs::bytes`], and an output of another type.
    pub fn floats(&self, index: usize) -> Result<&[f32], HalError> {
        self.values(index, DType::F32)
    }

    /// An output of integers.
    ///
    /// # Errors
    /// As [`Outputs::floats`].
    pub fn ints(&self, index: usize) -> Result<&[i32], HalError> {
        self.values(index, DType::I32)
    }

    fn values<T: AnyBitPattern>(&self, index: usize, wanted: DType) -> Result<&[T], HalError> {
        let (ty, record) = self.output(index)?;
        if ty.dtype != wanted {
            return Err(HalError::Step(format!("output {index} is {ty}, {wanted} is wanted")));
        }
        Ok(record.values())
    }

    fn output(&self, index: usize) -> Result<(&Type, &Record), HalError> {
        let read = self.read.get(index).and_then(Option::as_ref);
        read.map(|(ty, record)| (ty, record)).ok_or_else(|| not_read(index))
    }
}

fn not_read(index: usize) -> HalError {
    HalError::Step(format!("output {index} was not read, or is a cache state"))
}
