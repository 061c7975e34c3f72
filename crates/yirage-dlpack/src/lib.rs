//! Arrays of other Python libraries, both ways and without a copy, by DLPack and by Python's buffer protocol.
//!
//! [`taken`] makes a [`HostArray`](yirage_plancache::HostArray) of an object that NumPy, PyTorch or anybody else made: its elements are
//! read where they lie. [`InPlace`] reads and writes numbers of such an object one by one, [`copied`] copies all of them. [`PyTensor`] is a Python object that owns its elements and that the others read where they lie.
//! Both protocols are pointers between two languages, so the only `unsafe` code of the Python package is here. Whoever
//! writes to an array while a graph reads it gets results of a mixture, as everywhere where arrays are shared.
//!
//! Sources: the C interface of DLPack 1.1 (dmlc/dlpack, `dlpack.h`), its Python part in the array interface standard
//! (`__dlpack__`), and PEP 3118. This crate knows no graph, no device and no model.

mod abi;
mod copy;
mod dtype;
mod error;
mod export;
mod foreign_array;
mod import;
mod in_place;
mod memory;
mod tensor;

pub use copy::copied;
pub use dtype::{name_of, parse};
pub use error::ArrayError;
pub use import::taken;
pub use in_place::{InPlace, Number};
pub use tensor::PyTensor;
