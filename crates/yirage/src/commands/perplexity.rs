//! `yirage perplexity`: how well a model predicts a text.
//!
//! Each id but the first is predicted from those before it. A text longer than the context is computed in windows that
//! overlap by half: every id is scored once, and sees at least half a context before it (all of it in the first
//! window).

use super::score::score;
use crate::console::Console;
use crate::failure::CliFailure;
use crate::logit_row::logsumexp;
use crate::options::Layers;
use crate::session::Session;
use crate::settings::read_input;
use serde::Serialize;
use std::ops::Range;
use std::path::Path;
use std::time::Instant;
use yirage_engine::scheduler::LogitsWanted;

#[derive(Serialize)]
struct PerplexityOutput {
    /// Ids of the text.
    tokens: usize,
    mean_nll: f64,
    ppl: f64,
    /// Of each id but the first.
    nll: Vec<f64>,
}

/// Runs the command.
///
/// # Errors
/// Whatever is wrong with options, model or device; a text of fewer than two tokens.
pub(crate) fn run(layers: &Layers, console: &Console, started: Instant) -> Result<(), CliFailure> {
    let source = layers.one_of(&["file", "ids"])?;
    let text = match source {
        Some("file") => Some(read_input(Path::new(layers.text("file").unwrap_or_default()))?),
        Some(_) => None,
        None => return Err(CliFailure::Usage("a text is missing; give --file FILE or --ids 1,2,3".into())),
    };
    let given = if text.is_some() { None } else { layers.ids("ids")? };
    let session = Session::load(layers, console, started)?;
    let ids = match text {
        Some(text) => {
            let tokenizer = &session.texts("--ids")?.tokenizer;
            let mut options = tokenizer.default_options();
            options.parse_special = layers.maybe_switch("parse-special")?.unwrap_or(options.parse_special);
            tokenizer.encode(&text, options)?
        }
        None => given.unwrap_or_default(),
    };
    if ids.len() < 2 {
        let what = format!("the text has {} tokens; at least 2 are needed to predict one from another", ids.len());
        return Err(CliFailure::Other(what));
    }
    let windows = windows(ids.len(), session.model.facts().context as usize)?;
    if windows.len() > 1 {
        let context = session.model.facts().context;
        console.note(&format!(
            "{} tokens exceed the context of {context}: computed in {} windows that overlap by half",
            ids.len(),
            windows.len()
        ));
    }
    let mut nll = Vec::with_capacity(ids.len() - 1);
    for window in windows {
        let done = nll.len();
        let notes = score(&session.model, &ids[window.clone()], LogitsWanted::All, &mut |pos, row| {
            let next = window.start + pos + 1;
            if next > done && next < window.end {
                nll.push(logsumexp(row) - f64::from(row[ids[next] as usize]));
            }
        })?;
        notes.iter().for_each(|note| console.note(note));
    }
    let mean_nll = nll.iter().sum::<f64>() / nll.len() as f64;
    let output = PerplexityOutput { tokens: ids.len(), mean_nll, ppl: mean_nll.exp(), nll };
    show(console, &output)?;
    session.settle(console)
}

fn show(console: &Console, output: &PerplexityOutput) -> Result<(), CliFailure> {
    if console.json {
        return console.value(output);
    }
    console.line(&format!(
        "perplexity {:.5} (mean negative log-likelihood {:.6} over {} predicted tokens)",
        output.ppl,
        output.mean_nll,
        output.nll.len()
    ))
}

/// Cuts `length` ids into windows of at most `context`, each beginning in the middle of the one before.
fn windows(length: usize, context: usize) -> Result<Vec<Range<usize>>, CliFailure> {
    if length <= context {
        return Ok(vec![Range { start: 0, end: length }]);
    }
    if context < 2 {
        return Err(CliFailure::Usage(format!("--context: {context} leaves nothing to predict from; give at least 2")));
    }
    let stride = context - context / 2;
    let mut windows = Vec::new();
    let mut start = 0;
    loop {
        let end = length.min(start + context);
        windows.push(start..end);
        if end == length {
            return Ok(windows);
        }
        start += stride;
    }
}

#[cfg(test)]
mod tests {
    use super::{Range, windows};

    #[test]
    fn windows_cover_everything_and_overlap_by_half() {
        assert_eq!(windows(10, 10).unwrap(), vec![Range { start: 0, end: 10 }]);
        assert_eq!(windows(11, 10).unwrap(), [0..10, 5..11]);
        assert_eq!(windows(21, 10).unwrap(), [0..10, 5..15, 10..20, 15..21]);
        assert_eq!(windows(4, 2).unwrap(), [0..2, 1..3, 2..4]);
        assert_eq!(windows(5, 3).unwrap(), [0..3, 2..5]);
        assert!(windows(5, 1).is_err());
        for (length, context) in [(1000, 7), (999, 64), (65, 64)] {
            let mut scored = 0;
            for w in windows(length, context).unwrap() {
                assert!(w.len() <= context && w.start <= scored, "{w:?} leaves a hole behind {scored}");
                scored = w.end - 1;
            }
            assert_eq!(scored, length - 1);
        }
    }
}
