//! From options to what is told.

use super::plans::ScaleStep;
use crate::bench::{MAX_REPETITIONS, numbers};
use crate::failure::CliFailure;
use crate::options::Layers;
use crate::ranks::MOST_LOCAL_RANKS;
use std::path::PathBuf;
use yirage_engine::limits::{MAX_CONTEXT, MAX_SEQS};

/// Most devices of a fleet.
const MAX_DEVICES: u32 = 1 << 20;

/// Which numbers of devices, and which steps.
pub(crate) struct ScaleSettings {
    /// Devices, ascending.
    pub(crate) devices: Vec<u32>,
    /// Steps in which each sequence gets one token.
    pub(crate) steps: Vec<ScaleStep>,
    /// The file of a fleet that is not here.
    pub(crate) fleet: Option<PathBuf>,
    /// New tokens of each sequence where steps are measured.
    pub(crate) generate: u32,
    /// Timed runs of those.
    pub(crate) repetitions: u32,
}

impl ScaleSettings {
    /// Reads the options.
    ///
    /// # Errors
    /// [`CliFailure::Usage`] naming the option.
    pub(crate) fn resolve(layers: &Layers) -> Result<ScaleSettings, CliFailure> {
        let fleet = layers.text("fleet").map(PathBuf::from);
        let (usual, most): (&[u32], u32) = match fleet {
            Some(_) => (&[8, 16, 32, 64, 128, 256, 512, 1024], MAX_DEVICES),
            None => (&[1, 2, 4, 8], MOST_LOCAL_RANKS),
        };
        let usual: Vec<u32> = usual.iter().copied().filter(|&devices| devices <= most).collect();
        let mut devices = numbers(layers, "devices", &usual, 1..=most)?;
        devices.sort_unstable();
        devices.dedup();
        let sequences = numbers(layers, "sequences", &[1], 1..=MAX_SEQS)?;
        let depths = numbers(layers, "n-depth", &[0], 0..=MAX_CONTEXT)?;
        let steps =
            depths.iter().flat_map(|&depth| sequences.iter().map(move |&sequences| ScaleStep { sequences, depth }));
        let generate = numbers(layers, "n-gen", &[32], 1..=MAX_CONTEXT)?;
        let [generate] = generate[..] else { return Err(layers.wrong("n-gen", "one number")) };
        let repetitions = format!("a number from 1 to {MAX_REPETITIONS}");
        let in_range = |n: &u32| (1..=MAX_REPETITIONS).contains(n);
        Ok(ScaleSettings {
            devices,
            steps: steps.collect(),
            fleet,
            generate,
            repetitions: layers.number("repetitions", &repetitions, in_range)?.unwrap_or(5),
        })
    }
}
