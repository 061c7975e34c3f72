//! The tests of this crate as one program: many take longer to link than to run.
#![allow(clippy::unwrap_used)] // a test may stop at anything unexpected

mod activation;
#[cfg(target_arch = "x86_64")] // no other processor has matrix registers that are configured
mod amx;
#[cfg(unix)] // pages that nobody may touch
mod general_contract;
mod general_copy;
mod general_forms;
mod general_hot;
mod general_map;
#[cfg(unix)] // pages that nobody may touch
mod general_moves;
mod general_operand;
mod general_reduce;
mod general_support;
mod kv_blocks;
mod levels;
mod limits;
mod linear_bfdot;
mod linear_cut;
mod linear_kernels;
mod linear_levels;
mod linear_pack;
mod linear_support;
mod linear_tdpbf16ps;
mod linear_variants;
mod memory;
mod recurrent;
mod rows_choice;
mod rows_reference;
mod sample_select;
mod simd_lanes;
#[cfg(target_arch = "x86_64")] // no other processor has kernels that read pairs
mod winograd;
