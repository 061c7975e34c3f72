//! Options and texts of an encoder: what `yirage embed` and `yirage rerank` share.

use crate::console::Console;
use crate::failure::CliFailure;
use crate::locate::locate;
use crate::options::Layers;
use crate::settings::EncoderSettings;
use yirage_engine::EncoderInput;
use yirage_model::Checkpoint;
use yirage_model::tokenizer::FramedTokens;
use yirage_session::{LocalModel, TextEncoder};

/// An encoder that is loaded.
pub(super) struct LoadedEncoder {
    pub(super) encoder: TextEncoder,
    /// Tokens that are kept of a text, where longer ones are to be cut.
    pub(super) limit: Option<usize>,
}

impl LoadedEncoder {
    /// Finds, opens and loads the model.
    ///
    /// # Errors
    /// Whatever is wrong with options, files or the device.
    pub(super) fn load(layers: &Layers, console: &Console) -> Result<LoadedEncoder, CliFailure> {
        let settings = EncoderSettings::resolve(layers)?;
        let truncate = layers.switch("truncate")?;
        let encoder = LoadedEncoder::open(&settings, layers, console, &locate(layers, console)?)?;
        Ok(LoadedEncoder { limit: truncate.then_some(encoder.facts().longest as usize), encoder })
    }

    /// Opens and loads a model that was found.
    ///
    /// # Errors
    /// Whatever is wrong with options, files or the device.
    pub(super) fn open(
        settings: &EncoderSettings,
        layers: &Layers,
        console: &Console,
        located: &LocalModel,
    ) -> Result<TextEncoder, CliFailure> {
        let checkpoint = Checkpoint::open(&located.path)?;
        let (device, notes) = settings.open(layers)?;
        notes.iter().for_each(|note| console.note(note));
        let bar = console.progress(&format!("loading {}", located.name), checkpoint.total_bytes(), 0);
        let encoder = TextEncoder::load(&checkpoint, device, &settings.options, &mut |done, total| {
            bar.set_length(total);
            bar.set_position(done);
        });
        bar.finish_and_clear();
        let encoder = encoder?;
        encoder.notices().iter().for_each(|notice| console.note(&notice.to_string()));
        let facts = encoder.facts();
        tracing::debug!(
            architecture = facts.architecture,
            longest = facts.longest,
            output = ?facts.output,
            variant = facts.variant.as_ref().map(ToString::to_string),
            embedding = ?facts.embedding,
            weight_bytes = facts.bytes.weights,
            arena_bytes = facts.bytes.arena,
            "ready"
        );
        Ok(encoder)
    }

    /// What is left out of each text, where texts are to be cut; says so of those that were.
    pub(super) fn truncated_tokens(&self, framed: &[FramedTokens], console: &Console) -> Option<Vec<usize>> {
        let longest = self.limit?;
        for (i, text) in framed.iter().enumerate().filter(|(_, text)| text.cut > 0) {
            let cut = text.cut;
            console.note(&format!("text {i}: {cut} tokens at its end are left out, the model takes {longest}"));
        }
        Some(framed.iter().map(|text| text.cut).collect())
    }
}

/// The texts, one at least.
///
/// # Errors
/// [`CliFailure::Usage`] without any.
pub(super) fn texts(layers: &Layers) -> Result<&[String], CliFailure> {
    match layers.texts("text") {
        [] => Err(CliFailure::Usage("--text is missing; give one text or several: --text A --text B".into())),
        texts => Ok(texts),
    }
}

/// As the encoder takes them, with the number of tokens of each.
pub(super) fn inputs(framed: Vec<FramedTokens>) -> (Vec<EncoderInput>, Vec<usize>) {
    let tokens = framed.iter().map(|text| text.ids.len()).collect();
    (framed.into_iter().map(|text| EncoderInput { ids: text.ids, types: text.types }).collect(), tokens)
}
