//! A graph on a device, fused and not, and what a search makes of it, timed in rounds between readings of the device's ceilings.

use super::inputs::{Arrays, arrays};
use super::least::{GraphCeilings, LeastTime, LeastWork};
use super::settings::GraphBenchCase;
use super::timed_search::TimedSearch;
use crate::console::Console;
use crate::failure::CliFailure;
use std::time::Duration;
use yirage_hal::Device;
use yirage_ir::Graph;
use yirage_plancache::{CallError, CallOptions, Callable, HostArray};
use yirage_tune::{TimedStep, Timing};

/// How long a round runs each of the two.
const ROUND: Duration = Duration::from_millis(60);
/// How long each runs before anything counts.
const WARM_UP: Duration = Duration::from_millis(200);

/// A graph that is ready to be timed.
pub(crate) struct TimedGraph {
    fused: CallableStep,
    unfused: CallableStep,
    search: Option<SearchedGraph>,
    work: LeastWork,
    limits: GraphCeilings,
}

/// What a search found.
struct SearchedGraph {
    run: CallableStep,
    searched: TimedSearch,
}

/// What a round measured.
#[derive(Clone, Debug)]
pub(crate) struct Round {
    /// Of steps with fused ops.
    pub(crate) fused: Timing,
    /// Of steps in which each op is one of its own.
    pub(crate) unfused: Timing,
    /// Of steps of what a search found, where there was one.
    pub(crate) search: Option<Timing>,
    /// What the ceilings around the fused steps allow; none where the device does not measure itself.
    pub(crate) least: Option<LeastTime>,
}

impl TimedGraph {
    /// Builds the graph, compiles and loads it twice, and runs both until they are warm. With a search, what it finds is
    /// the third.
    ///
    /// # Errors
    /// What the compiler, the device or the search says.
    pub(crate) fn new(
        device: &dyn Device,
        case: &GraphBenchCase,
        search: bool,
        console: &Console,
    ) -> Result<TimedGraph, CliFailure> {
        let graph = case.workload.graph(case.parameters()).map_err(|e| CliFailure::Other(e.to_string()))?;
        let Arrays { weights, step_inputs: inputs } = arrays(&graph)?;
        let load = |graph: &Graph, fuse: bool| -> Result<CallableStep, CliFailure> {
            let options = CallOptions { fuse, ..CallOptions::default() };
            let mut run =
                CallableStep { graph: Callable::new(device, graph, &weights, &options)?, inputs: inputs.clone() };
            Timing::for_time(WARM_UP, &mut run)?;
            Ok(run)
        };
        let (fused, unfused) = (load(&graph, true)?, load(&graph, false)?);
        let found = match search {
            true => {
                let searched = TimedSearch::new(device, &graph, case, console)?;
                Some(SearchedGraph { run: load(&searched.outcome.graph, true)?, searched })
            }
            false => None,
        };
        Ok(TimedGraph {
            fused,
            unfused,
            search: found,
            work: LeastWork::of(&graph),
            limits: GraphCeilings::new(device, case.dtype)?,
        })
    }

    /// Times each once.
    ///
    /// # Errors
    /// What the device says.
    pub(crate) fn round(&mut self) -> Result<Round, CliFailure> {
        let before = self.limits.read()?;
        let fused = Timing::for_time(ROUND, &mut self.fused)?;
        let after = self.limits.read()?;
        let unfused = Timing::for_time(ROUND, &mut self.unfused)?;
        let found = self.search.as_mut().map(|found| Timing::for_time(ROUND, &mut found.run)).transpose()?;
        Ok(Round { fused, unfused, search: found, least: self.limits.least(&self.work, &before.between(&after)) })
    }

    /// The kernels of the fused plan, in order.
    pub(crate) fn kernels(&self) -> &[String] {
        self.fused.graph.kernels()
    }

    /// What a search found, and its kernels in order.
    pub(crate) fn searched(&self) -> Option<(&TimedSearch, &[String])> {
        self.search.as_ref().map(|found| (&found.searched, found.run.graph.kernels()))
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
struct CallableStep {
    graph: Callable,
    inputs: Vec<HostArray>,
}

impl TimedStep for CallableStep {
    type Error = CallError;

    fn step(&mut self) -> Result<(), CallError> {
        self.graph.run(&self.inputs)
    }
}
