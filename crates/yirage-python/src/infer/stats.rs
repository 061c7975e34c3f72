//! What plans are kept, by InfiniLM's names.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use yirage_plancache::Stats;

/// InfiniLM's eleven keys.
pub(super) fn dict<'py>(py: Python<'py>, stats: &Stats) -> PyResult<Bound<'py, PyDict>> {
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
