//! What a device holds from load to load: weights as it keeps them, and the blocks of caches. Knows no plan.

mod kv_cache;
mod packing;
mod sink;
mod weight;

pub(crate) use kv_cache::{CpuKvCache, KV_LAYOUT, kv_cache_layouts};
pub(crate) use packing::packing;
pub(crate) use sink::CpuWeightSink;
pub(crate) use weight::{
    CpuWeight, DecodedRows, MATMUL_LAYOUT, MatmulWeight, WeightElements, adopt, packed_bytes, weight_layouts,
};
