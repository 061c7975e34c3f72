//! From options to what is asked of a server, and what is shown of it.

use crate::failure::CliFailure;
use crate::options::Layers;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::time::Duration;
use yirage_loadgen::{ArrivalPattern, CompletionApi, LoadTarget, Metric, Objective, PromptLengths};

/// Most requests of a run: what is seen of each stays in memory until its end.
const MAX_PROMPTS: usize = 1_000_000;
/// Most tokens of a prompt or answer.
const MAX_LENGTH: u32 = 1 << 24;
/// Bytes of a file with a key.
const KEY_BYTES: u64 = 64 << 10;

/// What a run of `yirage bench-serve` is to do.
pub(crate) struct ServeBench {
    /// The server. Its model is empty where it is the first that the server names.
    pub(crate) target: LoadTarget,
    /// Where prompts come from.
    pub(crate) dataset: Dataset,
    /// Requests of each run.
    pub(crate) prompts: usize,
    /// Requests before.
    pub(crate) warmups: usize,
    /// The runs: every rate with every concurrency.
    pub(crate) loads: Vec<ArrivalPattern>,
    /// What prompts follow from.
    pub(crate) seed: u64,
    /// How long a server may take to begin.
    pub(crate) ready: Duration,
    /// What is shown.
    pub(crate) metrics: Vec<Metric>,
    /// Of each metric.
    pub(crate) percentiles: Vec<f64>,
    /// What a good answer keeps to.
    pub(crate) objectives: Vec<Objective>,
    /// Where pictures go.
    pub(crate) plot: Option<PathBuf>,
    /// What the user should know of the options.
    pub(crate) notes: Vec<String>,
}

/// Where prompts come from.
pub(crate) enum Dataset {
    /// Random tokens of these lengths.
    Random(PromptLengths),
    /// The lines of a file, and the tokens of an answer where they do not stand in the line.
    Custom(PathBuf, Option<u32>),
}

impl ServeBench {
    /// Reads the options.
    ///
    /// # Errors
    /// [`CliFailure::Usage`] naming the option; a file of a key that cannot be read.
    pub(crate) fn resolve(layers: &Layers) -> Result<ServeBench, CliFailure> {
        let mut notes = Vec::new();
        let seed = layers.number("seed", "a number from 0 to 18446744073709551615", |_| true)?.unwrap_or(0);
        let count = |name, from| {
            let expected = format!("a number from {from} to {MAX_PROMPTS}");
            layers.number::<usize>(name, &expected, |n| (from..=MAX_PROMPTS).contains(n))
        };
        let seconds = |name| layers.number::<f64>(name, "a number of seconds", |s| (0.0..=1e9).contains(s));
        let mut target = target(layers)?;
        target.headers = headers(layers, &mut notes)?;
        target.request_time = seconds("request-time")?.map(Duration::from_secs_f64);
        let percentile = |word: &str| word.parse::<f64>().ok().filter(|p| (0.0..=100.0).contains(p));
        let metric = |word: &str| Metric::ALL.into_iter().find(|metric| metric.name() == word);
        Ok(ServeBench {
            target,
            dataset: dataset(layers)?,
            prompts: count("num-prompts", 1)?.unwrap_or(1),
            warmups: count("num-warmups", 0)?.unwrap_or(0),
            loads: loads(layers, seed)?,
            seed,
            ready: seconds("ready-check-timeout-sec")?.map_or(Duration::ZERO, Duration::from_secs_f64),
            metrics: words(layers, "percentile-metrics", "some of ttft, tpot, itl, e2el", metric)?,
            percentiles: words(layers, "metric-percentiles", "numbers from 0 to 100", percentile)?,
            objectives: objectives(layers)?,
            plot: layers.text("plot").map(PathBuf::from),
            notes,
        })
    }
}

fn target(layers: &Layers) -> Result<LoadTarget, CliFailure> {
    let interface = match layers.choice("endpoint-type")? {
        "openai-chat" => CompletionApi::Chat,
        _ => CompletionApi::Completions,
    };
    let port = layers.number::<u16>("port", "a number from 0 to 65535", |_| true)?.unwrap_or(0);
    let host = layers.text("host").unwrap_or_default().trim_matches(['[', ']']);
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let url = layers.text("base-url").map_or_else(|| format!("http://{host}:{port}"), str::to_owned);
    let mut target = LoadTarget::new(&url, interface)?;
    if let Some(endpoint) = layers.text("endpoint") {
        if !endpoint.starts_with('/') || !endpoint.chars().all(|c| c.is_ascii_graphic()) {
            return Err(layers.wrong("endpoint", "a path such as /v1/completions"));
        }
        endpoint.clone_into(&mut target.endpoint);
    }
    target.model = layers.text("request-model").unwrap_or_default().to_owned();
    target.ignore_eos = layers.switch("ignore-eos")?;
    if let Some(text) = layers.text("extra-body") {
        let object = serde_json::from_str::<Map<String, Value>>(text);
        target.extra = object.map_err(|e| layers.wrong("extra-body", format!("a JSON object ({e})")))?;
    }
    Ok(target)
}

