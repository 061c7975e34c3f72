//! Where and how an encoder runs.

use super::device::DeviceSettings;
use super::engine::{chunk, executor, precision, tuning};
use crate::failure::Failure;
use crate::options::Layers;
use std::sync::Arc;
use yirage_engine::EncoderOptions;
use yirage_hal::Device;

/// A device, and the options of an encoder on it.
pub(crate) struct EncoderSettings {
    device: DeviceSettings,
    /// Options of the encoder.
    pub(crate) options: EncoderOptions,
    /// What the user should know of them.
    note: Option<String>,
}

impl EncoderSettings {
    /// Reads the options.
    ///
    /// # Errors
    /// [`Failure::Usage`] naming the option; [`Failure::Backend`] where the backend has no device here.
    pub(crate) fn resolve(layers: &Layers) -> Result<EncoderSettings, Failure> {
        let usual = EncoderOptions::default();
        let (kept, note) = super::packed::resolve(layers)?;
        let options = EncoderOptions {
            precision: precision(layers)?,
            executor: executor(layers)?,
            chunk: chunk(layers)?.unwrap_or(usual.chunk),
            tuning: tuning(layers, kept.as_ref(), None),
        };
        Ok(EncoderSettings { device: DeviceSettings::resolve(layers)?, options, note })
    }

    /// Opens the device; the second value holds what the user should know.
    ///
    /// # Errors
    /// As [`DeviceSettings::open`].
    pub(crate) fn open(&self, layers: &Layers) -> Result<(Arc<dyn Device>, Vec<String>), Failure> {
        let (device, mut notes) = self.device.open(layers)?;
        notes.extend(self.note.clone());
        Ok((device, notes))
    }
}
