//! Where and how an encoder runs.

use super::device::{DeviceSettings, threads};
use super::engine::{chunk, executor, precision, tuning};
use crate::failure::CliFailure;
use crate::options::Layers;
use std::sync::Arc;
use yirage_engine::{EncoderOptions, is_embedding_decoder};
use yirage_hal::Device;
use yirage_model::arch::{self, BuildOptions, ModelOutput};
use yirage_model::{Checkpoint, RawConfig};

/// A device, and the options of an encoder on it.
pub(crate) struct EncoderSettings {
    device: DeviceSettings,
    /// Options of the encoder.
    pub(crate) options: EncoderOptions,
    /// What the user should know of them.
    note: Option<String>,
}

/// Whether a model gives vectors or scores: an encoder, or a decoder whose files say so. One of an architecture that is not
/// supported is an error.
///
/// # Errors
/// Whatever is wrong with the model's files.
pub(crate) fn is_encoder(checkpoint: &Checkpoint) -> Result<bool, CliFailure> {
    let config = RawConfig::load(checkpoint)?;
    let hidden = is_embedding_decoder(checkpoint)?;
    let build = BuildOptions { hidden, ..BuildOptions::plain(1) };
    Ok(arch::build(checkpoint, &config, build)?.output != ModelOutput::Logits || hidden)
}

impl EncoderSettings {
    /// Reads the options.
    ///
    /// # Errors
    /// [`CliFailure::Usage`] naming the option; [`CliFailure::Backend`] where the backend has no device here.
    pub(crate) fn resolve(layers: &Layers) -> Result<EncoderSettings, CliFailure> {
        let usual = EncoderOptions::default();
        let (kept, note) = super::packed::resolve(layers)?;
        let options = EncoderOptions {
            precision: precision(layers)?,
            executor: executor(layers)?,
            chunk: chunk(layers)?.unwrap_or(usual.chunk),
            tuning: tuning(layers, kept.as_ref())?,
        };
        Ok(EncoderSettings { device: DeviceSettings::of_model(layers, threads(layers)?)?, options, note })
    }

    /// Opens the device; the second value holds what the user should know.
    ///
    /// # Errors
    /// As [`DeviceSettings::open`].
    pub(crate) fn open(&self, layers: &Layers) -> Result<(Arc<dyn Device>, Vec<String>), CliFailure> {
        let (device, mut notes) = self.device.open(layers)?;
        notes.extend(self.note.clone());
        Ok((device, notes))
    }
}