/// Headers of the option, and the key of a file or, as OpenAI's own clients do, of the environment.
fn headers(layers: &Layers, notes: &mut Vec<String>) -> Result<Vec<(String, String)>, CliFailure> {
    let mut headers = pairs(layers, "header")?;
    let key = match layers.text("key-file") {
        Some(path) => Some(yirage_mmap::read_text(Path::new(path), KEY_BYTES)?),
        None => std::env::var("OPENAI_API_KEY").ok().filter(|key| !key.is_empty()).inspect(|_| {
            notes.push("the key of OPENAI_API_KEY goes to the server".into());
        }),
    };
    headers.extend(key.map(|key| ("authorization".to_owned(), format!("Bearer {}", key.trim()))));
    Ok(headers)
}

/// `NAME=VALUE` of each time the option was given.
pub(super) fn pairs(layers: &Layers, name: &str) -> Result<Vec<(String, String)>, CliFailure> {
    let pair = |text: &String| {
        let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
        let label = layers.label(name);
        pair.map(|(name, value)| (name.to_owned(), value.to_owned()))
            .ok_or_else(|| CliFailure::Usage(format!("{label}: expected NAME=VALUE, not {text:?}")))
    };
    layers.texts(name).iter().map(pair).collect()
}

fn dataset(layers: &Layers) -> Result<Dataset, CliFailure> {
    let expected = format!("a number from 1 to {MAX_LENGTH}");
    let length = |name| layers.number::<u32>(name, &expected, |n| (1..=MAX_LENGTH).contains(n));
    if layers.choice("dataset-name")? == "custom" {
        let path = layers.text("dataset-path");
        let missing = || CliFailure::Usage("--dataset-name custom needs --dataset-path FILE".into());
        return Ok(Dataset::Custom(PathBuf::from(path.ok_or_else(missing)?), length("custom-output-len")?));
    }
    if layers.raw_value("dataset-path").is_some() {
        let what = format!("{}: the data set is random; add --dataset-name custom", layers.label("dataset-path"));
        return Err(CliFailure::Usage(what));
    }
    let prefix = layers.number::<u32>("random-prefix-len", "a number from 0", |n| *n <= MAX_LENGTH)?;
    let ratio = layers.number("random-range-ratio", "a number from 0 to below 1", |x| (0.0..1.0).contains(x))?;
    Ok(Dataset::Random(PromptLengths {
        input: length("random-input-len")?.unwrap_or(1),
        output: length("random-output-len")?.unwrap_or(1),
        prefix: prefix.unwrap_or(0),
        ratio: ratio.unwrap_or(0.0),
    }))
}

fn loads(layers: &Layers, seed: u64) -> Result<Vec<ArrivalPattern>, CliFailure> {
    let burstiness =
        layers.number("burstiness", "a number above 0", |x: &f64| *x > 0.0 && x.is_finite())?.unwrap_or(1.0);
    let rate = |word: &str| match word {
        "inf" => Some(None),
        word => word.parse::<f64>().ok().filter(|rate| *rate > 0.0 && rate.is_finite()).map(Some),
    };
    let concurrency = |word: &str| word.parse::<usize>().ok().filter(|n| *n > 0).map(Some);
    let rates = several(layers, "request-rate", None, "numbers above 0, or inf", rate)?;
    let concurrencies = several(layers, "max-concurrency", None, "numbers above 0", concurrency)?;
    let with = |rate| {
        concurrencies.iter().map(move |max_concurrency| ArrivalPattern {
            rate,
            burstiness,
            max_concurrency: *max_concurrency,
            seed,
        })
    };
    Ok(rates.iter().flat_map(|rate| with(*rate)).collect())
}

/// Values with commas between, of all times the option was given; else one.
fn several<T>(
    layers: &Layers,
    name: &str,
    default: T,
    expected: &str,
    value: impl Fn(&str) -> Option<T>,
) -> Result<Vec<T>, CliFailure> {
    let label = layers.label(name);
    let of = |word: &str| {
        let wrong = || CliFailure::Usage(format!("{label}: expected {expected}, with commas between, not {word:?}"));
        value(word.trim()).ok_or_else(wrong)
    };
    match layers.texts(name) {
        [] => Ok(vec![default]),
        texts => texts.iter().flat_map(|text| text.split(',')).map(of).collect(),
    }
}

/// Words with commas between; an empty text is none.
fn words<T>(
    layers: &Layers,
    name: &str,
    expected: &str,
    value: impl Fn(&str) -> Option<T>,
) -> Result<Vec<T>, CliFailure> {
    let text = layers.text(name).unwrap_or_default();
    let parts = text.split(',').map(str::trim).filter(|word| !word.is_empty());
    parts.map(|word| value(word).ok_or_else(|| layers.wrong(name, expected))).collect()
}

fn objectives(layers: &Layers) -> Result<Vec<Objective>, CliFailure> {
    let label = layers.label("goodput");
    let objective = |text: &str| {
        let (name, limit) = text.split_once(':')?;
        // Gaps are many of one answer, which is good or not.
        let metric = Metric::ALL.into_iter().find(|metric| metric.name() == name && *metric != Metric::Itl)?;
        let milliseconds = limit.parse::<f64>().ok().filter(|ms| *ms > 0.0)?;
        Some(Objective { metric, milliseconds })
    };
    let wrong = |text: &str| {
        CliFailure::Usage(format!(
            "{label}: expected ttft:MS, tpot:MS or e2el:MS, several with spaces between, not {text:?}"
        ))
    };
    let texts = layers.texts("goodput").iter().flat_map(|text| text.split([' ', ',']));
    texts.filter(|text| !text.is_empty()).map(|text| objective(text).ok_or_else(|| wrong(text))).collect()
}
