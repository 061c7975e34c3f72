//! What a device holds from load to load: weights as it keeps them, and the blocks of caches. Knows no plan.

mod packing;
mod sink;
mod state;
mod weight;

pub(crate) use packing::packing;
pub(crate) use sink::Sink;
pub(crate) use state::CpuState;
pub(crate) use weight::{CpuWeight, Elements, Matrix, PRODUCT_LAYOUT, Rows, adopt, packed_bytes};
