//! A graph on a device, fused and not, timed in rounds between readings of the device's ceilings.

use super::inputs::arrays;
use super::least::{LeastTime, LeastWork, Limits};
use super::searched::{self, Searched};
use super::settings::Case;
use crate::failure::Failure;
use std::time::Duration;
use yirage_call::{Array, CallError, CallOptions, Callable};
use yirage_hal::Device;
use yirage_ir::{Graph, Source};
use yirage_tune::{Step, Timing};

/// How long a round runs each of the two.
const ROUND: Duration = Duration::from_millis(60);
/// How long each runs before anything counts.
const WARM_UP: Duration = Duration::from_millis(200);

/// A graph that is ready to be timed.
pub(crate) struct TimedGraph {
    fused: Run,
    unfused: Run,
    work: LeastWork,
    limits: Limits,
    searched: Option<Searched>,
}

/// What a round measured.
#[derive(Clone, Debug)]
pub(crate) struct Round {
    /// Of steps with fused ops.
    pub(crate) fused: Timing,
    /// Of steps in which each op is one of its own.
    pub(crate) unfused: Timing,
    /// What the ceilings around the fused steps allow; none where the device does not measure itself.
    pub(crate) least: Option<LeastTime>,
}

impl TimedGraph {
    /// Builds the graph, compiles and loads it twice, and runs both until they are warm. With `superoptimize` the fused
    /// one is the fastest that a search finds.
    ///
    /// # Errors
    /// What the compiler, the search or the device says.
    pub(crate) fn new(device: &dyn Device, case: &Case, superoptimize: bool) -> Result<TimedGraph, Failure> {
        let graph = case.workload.graph(case.parameters()).map_err(|e| Failure::Other(e.to_string()))?;
        let options = CallOptions::default();
        let found = superoptimize.then(|| searched::search(&graph, device, options.precision)).transpose()?;
        let (best, searched) = found.map_or((None, None), |(graph, searched)| (Some(graph), Some(searched)));
        let arrays = arrays(&graph)?;
        let fused = Run::load(device, best.as_ref().unwrap_or(&graph), &arrays, &options)?;
        let unfused = Run::load(device, &graph, &arrays, &CallOptions { fuse: false, ..options })?;
        let limits = Limits::new(device, case.dtype)?;
        Ok(TimedGraph { fused, unfused, work: LeastWork::of(&graph), limits, searched })
    }

    /// Times both once.
    ///
    /// # Errors
    /// What the device says.
    pub(crate) fn round(&mut self) -> Result<Round, Failure> {
        let before = self.limits.read()?;
        let fused = Timing::for_time(ROUND, &mut self.fused)?;
        let after = self.limits.read()?;
        let unfused = Timing::for_time(ROUND, &mut self.unfused)?;
        Ok(Round { fused, unfused, least: self.limits.least(&self.work, &before.between(&after)) })
    }

    /// The kernels of the fused plan, in order.
    pub(crate) fn kernels(&self) -> &[String] {
        self.fused.graph.kernels()
    }

    /// What was searched for, if anything was.
    pub(crate) fn searched(&self) -> Option<&Searched> {
        self.searched.as_ref()
    }

    /// How many kernels there are without fusion.
    pub(crate) fn unfused_kernels(&self) -> usize {
        self.unfused.graph.kernels().len()
    }

    /// Bytes that a run has to read and write at least.
    pub(crate) fn bytes(&self) -> f64 {
        self.work.bytes
    }

    /// Operations that a run has to compute at least.
    pub(crate) fn ops(&self) -> f64 {
        self.work.ops
    }
}

/// A loaded graph with its inputs.
struct Run {
    graph: Callable,
    inputs: Vec<Array>,
}

impl Run {
    /// Loads a graph, whose inputs are some of `arrays`, and runs it until it is warm.
    fn load(
        device: &dyn Device,
        graph: &Graph,
        arrays: &[(String, Array)],
        options: &CallOptions,
    ) -> Result<Run, Failure> {
        let is = |name: &str, source| graph.inputs_of(source).any(|id| graph.value(id).name == name);
        let weights: Vec<_> = arrays.iter().filter(|(name, _)| is(name, Source::Weight)).cloned().collect();
        let graph = Callable::new(device, graph, &weights, options)?;
        let of = |(name, _): &(String, _)| arrays.iter().find(|(n, _)| n == name).map(|(_, array)| array.clone());
        let inputs = graph.inputs().iter().filter_map(of).collect();
        let mut run = Run { graph, inputs };
        Timing::for_time(WARM_UP, &mut run)?;
        Ok(run)
    }
}

impl Step for Run {
    type Error = CallError;

    fn step(&mut self) -> Result<(), CallError> {
        self.graph.run(&self.inputs)
    }
}
