//! Backends as shared libraries of their makers, behind a small interface of C: `include/yirage_backend.h`.
//!
//! A library gives memory, a queue and a compiler of kernels; the kernels are those that every accelerator shares, as C++ in the
//! dialect that a device names. [`PluginBackend`] is such a library by a name and a path, which is loaded when somebody asks for
//! its devices and never before. What a library answers is checked before it is believed; what its code does to this process,
//! nobody can check: loading one is a decision of whoever names it.
//!
//! Unknown here: where names and paths come from, and any vendor.

mod abi;
mod backend;
mod command;
mod device;
mod download;
mod driver;
mod kernels;
mod library;
mod status;

pub use backend::PluginBackend;
pub use driver::PluginDriver;
pub use library::PluginError;
