//! A whole model on a device beside the same model on another, token by token and layer by layer.
//!
//! The tokens are given, so that a token that differs changes nothing behind it. The first of them are computed in one step,
//! the others in a step each: kernels of many rows and of one row, and a cache that is read. Logits are those of plans as
//! they run. Hidden states leave the device in a second pass whose plans fuse nothing over the end of a layer; whether its
//! logits have the same bytes is recorded.

use super::drift::{TokenRows, differences, divergence, drift};
use super::record::{ModelRecord, ModelRun, finite};
use std::sync::Arc;
use tempfile::TempDir;
use yirage_engine::scheduler::LogitsWanted;
use yirage_engine::{BesideLogits, EngineError, Forward, ForwardOptions, ForwardRow};
use yirage_hal::Device;
use yirage_ir::Format;
use yirage_model::Checkpoint;
use yirage_plan::Precision;
use yirage_plancache::CacheOptions;

/// By how much the reference's logit must exceed another one's for that to be the wrong token.
const MARGIN: f64 = 1e-3;
/// Largest divergence of a token's distribution in the exact precision, in nats.
const EXACT_DIVERGENCE: f64 = 1e-6;
/// Largest drift behind a layer in the exact precision.
const EXACT_DRIFT: f64 = 1e-2;
/// Largest mean divergence where activations have 8 bits, in nats.
const FAST_DIVERGENCE: f64 = 0.05;

/// What is to be computed.
pub(crate) struct ModelTask {
    /// How the model is called.
    pub(crate) name: String,
    /// Its files.
    pub(crate) checkpoint: Checkpoint,
    /// What it reads.
    pub(crate) tokens: Vec<u32>,
    /// What it is compared with.
    pub(crate) reference: Arc<dyn Device>,
    /// The folder of the files for as long as they are read, where they were made for this.
    pub(crate) _unpacked: Option<TempDir>,
}

/// What a model gave.
struct ModelTrace {
    architecture: String,
    kv: Format,
    /// A row a token.
    logits: TokenRows,
    /// A row a token behind each layer; empty where they did not leave the device.
    layers: Vec<TokenRows>,
}

/// How a model runs.
#[derive(Clone, Copy)]
struct TraceOptions {
    precision: Precision,
    /// None for the device's own choice.
    kv: Option<Format>,
    layers: bool,
}

/// Runs the model on `device` in each precision, and on the reference. `say` is told what is being done.
///
/// # Errors
/// What keeps the reference from computing it.
pub(crate) fn model_record(
    task: &ModelTask,
    device: &Arc<dyn Device>,
    say: &mut dyn FnMut(&str),
) -> Result<ModelRecord, EngineError> {
    let against = task.reference.info().backend;
    say(&format!("computing what {against} gives for {}", task.name));
    let exact = TraceOptions { precision: Precision::Exact, kv: Some(Format::F32), layers: true };
    let expected = task.trace(&task.reference, exact)?;
    let mut runs = Vec::new();
    for options in [exact, TraceOptions { precision: Precision::Fast, kv: None, layers: true }] {
        say(&format!("running {} in {}", task.name, options.precision));
        let run = task.run(device, options, &expected);
        runs.push(run.unwrap_or_else(|error| failed(options.precision, &error)));
    }
    Ok(ModelRecord {
        name: task.name.clone(),
        architecture: expected.architecture,
        against: against.into(),
        tokens: task.tokens.len(),
        at_once: task.at_once(),
        runs,
    })
}

impl ModelTask {
    /// Tokens of the first step.
    fn at_once(&self) -> usize {
        self.tokens.len() * 2 / 3
    }

    fn run(
        &self,
        device: &Arc<dyn Device>,
        options: TraceOptions,
        expected: &ModelTrace,
    ) -> Result<ModelRun, EngineError> {
        let whole = self.trace(device, TraceOptions { layers: false, ..options })?;
        let cut = self.trace(device, options)?;
        Ok(compared(&whole, &cut, expected, options.precision))
    }

    /// What the model gives on a device.
    fn trace(&self, device: &Arc<dyn Device>, options: TraceOptions) -> Result<ModelTrace, EngineError> {
        let TraceOptions { precision, kv, layers } = options;
        // A plan that fails is what is looked for: none may take its place.
        let plans = CacheOptions { precision, fallback_on_error: false, ..CacheOptions::default() };
        let context = Some(self.tokens.len() as u32);
        let beside = if layers { BesideLogits::Layers } else { BesideLogits::Nothing };
        let options = ForwardOptions { kv, context, plans, beside };
        let mut forward = Forward::open(&self.checkpoint, device.clone(), &options)?;
        forward.load_weights(&self.checkpoint, &mut |_, _| {})?;
        let (architecture, kv) = (forward.architecture().to_owned(), forward.kv());
        let mut trace = ModelTrace { architecture, kv, logits: Vec::new(), layers: Vec::new() };
        let (first, rest) = self.tokens.split_at(self.at_once());
        for tokens in [first].into_iter().chain(rest.chunks(1)).filter(|tokens| !tokens.is_empty()) {
            let row = ForwardRow { sequence: 0, start: trace.logits.len() as u32, tokens };
            let step = forward.forward(&[row], LogitsWanted::All)?;
            trace.logits.extend(rows(step.logits.bytes(), tokens.len()));
            trace.layers.resize(step.beside.len(), Vec::new());
            for (states, given) in trace.layers.iter_mut().zip(&step.beside) {
                states.extend(rows(given.bytes(), tokens.len()));
            }
        }
        Ok(trace)
    }
}

