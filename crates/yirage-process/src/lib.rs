//! What a system ends or deceives a process with, made errors that the process can tell: memory that is refused
//! ([`last_resort`]), files that may not become larger ([`file_size_limits_are_errors`]), a standard output that nobody
//! opened ([`standard_output_was_closed`]). And what only the owner of a process may do for others on its machine: give memory
//! back that is free ([`give_back_free_memory`]).
//!
//! All of it concerns a whole process, so only the owner of one, a command, uses this crate; libraries never do. It knows
//! nothing of models or devices.

mod closed;
mod file_size;
mod free_memory;
pub mod last_resort;

pub use closed::standard_output_was_closed;
pub use file_size::file_size_limits_are_errors;
pub use free_memory::give_back_free_memory;
