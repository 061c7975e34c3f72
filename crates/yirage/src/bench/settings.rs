//! From options to what is measured.

use super::print::BenchFormat;
use super::test::BenchTest;
use crate::failure::CliFailure;
use crate::options::Layers;
use std::path::{Path, PathBuf};
use yirage_engine::limits::{BLOCK, MAX_CONTEXT, MAX_SEQS, MAX_STEP_TOKENS};

/// Most repetitions.
pub(crate) const MAX_REPETITIONS: u32 = 10_000;

/// What to measure and how to show it.
pub(crate) struct BenchSettings {
    /// Models as the user called them; none is the default model.
    pub(crate) models: Vec<Option<String>>,
    /// Numbers of threads; none is the backend's own choice.
    pub(crate) threads: Vec<Option<usize>>,
    /// Tokens of a step.
    pub(crate) batches: Vec<u32>,
    /// What is run with each of them.
    pub(crate) tests: Vec<BenchTest>,
    /// Timed runs of each test.
    pub(crate) repetitions: u32,
    /// How rows are written.
    pub(crate) output: BenchFormat,
    /// Rows to compare with.
    pub(crate) compare: Option<PathBuf>,
}

impl BenchSettings {
    /// Reads the options.
    ///
    /// # Errors
    /// [`CliFailure::Usage`] naming the option.
    pub(crate) fn resolve(layers: &Layers, max_threads: usize) -> Result<BenchSettings, CliFailure> {
        let most = MAX_CONTEXT;
        let prompts = numbers(layers, "n-prompt", &[512], 0..=most)?;
        let generates = numbers(layers, "n-gen", &[128], 0..=most)?;
        let depths = numbers(layers, "n-depth", &[0], 0..=most)?;
        let sequences = numbers(layers, "sequences", &[1], 1..=MAX_SEQS)?;
        let pairs = pairs(layers)?;
        let mut tests = Vec::new();
        for &depth in &depths {
            let one = BenchTest { prompt: 0, generate: 0, depth, sequences: 1 };
            tests.extend(prompts.iter().map(|&prompt| BenchTest { prompt, ..one }));
            for &sequences in &sequences {
                tests.extend(generates.iter().map(|&generate| BenchTest { generate, sequences, ..one }));
            }
            tests.extend(pairs.iter().map(|&(prompt, generate)| BenchTest { prompt, generate, ..one }));
        }
        tests.retain(|t| t.tokens() > 0);
        check(&tests, layers)?;
        let threads = match layers.text("threads") {
            None => vec![None],
            Some(_) => {
                numbers(layers, "threads", &[], 1..=max_threads as u32)?.iter().map(|&n| Some(n as usize)).collect()
            }
        };
        let repetitions = format!("a number from 1 to {MAX_REPETITIONS}");
        let in_range = |n: &u32| (1..=MAX_REPETITIONS).contains(n);
        Ok(BenchSettings {
            models: models(layers),
            threads,
            batches: numbers(layers, "batch-size", &[512], 1..=MAX_STEP_TOKENS)?,
            tests,
            repetitions: layers.number("repetitions", &repetitions, in_range)?.unwrap_or(5),
            output: BenchFormat::resolve(layers)?,
            compare: layers.text("compare").map(PathBuf::from),
        })
    }
}

/// Tests that cannot be measured as they are asked for.
fn check(tests: &[BenchTest], layers: &Layers) -> Result<(), CliFailure> {
    if tests.is_empty() {
        return Err(CliFailure::Usage("there is nothing to measure: give --n-prompt, --n-gen or --pg above 0".into()));
    }
    let uneven = |t: &&BenchTest| t.prompt > 0 && !(t.depth as usize).is_multiple_of(BLOCK);
    if let Some(test) = tests.iter().find(uneven) {
        let (label, depth) = (layers.label("n-depth"), test.depth);
        let what = format!(
            "{label}: {test}: the cache keeps blocks of {BLOCK} positions, and {depth} is no multiple of that; take one, or \
             leave out the prompt with --n-prompt 0"
        );
        return Err(CliFailure::Usage(what));
    }
    Ok(())
}

/// `a,b,c` is several models, unless a file has that name.
fn models(layers: &Layers) -> Vec<Option<String>> {
    let Some(text) = layers.text("model") else { return vec![None] };
    if Path::new(text).exists() {
        return vec![Some(text.to_owned())];
    }
    text.split(',').map(|name| Some(name.to_owned())).collect()
}

/// Numbers separated by commas, of all times the option was given.
///
/// # Errors
/// [`CliFailure::Usage`] naming the option.
pub(crate) fn numbers(
    layers: &Layers,
    name: &str,
    default: &[u32],
    allowed: std::ops::RangeInclusive<u32>,
) -> Result<Vec<u32>, CliFailure> {
    let given = layers.texts(name);
    if given.is_empty() {
        return Ok(default.to_vec());
    }
    let number = |word: &str| word.trim().parse::<u32>().ok().filter(|n| allowed.contains(n));
    let wrong = |word: &str| {
        let (low, high) = (allowed.start(), allowed.end());
        let label = layers.label(name);
        CliFailure::Usage(format!("{label}: expected numbers from {low} to {high} with commas between, not {word:?}"))
    };
    given.iter().flat_map(|text| text.split(',')).map(|word| number(word).ok_or_else(|| wrong(word))).collect()
}

/// `PROMPT,GENERATE` of each time the option was given.
fn pairs(layers: &Layers) -> Result<Vec<(u32, u32)>, CliFailure> {
    let pair = |text: &String| {
        let number = |word: &str| word.trim().parse::<u32>().ok().filter(|n| (1..=MAX_CONTEXT).contains(n));
        let pair = text.split_once(',').and_then(|(p, n)| Some((number(p)?, number(n)?)));
        let label = layers.label("pg");
        pair.ok_or_else(|| {
            CliFailure::Usage(format!("{label}: expected two numbers above 0 as in 512,128, not {text:?}"))
        })
    };
    layers.texts("pg").iter().map(pair).collect()
}
