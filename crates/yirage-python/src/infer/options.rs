//! What an engine is asked for.

use crate::failure::{Failure, Outcome};
use pyo3::prelude::*;
use yirage_engine::ForwardOptions;
use yirage_plan::Precision;
use yirage_plancache::CacheOptions;

/// `yirage.FusionConfig`.
#[derive(FromPyObject)]
pub(super) struct FusionConfig {
    enable_fusion: bool,
    enable_cache: bool,
    fallback_on_error: bool,
    pub(super) debug_mode: bool,
    max_graph_size: Option<usize>,
    min_tensor_elements: u64,
    min_nodes_for_fusion: usize,
    cache_bytes: Option<u64>,
}

/// How its forward pass runs.
pub(super) fn options(
    fusion: Option<&FusionConfig>,
    warmup: u32,
    precision: &str,
    kv: Option<&str>,
    context: Option<u32>,
) -> Outcome<ForwardOptions> {
    let usual = CacheOptions::default();
    let precision = match precision {
        "exact" => Precision::Exact,
        "fast" => Precision::Fast,
        other => return Err(Failure::option(format!("precision={other:?}: 'fast' or 'exact' is wanted"))),
    };
    let plans = match fusion {
        None => CacheOptions { precision, warmup, ..usual },
        Some(of) => CacheOptions {
            enable_fusion: of.enable_fusion,
            fallback_on_error: of.fallback_on_error,
            precision,
            warmup,
            bytes: if of.enable_cache { of.cache_bytes.unwrap_or(usual.bytes) } else { 0 },
            max_graph_size: of.max_graph_size,
            min_tensor_elements: of.min_tensor_elements,
            min_nodes_for_fusion: of.min_nodes_for_fusion,
            ..usual
        },
    };
    Ok(ForwardOptions { kv: kv.map_or(Ok(None), crate::dtype::of_cache)?, context, plans })
}