/// Bytes of f32 as so many rows.
fn rows(bytes: &[u8], count: usize) -> TokenRows {
    let values: Vec<f32> = bytes.as_chunks::<4>().0.iter().map(|b| f32::from_ne_bytes(*b)).collect();
    values.chunks_exact((values.len() / count.max(1)).max(1)).map(<[f32]>::to_vec).collect()
}

fn failed(precision: Precision, error: &EngineError) -> ModelRun {
    let error = error.to_string();
    ModelRun {
        precision: precision.to_string(),
        kv: None,
        drift: Vec::new(),
        same_when_cut: None,
        kl_mean: None,
        kl_most: None,
        different: 0,
        first_different: None,
        wrong: vec![format!("it was not computed: {error}")],
        error: Some(error),
    }
}

/// The figures of a model whose logits are those of `whole`, and whose hidden states are those of `cut`.
fn compared(whole: &ModelTrace, cut: &ModelTrace, expected: &ModelTrace, precision: Precision) -> ModelRun {
    let pairs = || whole.logits.iter().zip(&expected.logits);
    let divergences: Vec<f64> = pairs().map(|(got, expected)| divergence(got, expected)).collect();
    let mean = divergences.iter().sum::<f64>() / divergences.len().max(1) as f64;
    let most = divergences.iter().copied().fold(0.0, f64::max);
    let drifts: Vec<f64> = cut.layers.iter().zip(&expected.layers).map(|(got, of)| drift(got, of)).collect();
    let different = differences(&whole.logits, &expected.logits);
    let mut wrong = Vec::new();
    if precision == Precision::Exact {
        if let Some(d) = different.iter().find(|d| d.margin > MARGIN) {
            wrong.push(format!("token {} behind position {} instead of {}", d.got, d.position, d.expected));
        }
        if let Some(layer) = drifts.iter().position(|&drift| drift > EXACT_DRIFT) {
            wrong.push(format!(
                "a drift of {:.1e} behind layer {layer}, at most {EXACT_DRIFT:.0e} wanted",
                drifts[layer]
            ));
        }
        if most > EXACT_DIVERGENCE {
            wrong.push(format!("a divergence of {most:.1e} nats, at most {EXACT_DIVERGENCE:.0e} wanted"));
        }
    } else if mean > FAST_DIVERGENCE {
        wrong.push(format!("a mean divergence of {mean:.1e} nats, at most {FAST_DIVERGENCE:.0e} wanted"));
    }
    ModelRun {
        precision: precision.to_string(),
        error: None,
        kv: Some(whole.kv.info().name.into()),
        drift: drifts.into_iter().map(finite).collect(),
        same_when_cut: Some(same_bytes(&whole.logits, &cut.logits)),
        kl_mean: finite(mean),
        kl_most: finite(most),
        different: different.len(),
        first_different: different.first().copied(),
        wrong,
    }
}

fn same_bytes(a: &TokenRows, b: &TokenRows) -> bool {
    let bits = |rows: &TokenRows| rows.iter().flatten().map(|x| x.to_bits()).collect::<Vec<_>>();
    bits(a) == bits(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(logits: &[[f32; 2]], layer: &[[f32; 2]]) -> ModelTrace {
        let rows = |rows: &[[f32; 2]]| rows.iter().map(|row| row.to_vec()).collect::<TokenRows>();
        ModelTrace { architecture: "a".into(), kv: Format::F32, logits: rows(logits), layers: vec![rows(layer)] }
    }

    #[test]
    fn another_token_is_wrong_where_the_reference_was_sure() {
        let expected = trace(&[[1.0, 2.0], [1.0, 1.0005]], &[[1.0, 1.0]; 2]);
        let same = compared(&expected, &expected, &expected, Precision::Exact);
        assert_eq!((same.wrong.len(), same.different, same.same_when_cut), (0, 0, Some(true)));
        let unsure = trace(&[[1.0, 2.0], [1.0005, 1.0]], &[[1.0, 1.0]; 2]);
        let run = compared(&unsure, &expected, &expected, Precision::Exact);
        assert_eq!((run.wrong, run.different, run.same_when_cut), (Vec::new(), 1, Some(false)));
        let sure = trace(&[[2.0, 1.0], [1.0, 1.0005]], &[[1.0, 1.5]; 2]);
        let run = compared(&sure, &sure, &expected, Precision::Exact);
        assert_eq!(run.wrong[0], "token 0 behind position 0 instead of 1");
        assert_eq!(run.wrong.len(), 3, "{:?}", run.wrong);
        let fast = compared(&sure, &sure, &expected, Precision::Fast);
        assert_eq!((fast.wrong.len(), fast.drift), (1, vec![Some(0.5)]), "a mean of what is far off");
    }
}
