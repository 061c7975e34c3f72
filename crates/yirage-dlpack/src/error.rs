//! Why an object is no array of ours.

use crate::dtype::{names, stored_names};
use pyo3::PyErr;
use thiserror::Error;
use yirage_plancache::CallError;

/// Why an object cannot be read as an array.
#[derive(Debug, Error)]
pub enum ArrayError {
    /// An object of neither protocol.
    #[error(
        "{what} is a `{given}`, which has neither `__dlpack__` nor a buffer: give a NumPy array, a tensor or a buffer"
    )]
    NotAnArray {
        /// Which argument.
        what: String,
        /// Its Python type.
        given: String,
    },
    /// Elements that nothing here computes with.
    #[error("{what} has elements of type {given}, and {} are taken: convert it", names())]
    DType {
        /// Which argument.
        what: String,
        /// The type as the protocol has it.
        given: String,
    },
    /// Elements that are not stored.
    #[error("{what} has elements of type {given}, and {} are stored: convert it", stored_names())]
    Stored {
        /// Which argument.
        what: String,
        /// The type as the protocol has it.
        given: String,
    },
    /// More elements than memory has.
    #[error(
        "{what} of {shape:?} elements of {dtype}: there is no memory for them; give a smaller tensor, or free memory"
    )]
    Memory {
        /// Who wants them.
        what: String,
        /// The sizes.
        shape: Vec<u32>,
        /// The type.
        dtype: &'static str,
    },
    /// Elements that are no numbers of a kernel's tensors.
    #[error(
        "{what} has elements of type {given}, and float32, float16, bfloat16, float8_e4m3fn, int32, int64, uint64 and uint8 \
         are taken: convert it"
    )]
    Number {
        /// Which argument.
        what: String,
        /// The type as the protocol has it.
        given: String,
    },
    /// Memory that the host cannot read.
    #[error("{what} lies on DLPack device {kind}:{id}, and memory of the host is read: move it there")]
    Device {
        /// Which argument.
        what: String,
        /// DLPack's number of the kind of device.
        kind: i32,
        /// The device's number.
        id: i32,
    },
    /// Sizes or strides that no array here has.
    #[error("{what} has shape {shape:?} and strides {strides:?} in elements: {why}")]
    Places {
        /// Which argument.
        what: String,
        /// Its sizes.
        shape: Vec<i64>,
        /// Its strides.
        strides: Vec<i64>,
        /// What is wrong.
        why: &'static str,
    },
    /// A capsule that does not hold what its name says.
    #[error("{what}: {why}")]
    Capsule {
        /// Which argument.
        what: String,
        /// What is wrong.
        why: String,
    },
    /// What the object's own code raised.
    #[error("{what}: {source}")]
    Raised {
        /// Which argument.
        what: String,
        /// The exception.
        source: PyErr,
    },
    /// Elements without a type, or too many.
    #[error(transparent)]
    Array(#[from] CallError),
}
