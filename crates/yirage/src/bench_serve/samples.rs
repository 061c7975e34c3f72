//! The requests of a run.

use super::settings::{Dataset, ServeBench};
use crate::console::Console;
use crate::failure::CliFailure;
use serde_json::Value;
use std::path::Path;
use yirage_loadgen::{LoadPrompt, LoadRequest, LoadRunner, RandomPrompts};

/// Bytes of a file of prompts.
const MAX_FILE: u64 = 1 << 30;
/// Tokens of an answer where neither the line nor an option says how many, as vLLM has it.
const OUTPUT: u32 = 256;

/// As many samples as a run has requests, the same for every run.
///
/// # Errors
/// A file that cannot be read or has no prompts, and whatever the server says to questions about its tokens.
pub(crate) fn samples(bench: &ServeBench, run: &LoadRunner, console: &Console) -> Result<Vec<LoadRequest>, CliFailure> {
    match &bench.dataset {
        Dataset::Random(lengths) => {
            let prompts = RandomPrompts::ask(run, &bench.target);
            if !prompts.are_exact() {
                let what = "the server has no /tokenize: prompts have as many words as tokens were asked for";
                console.note(what);
            }
            Ok(prompts.samples(run, &bench.target, lengths, bench.prompts, bench.seed)?)
        }
        Dataset::Custom(path, output) => {
            let read = lines(path, *output)?;
            if read.len() < bench.prompts {
                console.note(&format!("{} has {} prompts; they are sent again", path.display(), read.len()));
            }
            Ok(read.iter().cycle().take(bench.prompts).cloned().collect())
        }
    }
}

/// The prompts of a file.
fn lines(path: &Path, output: Option<u32>) -> Result<Vec<LoadRequest>, CliFailure> {
    let text = yirage_mmap::read_text(path, MAX_FILE)?;
    let mut samples = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = |why: String| CliFailure::Other(format!("{}, line {}: {why}", path.display(), number + 1));
        let object: Value = serde_json::from_str(line).map_err(|e| wrong(format!("no JSON: {e}")))?;
        let prompt = object["prompt"].as_str().ok_or_else(|| wrong("the text `prompt` is missing".into()))?;
        let own = match &object["output_tokens"] {
            Value::Null => None,
            n => {
                let n = n.as_u64().and_then(|n| u32::try_from(n).ok()).filter(|n| *n > 0);
                Some(n.ok_or_else(|| wrong("`output_tokens` is no number above 0".into()))?)
            }
        };
        let output_len = output.or(own).unwrap_or(OUTPUT);
        samples.push(LoadRequest { prompt: LoadPrompt::Text(prompt.to_owned()), input_len: None, output_len });
    }
    if samples.is_empty() {
        return Err(CliFailure::Other(format!("{} has no prompts", path.display())));
    }
    Ok(samples)
}
