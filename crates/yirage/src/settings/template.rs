//! Which chat template a prompt goes through.

use crate::failure::CliFailure;
use crate::options::Layers;
use yirage_model::chat::ChatTemplate;
use yirage_session::TextProcessor;

/// The template that the options choose: none with `--raw` or for a model without any, the one of
/// `--chat-template`, else the model's default. Of these two options the one of the higher layer holds.
///
/// # Errors
/// [`CliFailure::Usage`] for a name that the model does not have, and for both options in one layer;
/// [`CliFailure::Other`] where none is the default; [`CliFailure::Chat`] for a template that is broken.
pub(crate) fn template(texts: &TextProcessor, layers: &Layers) -> Result<Option<ChatTemplate>, CliFailure> {
    const NAME: &str = "chat-template";
    let raw = layers.switch("raw")?;
    if raw && layers.one_of(&["raw", NAME])? != Some(NAME) {
        return Ok(None);
    }
    let wanted = layers.text(NAME);
    let chosen = texts.templates.choose(wanted, false).map_err(|error| match wanted {
        Some(_) => CliFailure::Usage(format!("{}: {error}", layers.label(NAME))),
        None => CliFailure::Other(format!("{error}; choose one with --{NAME}, or none with --raw")),
    })?;
    Ok(chosen.map(|(name, source)| ChatTemplate::new(name, source)).transpose()?)
}
