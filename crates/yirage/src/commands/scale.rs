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
use std::collections::btree_map::Entry;
use std::path::Path;
use yirage_advisor::scale::{DividedStep, Fleet, divisions};
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
    let mut planned = SharedSteps { plans, by_ranks: BTreeMap::new() };
    for &step in &settings.steps {
        let mut all = Vec::new();
        for &devices in &settings.devices {
            all.push((devices, planned.ways(devices, step, &stages, &fleet)?));
        }
        show_fleet(&fleet, step, &all, console)?;
    }
    console.note(
        "assumed: all devices and links are as the file says and nobody else uses them; nothing of a step is at the same time \
         as another part; sequences go through stages together; replicas share nothing; plans are those of this backend",
    );
    Ok(())
}

/// What one rank does in a step, by how many share every layer: nothing where so many cannot.
struct SharedSteps<'a> {
    plans: &'a RankPlans<'a>,
    by_ranks: BTreeMap<(u32, ScaleStep), PlannedRankStep>,
}

impl SharedSteps<'_> {
    /// The step of each way to divide the model and the sequences of a step among so many devices.
    fn ways(
        &mut self,
        devices: u32,
        step: ScaleStep,
        stages: &StageShape,
        fleet: &Fleet,
    ) -> Result<Vec<DividedStep>, CliFailure> {
        let (layers, width) = match *stages {
            StageShape::Layers { layers, width } => (layers, width),
            StageShape::Whole { .. } => (1, 0),
        };
        let mut able = Vec::new();
        for ranks in (0..32).map(|power| 1u32 << power).take_while(|&ranks| ranks <= devices) {
            if self.plans.can_share(ranks)? {
                able.push(ranks);
            }
        }
        let mut ways = Vec::new();
        for division in divisions(devices, layers, step.sequences, &|ranks| able.contains(&ranks)) {
            let of_replica = ScaleStep { sequences: division.sequences, ..step };
            let planned = match self.by_ranks.entry((division.tp, of_replica)) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(self.plans.step(division.tp, of_replica)?),
            };
            let rows = f64::from(division.sequences) * f64::from(width) * size_of::<f32>() as f64;
            ways.push(fleet.divided(division, &planned.step, planned.resident, rows));
        }
        Ok(ways)
    }
}
