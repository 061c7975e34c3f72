//! How an answer is shown.

use crate::console::Console;
use crate::failure::CliFailure;
use crate::generate::{ChosenExecutor, GeneratedAnswer, Timings};
use serde::Serialize;

#[derive(Serialize)]
struct AnswerOutput<'a> {
    model: &'a str,
    prompt_tokens: &'a [u32],
    tokens: &'a [u32],
    text: Option<&'a str>,
    finish_reason: &'a str,
    timings: Timings,
    executors: &'a [ChosenExecutor],
    /// Prompt tokens that were not computed again; said of conversations, and of prompts that began as one that was kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    cached_tokens: Option<usize>,
}

/// Ends the streamed text with a line end and statistics, or prints the whole answer as JSON.
///
/// # Errors
/// [`CliFailure::Closed`].
pub(super) fn show(
    console: &Console,
    model: &str,
    prompt: &[u32],
    answer: &GeneratedAnswer,
    load_ms: f64,
    in_conversation: bool,
) -> Result<(), CliFailure> {
    answer.notes.iter().for_each(|note| console.note(note));
    if console.json {
        return console.value(&AnswerOutput {
            model,
            prompt_tokens: prompt,
            tokens: &answer.tokens,
            text: answer.text.as_deref(),
            finish_reason: answer.finish_reason(),
            timings: answer.timings(load_ms),
            executors: &answer.executors,
            cached_tokens: Some(answer.end.usage.cached_tokens).filter(|&cached| in_conversation || cached > 0),
        });
    }
    let ids = || answer.tokens.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    // Without a tokenizer the ids are the result.
    console.line(&if answer.text.is_none() { ids() } else { String::new() })?;
    let load = if in_conversation { String::new() } else { format!("load {load_ms:.0} ms; ") };
    console.note(&format!("{load}{}", answer.summary(console.is_verbose())));
    Ok(())
}
