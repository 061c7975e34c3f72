//! `yirage scale`: how long a model's steps take on several devices, here or elsewhere.

use crate::console::Console;
use crate::failure::CliFailure;
use crate::locate::locate;
use crate::options::Layers;
use crate::scale::{
    LocalScale, PlannedRankStep, RankPlans, ScaleSettings, ScaleStep, StageShape, read_fleet, show_fleet, show_local,
};
use crate::settings::EngineSettings;
use std::collections::BTreeMap;
use std::path::Path;
use yirage_advisor::scale::{DividedStep, Division, Fleet, divisions};
use yirage_model::Checkpoint;

/// Runs the command.
///
/// # Errors
/// Whatever is wrong with options, files, models or devices.
pub(crate) fn run(layers: &Layers, console: &Console) -> Result<(), CliFailure> {
    let settings = ScaleSettings::resolve(layers)?;
    let located = locate(layers, console)?;
    let checkpoint = Checkpoint::open(&located.path)?;
    let engine = EngineSettings::resolve(layers)?;
    let (device, notes) = engine.open(layers)?;
    notes.iter().for_each(|note| console.note(note));
    let plans = RankPlans { generate: settings.generate, checkpoint: &checkpoint, device, settings: engine };
    match &settings.fleet {
        Some(file) => elsewhere(file, &settings, &plans, console),
        None => here(&settings, &plans, &located.name, layers, console),
    }
}

/// Ranks of this machine, measured.
fn here(
    settings: &ScaleSettings,
    plans: &RankPlans<'_>,
    name: &str,
    layers: &Layers,
    console: &Console,
) -> Result<(), CliFailure> {
    let (repetitions, threads) = (settings.repetitions, crate::settings::threads(layers)?);
    let local = LocalScale { layers, console, name, plans, repetitions, threads };
    let mut ranks = Vec::new();
    for &count in &settings.devices {
        match plans.can_share(count)? {
            true => ranks.push(count),
            false => console.note(&format!("{count} ranks: left out, as the model's heads do not divide among them")),
        }
    }
    let mut first = true;
    for &step in &settings.steps {
        local.rows(&ranks, step, &mut |row| show_local(row, std::mem::take(&mut first), console))?;
    }
    console.note(
        "measured: a step of the model; predicted: work (a rank's weights and caches, read as fast as one rank does by as much as \
         all at once are slower), kernels (the other steps of one rank's plan, by turns where ranks are more than processors), \
         links (collectives), and the step itself (what is left of one rank's, and the word to all ranks)",
    );
    Ok(())
}

/// Devices of a file.
fn elsewhere(
    file: &Path,
    settings: &ScaleSettings,
    plans: &RankPlans<'_>,
    console: &Console,
) -> Result<(), CliFailure> {
    let fleet = read_fleet(file)?;
    let stages = plans.stages()?;
    if let StageShape::Whole { why } = &stages {
        console.note(&format!("no stages: {why}"));
    }
    for &step in &settings.steps {
        let planned = SharedSteps::new(step, settings.devices.last().copied().unwrap_or(1), plans)?;
        let all: Vec<_> = settings.devices.iter().map(|&n| (n, planned.ways(n, &stages, &fleet))).collect();
        show_fleet(&fleet, step, &all, console)?;
    }
    console.note(
        "assumed: all devices and links are as the file says and nobody else uses them; nothing of a step is at the same time \
         as another part; sequences go through stages together; replicas share nothing; plans are those of this backend",
    );
    Ok(())
}

/// What one rank does in a step, by how many share every layer.
struct SharedSteps {
    step: ScaleStep,
    by_ranks: BTreeMap<u32, PlannedRankStep>,
}

impl SharedSteps {
    /// Of every power of two ranks, so many at most, that can share the model.
    fn new(step: ScaleStep, most: u32, plans: &RankPlans<'_>) -> Result<SharedSteps, CliFailure> {
        let mut by_ranks = BTreeMap::new();
        for ranks in (0..32).map(|power| 1u32 << power).take_while(|&ranks| ranks <= most) {
            if plans.can_share(ranks)? {
                by_ranks.insert(ranks, plans.step(ranks, step)?);
            }
        }
        Ok(SharedSteps { step, by_ranks })
    }

    /// The step of each way to divide the model among so many devices.
    fn ways(&self, devices: u32, stages: &StageShape, fleet: &Fleet) -> Vec<DividedStep> {
        let (layers, width) = match *stages {
            StageShape::Layers { layers, width } => (layers, width),
            StageShape::Whole { .. } => (1, 0),
        };
        let rows = f64::from(self.step.sequences) * f64::from(width) * size_of::<f32>() as f64;
        let ways = divisions(devices, layers, &|ranks| self.by_ranks.contains_key(&ranks));
        let of = |division: Division| {
            let planned = self.by_ranks.get(&division.tp)?;
            Some(fleet.divided(division, self.step.sequences, &planned.step, planned.resident, rows))
        };
        ways.into_iter().filter_map(of).collect()
    }
}
