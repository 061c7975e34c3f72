//! `yirage tokenize`: text to ids and back.

use crate::console::Console;
use crate::failure::CliFailure;
use crate::locate::locate;
use crate::options::Layers;
use serde::Serialize;
use yirage_model::Checkpoint;
use yirage_model::tokenizer::{EncodeOptions, Tokenizer};
use yirage_session::TextProcessor;

#[derive(Serialize)]
struct TokenizeOutput<'a> {
    ids: &'a [u32],
    /// Tokens as the model's files write them.
    pieces: &'a [Option<&'a str>],
}

#[derive(Serialize)]
struct DetokenizeOutput<'a> {
    ids: &'a [u32],
    text: &'a str,
}

/// Runs the command. No weight is touched.
///
/// # Errors
/// Whatever is wrong with options, files or tokenizer.
pub(crate) fn run(layers: &Layers, console: &Console) -> Result<(), CliFailure> {
    let special = layers.switch("special")?;
    let parse_special = layers.maybe_switch("parse-special")?;
    let decode = layers.switch("decode")?;
    let ids = layers.ids("ids")?;
    let text = match layers.texts("text") {
        [_, more @ ..] if !more.is_empty() => {
            let (label, count) = (layers.label("text"), 1 + more.len());
            return Err(CliFailure::Usage(format!("{label} is given {count} times; one text is turned into ids")));
        }
        texts => texts.first(),
    };
    match (decode, text, &ids) {
        (false, None, _) => {
            return Err(CliFailure::Usage("--text is missing; ids are turned back by --decode --ids".into()));
        }
        // Which of the two is meant is only clear where they come from different layers.
        (false, Some(_), Some(_)) if layers.one_of(&["text", "ids"])? == Some("ids") => {
            let ids = layers.label("ids");
            return Err(CliFailure::Usage(format!("{ids} is turned back into text by --decode; give that or --text")));
        }
        (true, _, None) => return Err(CliFailure::Usage("--decode needs --ids; give token ids: --ids 1,2,3".into())),
        _ => {}
    }
    let located = locate(layers, console)?;
    let checkpoint = Checkpoint::open(&located.path)?;
    let missing = || CliFailure::Other(format!("{}: the model has no tokenizer", located.path.display()));
    let tokenizer = TextProcessor::load(&checkpoint)?.ok_or_else(missing)?.tokenizer;
    if decode {
        let ids = ids.unwrap_or_default();
        return show_text(&tokenizer, &ids, special, console);
    }
    let parse_special = parse_special.unwrap_or(tokenizer.default_options().parse_special);
    let options = EncodeOptions { add_special: special, parse_special };
    let ids = tokenizer.encode(text.map(String::as_str).unwrap_or_default(), options)?;
    let pieces: Vec<Option<&str>> = ids.iter().map(|&id| tokenizer.piece(id)).collect();
    if console.json {
        return console.value(&TokenizeOutput { ids: &ids, pieces: &pieces });
    }
    for (id, piece) in ids.iter().zip(&pieces) {
        console.line(&format!("{id:>8} {}", piece.unwrap_or_default()))?;
    }
    Ok(())
}

fn show_text(tokenizer: &Tokenizer, ids: &[u32], special: bool, console: &Console) -> Result<(), CliFailure> {
    if let Some(id) = ids.iter().find(|&&id| tokenizer.piece(id).is_none()) {
        let size = tokenizer.vocab_size();
        return Err(CliFailure::Other(format!("--ids: {id} is no token: the vocabulary has {size} entries")));
    }
    let inner = if special { without_frame(tokenizer, ids) } else { ids };
    let text = tokenizer.decode(inner, false);
    if console.json {
        console.value(&DetokenizeOutput { ids, text: &text })
    } else {
        console.text(&format!("{text}\n"))
    }
}

/// Decoding is the inverse of encoding with the same options: what encoding puts around a text is taken off.
fn without_frame<'a>(tokenizer: &Tokenizer, ids: &'a [u32]) -> &'a [u32] {
    let ids = ids.strip_prefix(tokenizer.prefix()).unwrap_or(ids);
    ids.strip_suffix(tokenizer.suffix()).unwrap_or(ids)
}
