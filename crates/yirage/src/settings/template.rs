//! Which chat template a prompt goes through.

use crate::failure::Failure;
use crate::options::Layers;
use yirage_model::chat::ChatTemplate;
use yirage_session::Texts;

/// The template that the options choose: none with `--raw` or for a model without any, the one of
/// `--chat-template`, else the model's default. Of these two options the one of the higher layer holds.
///
/// # Errors
/// [`Failure::Usage`] for a name that the model does not have, and for both options in one layer;
/// [`Failure::Other`] where none is the default; [`Failure::Chat`] for a template that is broken.
pub(crate) fn template(texts: &Texts, layers: &Layers) -> Result<Option<ChatTemplate>, Failure> {
    const NAME: &str = "chat-template";
    let raw = layers.switch("raw")?;
    if raw && layers.one_of(&["raw", NAME])? != Some(NAME) {
        return Ok(None);
    }
    let wanted = layers.text(NAME);
    let chosen = texts.templates.choose(wanted, false).map_err(|error| match wanted {
        Some(_) => Failure::Usage(format!("{}: {error}", layers.label(NAME))),
        None => Failure::Other(format!("{error}; choose one with --{NAME}, or none with --raw")),
    })?;
    Ok(chosen.map(|(name, source)| ChatTemplate::new(name, source)).transpose()?)
}
