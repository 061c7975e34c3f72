//! The tests of this crate as one program: many take longer to link than to run.
#![allow(clippy::unwrap_used)] // a test may stop at anything unexpected

#[cfg(unix)] // pages that nobody may touch
mod general_contract;
mod general_copy;
mod general_forms;
mod general_map;
#[cfg(unix)] // pages that nobody may touch
mod general_moves;
mod general_reduce;
mod general_support;
mod levels;
mod linear_bfdot;
mod linear_kernels;
mod linear_pack;
mod linear_support;
mod linear_tdpbf16ps;
mod linear_variants;
mod rows_choice;
mod rows_reference;
