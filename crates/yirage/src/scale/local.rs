//! Ranks of this machine: what they are measured to do, what follows for a step, and what the step takes.
//!
//! One rank's own step tells how fast it reads its weights, what the steps of its plan take beside, and what is left around them.
//! Small graphs on all ranks at once tell how reading suffers where others read as well, and what a word to the others takes.

use super::plans::{CHUNK, PlannedRankStep, RankPlans, ScaleStep};
use super::row::{LocalRow, median};
use crate::bench::Bench;
use crate::commands::bench::{fit, load_on};
use crate::console::Console;
use crate::failure::CliFailure;
use crate::options::Layers;
use crate::settings::EngineSettings;
use std::sync::Arc;
use yirage_advisor::scale::{DeviceFigures, RankFigures, StepTime, measure_ranks};
use yirage_hal::{Device, HalError};
use yirage_registry::default_threads;

/// Tasks whose times are kept, of all workers together.
const SPANS: usize = 1 << 20;

/// Measures ranks of this machine with one model.
pub(crate) struct LocalScale<'a> {
    pub(crate) layers: &'a Layers,
    pub(crate) console: &'a Console,
    /// The model's name.
    pub(crate) name: &'a str,
    pub(crate) plans: &'a RankPlans<'a>,
    pub(crate) repetitions: u32,
    pub(crate) threads: Option<usize>,
}

/// One rank alone.
struct AloneFigures {
    row: LocalRow,
    ranks: RankFigures,
}

impl LocalScale<'_> {
    /// A row for each number of ranks.
    ///
    /// # Errors
    /// Whatever is wrong with the model, the ranks or the device.
    pub(crate) fn rows(
        &self,
        ranks: &[u32],
        step: ScaleStep,
        done: &mut dyn FnMut(&LocalRow) -> Result<(), CliFailure>,
    ) -> Result<(), CliFailure> {
        let alone = self.alone(step)?;
        for &ranks in ranks {
            match ranks {
                1 => done(&alone.row)?,
                _ => done(&self.several(ranks, step, &alone)?)?,
            }
        }
        Ok(())
    }

    /// One rank, whose step is told by its parts.
    fn alone(&self, step: ScaleStep) -> Result<AloneFigures, CliFailure> {
        self.begin(1, step);
        let planned = self.plans.step(1, step)?;
        let ranks = self.figures(1, &planned, step.sequences)?;
        let runs = self.step_seconds(1, step)?;
        let seconds = median(&runs);
        let (work, kernels) = self.parts(&planned, step, seconds)?;
        let device = DeviceFigures {
            bytes_per_second: planned.step.work.bytes() / work,
            ops_per_second: None,
            step_seconds: seconds - work - kernels,
            kernel_seconds: kernels / planned.step.kernels.max(1) as f64,
        };
        let row = LocalRow::new(1, step, (&runs, StepTime::alone(&planned.step, &device)), device, None);
        Ok(AloneFigures { row, ranks })
    }

    fn several(&self, ranks: u32, step: ScaleStep, alone: &AloneFigures) -> Result<LocalRow, CliFailure> {
        self.begin(ranks, step);
        let planned = self.plans.step(ranks, step)?;
        let figures = self.figures(ranks, &planned, step.sequences)?;
        let Some(link) = figures.link else { return Err(CliFailure::Other(format!("{ranks} ranks without a link"))) };
        let of_one = &alone.row.device;
        let device = DeviceFigures {
            bytes_per_second: of_one.bytes_per_second * figures.bytes_per_second / alone.ranks.bytes_per_second,
            step_seconds: of_one.step_seconds + (figures.smallest - alone.ranks.smallest).max(0.0),
            ..*of_one
        };
        let time = StepTime::shared(&planned.step, &device, &link, self.crowd(ranks));
        let runs = self.step_seconds(ranks, step)?;
        Ok(LocalRow::new(ranks, step, (&runs, time), device, Some(link)))
    }

    fn begin(&self, ranks: u32, step: ScaleStep) {
        self.console.note(&format!("{ranks} ranks, {} sequences behind {} positions", step.sequences, step.depth));
    }

    /// Seconds of reading and arithmetic, and of the other steps of the plan, in a step of one rank that takes so many.
    fn parts(&self, planned: &PlannedRankStep, step: ScaleStep, seconds: f64) -> Result<(f64, f64), CliFailure> {
        let (settings, device) = self.open(1, step)?;
        let profiler = match device.profile(SPANS / device.target().queues() as usize) {
            Ok(profiler) => profiler,
            Err(HalError::Unsupported { why, .. }) => {
                self.console.note(&format!("the whole step of one rank counts as reading: {why}"));
                return Ok((seconds, 0.0));
            }
            Err(error) => return Err(error.into()),
        };
        let mut bench = self.bench(settings, device)?;
        bench.warm_up(&step.test(self.plans.generate))?;
        let Some(shares) = planned.shares(&profiler.profile()) else {
            self.console.note("the whole step of one rank counts as reading: no step of this plan ran alone");
            return Ok((seconds, 0.0));
        };
        let of_plan = shares.seconds.min(seconds);
        Ok((of_plan * shares.working, of_plan * (1.0 - shares.working)))
    }

    /// What small graphs tell of so many ranks, with products as the step has them.
    fn figures(&self, ranks: u32, planned: &PlannedRankStep, sequences: u32) -> Result<RankFigures, CliFailure> {
        let (device, _) = self.settings(ranks)?.open(self.layers)?;
        Ok(measure_ranks(&*device, &planned.products(ranks, sequences)?)?)
    }

    /// What steps of the model take: the mean of each run.
    fn step_seconds(&self, ranks: u32, step: ScaleStep) -> Result<Vec<f64>, CliFailure> {
        let test = step.test(self.plans.generate);
        let (settings, device) = self.open(ranks, step)?;
        let mut bench = self.bench(settings, device)?;
        bench.warm_up(&test)?;
        let mut seconds = Vec::new();
        for turn in 0..self.repetitions {
            let sample = bench.run(&test, turn)?;
            seconds.push(sample.seconds / sample.steps as f64);
        }
        Ok(seconds)
    }

    /// So many ranks, with room for the step.
    fn open(&self, ranks: u32, step: ScaleStep) -> Result<(EngineSettings, Arc<dyn Device>), CliFailure> {
        let mut settings = self.settings(ranks)?;
        fit(&mut settings.options, CHUNK, &[step.test(self.plans.generate)]);
        let (device, notes) = settings.open(self.layers)?;
        notes.iter().for_each(|note| self.console.note(note));
        Ok((settings, device))
    }

    fn bench(&self, settings: EngineSettings, device: Arc<dyn Device>) -> Result<Bench, CliFailure> {
        let engine = load_on(self.plans.checkpoint, &device, &settings.options, self.name, self.console)?;
        Bench::new(engine, device, settings.options.precision, CHUNK, None)
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
