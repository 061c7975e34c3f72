//! Arrays of .npy files (NumPy's format versions 1 to 3, "NEP 1"), as bytes: read for a value of a graph, and written.
//!
//! Elements are f32, f16, i32, u32 and bool in NumPy's types of those names, little-endian. NumPy has no bf16: the
//! package `ml_dtypes` writes it as two bytes without a meaning (`<V2` or `|V2`), which is taken where a bf16 is wanted,
//! with a note. Nothing is converted: an array of another type is refused, with what to write instead.

mod array;
mod header;
mod literal;

pub use array::{Npy, write};
pub use header::{MAX_HEADER, NpyHeader};

use thiserror::Error;

/// Why bytes are no array that a graph can be given.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum NpyError {
    /// Another format, or a file that is cut off.
    #[error("no .npy file: {0}")]
    Format(String),
    /// A header that says something wrong, or something that no array here is.
    #[error("the .npy header: {0}")]
    Header(String),
    /// Not as many bytes of elements as the header says.
    #[error("the .npy file has {given} bytes of elements, {descr} of shape {shape:?} needs {wanted}")]
    Length {
        /// Bytes behind the header.
        given: usize,
        /// Bytes that the header asks for.
        wanted: usize,
        /// The element type.
        descr: String,
        /// The sizes.
        shape: Vec<usize>,
    },
    /// Another element type than the graph's.
    #[error("{wanted} wanted, the array is `{descr}`{remedy}")]
    DType {
        /// The graph's type.
        wanted: String,
        /// What the file says.
        descr: String,
        /// What to do.
        remedy: String,
    },
    /// Another shape than the graph's.
    #[error("{wanted} wanted, the array has the shape {shape:?}")]
    Shape {
        /// The graph's type.
        wanted: String,
        /// What the file says.
        shape: Vec<usize>,
    },
    /// Strides of the graph's type that reach further than there is memory.
    #[error(
        "{wanted} wanted, which takes {bytes} bytes with its gaps: that much memory is not to be had; save it without gaps"
    )]
    Memory {
        /// The graph's type.
        wanted: String,
        /// Bytes from its first element to its last.
        bytes: usize,
    },
    /// A bool that is neither 0 nor 1.
    #[error("element {at} is the byte {byte}, a bool is 0 or 1; save it as bool anew")]
    Bool {
        /// Which element, in the file's order.
        at: usize,
        /// What stands there.
        byte: u8,
    },
}
