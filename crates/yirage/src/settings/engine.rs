//! Where and how a model runs.

use super::device::{DeviceSettings, threads};
use super::lora::LoraSettings;
use crate::failure::CliFailure;
use crate::options::Layers;
use std::sync::Arc;
use yirage_engine::limits::{MAX_CONTEXT, MAX_DRAFTS, MAX_STEP_TOKENS};
use yirage_engine::{EngineOptions, PackedOptions, Speculation, Tuning};
use yirage_hal::{Device, Length};
use yirage_ir::Format;
use yirage_model::Checkpoint;
use yirage_plan::{ExecutorKind, Precision};

/// A device, and the options of an engine on it.
pub(crate) struct EngineSettings {
    device: DeviceSettings,
    /// Options of the engine.
    pub(crate) options: EngineOptions,
    /// The model that guesses.
    pub(crate) draft: Option<String>,
    /// The adapters, of which those that are not merged are among the options.
    pub(crate) lora: LoraSettings,
    /// What the user should know of the options.
    note: Option<String>,
}

impl EngineSettings {
    /// Reads the options that every computing command takes.
    ///
    /// # Errors
    /// [`CliFailure::Usage`] naming the option; [`CliFailure::Backend`] where the backend has no device here.
    pub(crate) fn resolve(layers: &Layers) -> Result<EngineSettings, CliFailure> {
        EngineSettings::for_threads(layers, threads(layers)?)
    }

    /// Reads the options other than the number of threads, which is given.
    ///
    /// # Errors
    /// As [`EngineSettings::resolve`].
    pub(crate) fn for_threads(layers: &Layers, threads: Option<usize>) -> Result<EngineSettings, CliFailure> {
        let context = format!("a number from 1 to {MAX_CONTEXT}");
        let (speculation, draft) = speculation(layers)?;
        let (packed, note) = super::packed::resolve(layers)?;
        let tuning = tuning(layers, packed.as_ref())?;
        let lora = LoraSettings::resolve(layers)?;
        let options = EngineOptions {
            precision: precision(layers)?,
            kv: layers.maybe_choice("kv-type")?.map(|word| match word {
                "f16" => Format::F16,
                "bf16" => Format::BF16,
                "q8_0" => Format::Q8_0,
                _ => Format::F32,
            }),
            fuse: layers.switch("fuse")?,
            executor: executor(layers)?,
            context: layers.number("context", &context, |n| (1..=MAX_CONTEXT).contains(n))?,
            chunk: chunk(layers)?.unwrap_or(512),
            // One conversation at a time: nothing here runs requests beside each other.
            max_seqs: 1,
            prefix_cache: layers.switch("prefix-cache")?,
            speculation,
            plans: packed.as_ref().map(PackedOptions::plans),
            packed,
            tuning,
            embedded: !layers.texts("image").is_empty(),
            adapters: lora.beside(),
            ..EngineOptions::default()
        };
        Ok(EngineSettings { device: DeviceSettings::of_model(layers, threads)?, options, draft, lora, note })
    }

    /// The same with so many ranks of this machine that share every layer, whatever the options say of ranks.
    pub(crate) fn on_local_ranks(self, ranks: u32) -> EngineSettings {
        EngineSettings { device: self.device.on_local_ranks(ranks), ..self }
    }

    /// As [`DeviceSettings::check_division`].
    ///
    /// # Errors
    /// As there.
    pub(crate) fn check_division(
        &self,
        checkpoint: &Checkpoint,
        layers: &Layers,
    ) -> Result<Option<String>, CliFailure> {
        self.device.check_division(checkpoint, layers)
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

/// How kernels go about products.
pub(super) fn tuning(layers: &Layers, packed: Option<&PackedOptions>) -> Result<Tuning, CliFailure> {
    Ok(match layers.text("variant") {
        Some(choices) => Tuning::Forced(choices.to_owned()),
        None => Tuning::Measured {
            folder: packed.map(PackedOptions::texts),
            anew: match (layers.switch("tune")?, layers.switch("full")?) {
                (false, _) => None,
                (true, false) => Some(Length::Short),
                (true, true) => Some(Length::Full),
            },
        },
    })
}

/// How products are computed.
///
/// # Errors
/// [`CliFailure::Usage`] naming the option.
pub(crate) fn precision(layers: &Layers) -> Result<Precision, CliFailure> {
    Ok(if layers.choice("precision")? == "exact" { Precision::Exact } else { Precision::Fast })
}

/// How plans are run, where that is not to be measured.
pub(super) fn executor(layers: &Layers) -> Result<Option<ExecutorKind>, CliFailure> {
    match layers.choice("executor")? {
        "auto" => Ok(None),
        word => Ok(Some(word.parse().map_err(CliFailure::Usage)?)),
    }
}

/// Tokens of a step.
pub(super) fn chunk(layers: &Layers) -> Result<Option<u32>, CliFailure> {
    let expected = format!("a number from 1 to {MAX_STEP_TOKENS}");
    layers.number("chunk", &expected, |n| (1..=MAX_STEP_TOKENS).contains(n))
}

/// How tokens are guessed, and the model that does it where one is wanted.
fn speculation(layers: &Layers) -> Result<(Speculation, Option<String>), CliFailure> {
    let most = format!("a number from 1 to {MAX_DRAFTS}");
    let most = layers.number("draft-max", &most, |n| (1..=MAX_DRAFTS).contains(n))?.unwrap_or(Speculation::MOST);
    let mode = layers.choice("speculate")?;
    let model = layers.text("draft-model").map(str::to_owned);
    if mode == "draft" && model.is_none() {
        return Err(CliFailure::Usage(format!(
            "{}: which model guesses is missing: --draft-model",
            layers.label("speculate")
        )));
    }
    if mode == "mtp" && model.is_some() {
        return Err(CliFailure::Usage(format!(
            "{}: the model's own layer guesses, and {} names another that does: give one of both",
            layers.label("speculate"),
            layers.label("draft-model")
        )));
    }
    let speculation = match mode {
        "off" => Speculation::default(),
        "mtp" => Speculation { most, ..Speculation::mtp() },
        mode => Speculation { most, lookup: mode != "draft", ..Speculation::default() },
    };
    Ok((speculation, model.filter(|_| matches!(mode, "draft" | "auto"))))
}
