//! A model, as an engine runs it.

use super::step::StepSizeOptions;
use super::{ExplainRun, ExplainRunFn, ExplainedPlan, show};
use crate::console::Console;
use crate::failure::CliFailure;
use crate::locate::locate;
use crate::options::Layers;
use crate::settings::EngineSettings;
use std::sync::Arc;
use std::time::{Duration, Instant};
use yirage_engine::scheduler::FinishReason;
use yirage_engine::{CacheSize, Engine, EngineOptions, Event, Request, Speculation, plan_step};
use yirage_explain::PlanTimings;
use yirage_hal::Device;
use yirage_ir::rng::Rng;
use yirage_model::Checkpoint;
use yirage_plan::Plan;

/// Steps of the sizes in question: more than the choice of an executor takes.
const STEPS: u32 = 40;
/// Fewest of them, whatever they take.
const FEWEST: u32 = 3;
/// No further one begins when so much time is over.
const ENOUGH: Duration = Duration::from_secs(20);
/// Tasks whose times are kept, of all workers together.
const SPANS: usize = 1 << 20;

/// Explains a model.
///
/// # Errors
/// Whatever is wrong with options, files or the device.
pub(super) fn explain(
    sizes: &StepSizeOptions,
    measure: bool,
    layers: &Layers,
    console: &Console,
) -> Result<(), CliFailure> {
    let mut settings = EngineSettings::resolve(layers)?;
    let options = &mut settings.options;
    options.max_seqs = sizes.seqs;
    options.chunk = sizes.tokens;
    options.cache = CacheSize::Sequences(sizes.seqs);
    options.prefix_cache = false;
    options.speculation = Speculation::default();
    options.context = Some(sizes.longest().saturating_add(STEPS + 1));
    let located = locate(layers, console)?;
    let checkpoint = Checkpoint::open(&located.path)?;
    let (device, notes) = settings.open(layers)?;
    notes.iter().for_each(|note| console.note(note));
    let mut passes = Vec::new();
    let step = plan_step(&checkpoint, &*device, &settings.options, sizes.tokens, &mut passes)?;
    let planned = ExplainedPlan { plan: step.plan, passes, sizes: step.sizes };
    let mut run = || steps(&checkpoint, &device, &settings.options, &planned.plan, sizes, console);
    show(&*device, &planned, sizes, measure.then_some(&mut run as ExplainRunFn<'_>), layers, console)
}

/// Loads the model and runs steps of these sizes.
fn steps(
    checkpoint: &Checkpoint,
    device: &Arc<dyn Device>,
    options: &EngineOptions,
    plan: &Plan,
    sizes: &StepSizeOptions,
    console: &Console,
) -> Result<ExplainRun, CliFailure> {
    let profiler = device.profile(SPANS / device.target().queues() as usize)?;
    let bar = console.progress("loading", checkpoint.total_bytes(), 0);
    let mut progress = |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    };
    let mut engine = Engine::load(checkpoint, device.clone(), options, &mut progress)?;
    // Now rather than beside what is measured.
    engine.settle(&mut progress);
    bar.finish_and_clear();
    engine.notices().iter().for_each(|notice| console.note(&notice.to_string()));
    console.note("measuring");
    run(&mut engine, sizes)?;
    let profile = profiler.profile();
    let measured = PlanTimings::new(plan, &sizes.dims(), &profile);
    let executors = engine.executors();
    let chosen = executors.iter().find(|(bucket, _, _)| *bucket == plan.bucket).map(|&(_, kind, why)| (kind, why));
    let variant = engine.facts().variant.as_ref().map(ToString::to_string);
    Ok(ExplainRun { chosen, variant, measured, profile })
}

/// Steps in which every sequence decodes, or prompts that are as long as the step, again and again.
fn run(engine: &mut Engine, sizes: &StepSizeOptions) -> Result<(), CliFailure> {
    let mut rng = Rng::new(1);
    let vocabulary = u64::from(engine.facts().vocabulary.max(1));
    let decodes = sizes.tokens == sizes.seqs;
    let began = Instant::now();
    let mut ran = 0;
    while ran < STEPS && (ran < FEWEST || began.elapsed() < ENOUGH) {
        for span in sizes.spans() {
            let prompt = (0..span.tokens).map(|_| rng.below(vocabulary) as u32).collect();
            engine.add(Request::greedy(prompt, if decodes { STEPS } else { 1 }))?;
        }
        while !engine.is_idle() && (ran < FEWEST || began.elapsed() < ENOUGH) {
            no_error(&engine.step()?)?;
            ran += 1;
        }
    }
    Ok(())
}

fn no_error(events: &[Event]) -> Result<(), CliFailure> {
    for event in events {
        if let Event::Finished { reason: FinishReason::Error(why), .. } = event {
            return Err(CliFailure::Other(format!("a step failed: {why}")));
        }
    }
    Ok(())
}
