//! What an engine is asked for.

use crate::failure::{PyFailure, PyOutcome};
use crate::fusion::FusionConfig;
use yirage_engine::ForwardOptions;
use yirage_plan::Precision;
use yirage_plancache::CacheOptions;

/// How its forward pass runs.
pub(super) fn options(
    fusion: Option<&FusionConfig>,
    warmup: u32,
    precision: &str,
    kv: Option<&str>,
    context: Option<u32>,
) -> PyOutcome<ForwardOptions> {
    let precision = match precision {
        "exact" => Precision::Exact,
        "fast" => Precision::Fast,
        other => return Err(PyFailure::option(format!("precision={other:?}: 'fast' or 'exact' is wanted"))),
    };
    let plans = fusion.map_or_else(CacheOptions::default, FusionConfig::options);
    let plans = CacheOptions { precision, warmup, ..plans };
    Ok(ForwardOptions { kv: kv.map_or(Ok(None), crate::dtype::of_cache)?, context, plans, ..ForwardOptions::default() })
}
