//! Ranks of this machine: what they are measured to do, what follows for a step, and what the step takes.

use super::plans::{PlannedRankStep, RankPlans, ScaleStep};
use super::print::LocalRow;
use crate::bench::BenchTest;
use crate::commands::bench::load_with;
use crate::console::Console;
use crate::failure::CliFailure;
use crate::options::Layers;
use crate::settings::EngineSettings;
use yirage_advisor::scale::{DeviceFigures, LinkFigures, StepTime, measure_link, measure_products, measure_smallest};
use yirage_registry::default_threads;
use yirage_session::LocalModel;

/// Tokens of a step that begins sequences.
const CHUNK: u32 = 512;

/// Measures ranks of this machine with one model.
pub(crate) struct LocalScale<'a> {
    pub(crate) layers: &'a Layers,
    pub(crate) console: &'a Console,
    pub(crate) located: &'a LocalModel,
    pub(crate) plans: &'a RankPlans<'a>,
    pub(crate) generate: u32,
    pub(crate) repetitions: u32,
    pub(crate) threads: Option<usize>,
}

impl LocalScale<'_> {
    /// A row for each number of ranks: the steps of plans take what they are measured to take on one rank; reading, links and the
    /// smallest step are measured on as many ranks as are told of, and the steps of the model beside them.
    ///
    /// # Errors
    /// Whatever is wrong with the model, the ranks or the device.
    pub(crate) fn rows(
        &self,
        ranks: &[u32],
        step: ScaleStep,
        done: &mut dyn FnMut(&LocalRow) -> Result<(), CliFailure>,
    ) -> Result<(), CliFailure> {
        let alone = self.measured(1, step, None)?;
        for &ranks in ranks {
            match ranks {
                1 => done(&alone)?,
                _ => done(&self.measured(ranks, step, Some(&alone.device))?)?,
            }
        }
        Ok(())
    }

    /// One row; of one rank alone the steps of its plan take what is left of its measured step.
    fn measured(&self, ranks: u32, step: ScaleStep, alone: Option<&DeviceFigures>) -> Result<LocalRow, CliFailure> {
        self.console.note(&format!("{ranks} ranks, {} sequences behind {} positions", step.sequences, step.depth));
        // Each token of the run is a step behind one position more.
        let middle = ScaleStep { depth: step.depth.max(1) + self.generate / 2, ..step };
        let planned = self.plans.step(ranks, middle)?;
        let (smallest, bytes_per_second, link) = self.figures(ranks, &planned, step.sequences)?;
        let seconds = self.step_seconds(ranks, step)?;
        let figures =
            DeviceFigures { bytes_per_second, ops_per_second: None, step_seconds: smallest, kernel_seconds: 0.0 };
        let kernel_seconds = match alone {
            Some(alone) => alone.kernel_seconds,
            None => {
                let rest = median(&seconds) - StepTime::alone(&planned.step, &figures).seconds();
                rest.max(0.0) / planned.step.kernels.max(1) as f64
            }
        };
        let device = DeviceFigures { kernel_seconds, ..figures };
        let time = match &link {
            Some(link) => StepTime::shared(&planned.step, &device, link, ranks, self.crowd(ranks)),
            None => StepTime::alone(&planned.step, &device),
        };
        Ok(LocalRow::new(ranks, step, (&seconds, time), device, link))
    }

    /// The smallest step, the reading of weights, and the link between so many ranks.
    fn figures(
        &self,
        ranks: u32,
        planned: &PlannedRankStep,
        sequences: u32,
    ) -> Result<(f64, f64, Option<LinkFigures>), CliFailure> {
        let (device, _) = self.settings(ranks)?.open(self.layers)?;
        let smallest = measure_smallest(&*device)?;
        let products = planned.products(ranks, sequences)?;
        let bytes_per_second = measure_products(&*device, &products, smallest)?;
        let link = (ranks > 1).then(|| measure_link(&*device)).transpose()?;
        Ok((smallest, bytes_per_second, link))
    }

    /// What steps of the model take: the mean of each run.
    fn step_seconds(&self, ranks: u32, step: ScaleStep) -> Result<Vec<f64>, CliFailure> {
        let ScaleStep { sequences, depth } = step;
        let test = BenchTest { prompt: 0, generate: self.generate, depth, sequences };
        let settings = self.settings(ranks)?;
        let (mut bench, _) = load_with(settings, self.layers, self.console, self.located, CHUNK, &[test])?;
        bench.warm_up(&test)?;
        let mut seconds = Vec::new();
        for turn in 0..self.repetitions {
            let sample = bench.run(&test, turn)?;
            seconds.push(sample.seconds / sample.steps as f64);
        }
        Ok(seconds)
    }

    fn settings(&self, ranks: u32) -> Result<EngineSettings, CliFailure> {
        Ok(EngineSettings::for_threads(self.layers, self.threads)?.on_local_ranks(ranks))
    }

    /// How many ranks take turns on each processor.
    fn crowd(&self, ranks: u32) -> f64 {
        let processors = default_threads();
        let threads = self.threads.unwrap_or_else(|| (processors / ranks as usize).max(1));
        f64::from(ranks) * threads as f64 / processors as f64
    }
}

/// The one in the middle; the upper of two. There is one at least.
pub(super) fn median(seconds: &[f64]) -> f64 {
    let mut sorted = seconds.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}
