//! How plans are made and kept, and what is said of them: what every class with a plan cache shares.

use crate::failure::{PyFailure, PyOutcome};
use crate::log::{Level, say};
use crate::numbers::{kind, maybe_whole, whole};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use yirage_plancache::{CacheNotice, CacheOptions, PlanCacheStats};

/// `yirage.FusionConfig`.
pub(crate) struct FusionConfig {
    enable_fusion: bool,
    enable_cache: bool,
    pub(super) fallback_on_error: bool,
    pub(crate) debug_mode: bool,
    max_graph_size: Option<usize>,
    min_tensor_elements: u64,
    min_nodes_for_fusion: usize,
    cache_bytes: Option<u64>,
}

impl<'a, 'py> FromPyObject<'a, 'py> for FusionConfig {
    type Error = PyErr;

    fn extract(of: Borrowed<'a, 'py, PyAny>) -> PyResult<FusionConfig> {
        Ok(FusionConfig {
            enable_fusion: field(&of, "enable_fusion", |flag| flag.extract())?,
            enable_cache: field(&of, "enable_cache", |flag| flag.extract())?,
            fallback_on_error: field(&of, "fallback_on_error", |flag| flag.extract())?,
            debug_mode: field(&of, "debug_mode", |flag| flag.extract())?,
            max_graph_size: field(&of, "max_graph_size", maybe_whole)?,
            min_tensor_elements: field(&of, "min_tensor_elements", whole)?,
            min_nodes_for_fusion: field(&of, "min_nodes_for_fusion", whole)?,
            cache_bytes: field(&of, "cache_bytes", maybe_whole)?,
        })
    }
}

/// A field of the configuration.
fn field<'py, T>(of: &Bound<'py, PyAny>, name: &str, read: impl Fn(&Bound<'py, PyAny>) -> PyResult<T>) -> PyResult<T> {
    let other = |_| PyTypeError::new_err(format!("a `{}` is given: a FusionConfig is wanted", kind(of)));
    let value = of.getattr(name).map_err(other)?;
    let wrong = |why: PyErr| PyFailure::option(format!("FusionConfig.{name}: {}", why.value(of.py())));
    Ok(read(&value).map_err(wrong)?)
}

impl FusionConfig {
    /// The options of a cache.
    pub(crate) fn options(&self) -> CacheOptions {
        let usual = CacheOptions::default();
        CacheOptions {
            enable_fusion: self.enable_fusion,
            fallback_on_error: self.fallback_on_error,
            bytes: if self.enable_cache { self.cache_bytes.unwrap_or(usual.bytes) } else { 0 },
            max_graph_size: self.max_graph_size,
            min_tensor_elements: self.min_tensor_elements,
            min_nodes_for_fusion: self.min_nodes_for_fusion,
            ..usual
        }
    }
}

/// Says what happened beside a result; with `debug` all of it as INFO.
pub(crate) fn tell(py: Python<'_>, all: &[CacheNotice], debug: bool) -> PyOutcome<()> {
    for told in all {
        let level = match told {
            CacheNotice::FellBack { .. } | CacheNotice::Refused { .. } => Level::Warning,
            _ if debug => Level::Info,
            _ => Level::Debug,
        };
        say(py, level, &told.to_string())?;
    }
    Ok(())
}

/// InfiniLM's eleven keys.
pub(crate) fn counts<'py>(py: Python<'py>, stats: &PlanCacheStats) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    found.set_item("enabled", stats.enabled)?;
    found.set_item("fusion_scheduler_available", stats.fusion_available)?;
    found.set_item("cache_size", stats.plans.len())?;
    let counts = [
        ("cache_hits", stats.cache_hits),
        ("cache_misses", stats.cache_misses),
        ("recordings", stats.recordings),
        ("fusion_attempts", stats.fusion_attempts),
        ("fusion_successes", stats.fusion_successes),
        ("fusion_fallbacks", stats.fusion_fallbacks),
    ];
    counts.into_iter().try_for_each(|(name, count)| found.set_item(name, count))?;
    let modes = PyDict::new(py);
    for plan in &stats.plans {
        modes.set_item(format!("{:016x}", plan.id), plan.mode.name())?;
    }
    found.set_item("cached_shapes", modes.keys())?;
    found.set_item("fusion_modes", modes)?;
    Ok(found)
}
