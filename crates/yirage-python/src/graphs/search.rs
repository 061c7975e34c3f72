//! `superoptimize`: the search for a faster graph, from Python.

use crate::backends::{self, Chosen};
use crate::failure::{PyFailure, PyOutcome};
use crate::log::{Level, all, say};
use crate::process;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ops::ControlFlow;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use yirage_hub::HubEnv;
use yirage_ir::Graph;
use yirage_tune::limits::DISK_BYTES;
use yirage_tune::{SearchPreset, SearchStatus, SuperOptions, TuneCache, TuneCacheFolder};

/// How often Ctrl-C is looked for.
const LOOK_UP: Duration = Duration::from_millis(50);

/// The arguments of `superoptimize`, by their names.
pub(super) struct SuperoptimizeArgs {
    pub(super) imaps: Option<Vec<[i32; 3]>>,
    pub(super) omaps: Option<Vec<[i32; 3]>>,
    pub(super) griddims: Option<Vec<[u32; 3]>>,
    pub(super) blockdims: Option<Vec<[u32; 3]>>,
    pub(super) fmaps: Option<Vec<i32>>,
    pub(super) franges: Option<Vec<u32>>,
    pub(super) verbose: bool,
    pub(super) config: Option<String>,
    pub(super) warmup_iters: u32,
    pub(super) profile_iters: u32,
    pub(super) use_graph_dataset: bool,
    pub(super) use_cached_graphs: bool,
    pub(super) save_codes: bool,
    pub(super) is_formal_verified: bool,
    pub(super) time_limit: Option<f64>,
    pub(super) budget: Option<u64>,
}

impl SuperoptimizeArgs {
    fn options(self) -> PyOutcome<SuperOptions> {
        let usual = SuperOptions::default();
        let unknown =
            |name: &str| PyFailure::option(format!("config={name:?}: None, 'attention', 'lora' or 'mlp' is wanted"));
        let config = self.config.map(|name| SearchPreset::parse(&name).ok_or_else(|| unknown(&name))).transpose()?;
        let limit = |seconds: f64| {
            Duration::try_from_secs_f64(seconds)
                .map_err(|e| PyFailure::option(format!("time_limit={seconds}: {e}; seconds are wanted")))
        };
        Ok(SuperOptions {
            imaps: self.imaps,
            omaps: self.omaps,
            griddims: self.griddims,
            blockdims: self.blockdims,
            fmaps: self.fmaps,
            franges: self.franges,
            config,
            warmup_iters: self.warmup_iters,
            profile_iters: self.profile_iters,
            use_graph_dataset: self.use_graph_dataset,
            use_cached_graphs: self.use_cached_graphs,
            save_codes: self.save_codes,
            is_formal_verified: self.is_formal_verified,
            budget: self.budget.unwrap_or(usual.budget),
            time_limit: self.time_limit.map(limit).transpose()?,
            ..usual
        })
    }
}

/// Kept results of this process, and of the folder where other starts find them.
fn cache() -> &'static TuneCache {
    static CACHE: OnceLock<TuneCache> = OnceLock::new();
    CACHE.get_or_init(|| {
        let env = HubEnv::from_env();
        TuneCache::new((!env.homeless).then(|| TuneCacheFolder::new(env.graphs_folder(), DISK_BYTES)))
    })
}

/// How often searches found kept results, and how often they did not.
#[pyfunction]
pub(super) fn search_counters(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let (counters, shown) = (cache().counters(), PyDict::new(py));
    shown.set_item("memory_hits", counters.memory_hits)?;
    shown.set_item("disk_hits", counters.disk_hits)?;
    shown.set_item("misses", counters.misses)?;
    shown.set_item("refusals", counters.refusals)?;
    shown.set_item("removed", counters.removed)?;
    Ok(shown)
}

/// The fastest graph that computes the same, and what was said on the way.
pub(super) fn superoptimize(
    py: Python<'_>,
    graph: &Graph,
    chosen: &Chosen,
    arguments: SuperoptimizeArgs,
) -> PyOutcome<(Graph, Vec<String>)> {
    process::check()?;
    let level = if arguments.verbose { Level::Warning } else { Level::Info };
    let options = arguments.options()?;
    let device = backends::device(py, chosen, 0)?;
    let mut raised = None;
    let mut looked = Instant::now();
    let outcome = py.detach(|| {
        let mut watch = |_: &SearchStatus| {
            if looked.elapsed() < LOOK_UP {
                return ControlFlow::Continue(());
            }
            looked = Instant::now();
            match Python::attach(|py| py.check_signals()) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    raised = Some(error);
                    ControlFlow::Break(())
                }
            }
        };
        yirage_tune::superoptimize(graph, &*device, &options, cache(), &mut watch)
    });
    if let Some(error) = raised {
        return Err(PyFailure::Raised(error));
    }
    let outcome = outcome?;
    all(py, level, &outcome.notes)?;
    let mut notes = outcome.notes.clone();
    for measured in &outcome.measured {
        notes.push(format!("candidate by {}: {}", measured.rules.join(", "), measured.verdict));
    }
    let last = match &outcome.certificate {
        None => "the input graph stays: no candidate was measurably faster, twice".to_owned(),
        Some(certificate) => {
            notes.push("certificate: the candidate that was taken is proved equal to the input graph".into());
            notes.extend(certificate.in_words().into_iter().map(|line| format!("  {line}")));
            format!("chosen: the candidate by {}", outcome.rules.join(", "))
        }
    };
    say(py, level, &last)?;
    notes.push(last);
    Ok((outcome.graph, notes))
}
