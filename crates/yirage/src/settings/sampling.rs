//! How tokens are chosen: options over the model's own suggestions over our defaults.

use super::sampler_chain::sampler_chain;
use crate::failure::CliFailure;
use crate::options::Layers;
use std::time::{SystemTime, UNIX_EPOCH};
use yirage_engine::sampling::SamplingParams;
use yirage_model::GenerationConfig;

/// What holds where neither options nor the model say anything: lively, and free of very unlikely tokens.
const TEMPERATURE: f32 = 0.8;
const TOP_K: u32 = 40;
const TOP_P: f32 = 0.95;
const MIN_P: f32 = 0.05;

/// Resolved sampling and its origins.
pub(crate) struct ResolvedSampling {
    /// The parameters.
    pub(crate) params: SamplingParams,
    /// Which of them the model suggested: options with values.
    pub(crate) suggested: Vec<(&'static str, f64)>,
    /// The seed, where it was drawn.
    pub(crate) drawn: Option<u64>,
}

impl ResolvedSampling {
    /// Whether the options are right whatever the model suggests, which is known before a model is loaded.
    ///
    /// # Errors
    /// [`CliFailure::Usage`] naming the option.
    pub(crate) fn check(layers: &Layers) -> Result<(), CliFailure> {
        ResolvedSampling::resolve(layers, &GenerationConfig::default()).map(drop)
    }

    /// Reads the options; what they leave open the model's suggestions decide, then the defaults.
    ///
    /// # Errors
    /// [`CliFailure::Usage`] naming the option.
    pub(crate) fn resolve(layers: &Layers, model: &GenerationConfig) -> Result<ResolvedSampling, CliFailure> {
        let mut suggested = Vec::new();
        let mut number = |name: &'static str, of_model: Option<f64>, default: f32, words: &str, allowed: Range| {
            let allowed = |x: &f32| x.is_finite() && (allowed.0..=allowed.1).contains(x);
            match (layers.number::<f32>(name, words, allowed)?, of_model) {
                (Some(x), _) => Ok::<f32, CliFailure>(x),
                (None, Some(x)) => {
                    suggested.push((name, x));
                    Ok(x as f32)
                }
                (None, None) => Ok(default),
            }
        };
        let greedy = (model.do_sample == Some(false)).then_some(0.0);
        let params = SamplingParams {
            temperature: number(
                "temperature",
                greedy.or(model.temperature),
                TEMPERATURE,
                "a number from 0 to 100",
                (0.0, 100.0),
            )?,
            top_p: number("top-p", model.top_p, TOP_P, "a number above 0, at most 1", (f32::MIN_POSITIVE, 1.0))?,
            min_p: number("min-p", model.min_p, MIN_P, "a number from 0 to 1", (0.0, 1.0))?,
            repetition_penalty: number(
                "repetition-penalty",
                model.repetition_penalty,
                1.0,
                "a number from 0.01 to 100",
                (0.01, 100.0),
            )?,
            presence_penalty: number("presence-penalty", None, 0.0, "a number from -2 to 2", (-2.0, 2.0))?,
            frequency_penalty: number("frequency-penalty", None, 0.0, "a number from -2 to 2", (-2.0, 2.0))?,
            top_k: 0,
            chain: sampler_chain(layers)?,
            ..SamplingParams::default()
        };
        let top_k =
            match (layers.number::<u32>("top-k", "a whole number below 2^32, 0 for all", |_| true)?, model.top_k) {
                (Some(k), _) => k,
                (None, Some(k)) => {
                    suggested.push(("top-k", f64::from(k)));
                    k
                }
                (None, None) => TOP_K,
            };
        let drawn = (layers.text("seed") == Some("random")).then(draw);
        let seed = match drawn {
            Some(seed) => seed,
            None => layers.number("seed", "a whole number below 2^64 or `random`", |_| true)?.unwrap_or(0),
        };
        if params.temperature == 0.0 {
            // Nothing of the rest matters then, so nothing of it is worth a word.
            suggested.retain(|(name, _)| *name == "temperature");
        }
        Ok(ResolvedSampling { params: SamplingParams { top_k, seed, ..params }, suggested, drawn })
    }

    /// What the user should know.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if !self.suggested.is_empty() {
            let list: Vec<String> = self.suggested.iter().map(|(name, value)| format!("{name} {value}")).collect();
            notes.push(format!("sampling as the model suggests: {}", list.join(", ")));
        }
        notes.extend(self.drawn.map(|seed| format!("seed {seed}")));
        if !self.params.chain.is_off() {
            notes.push(format!("the host chooses tokens, for {}", self.params.chain.asked().join(", ")));
        }
        let unused = self.params.unused();
        if !unused.is_empty() {
            notes.push(format!("these samplers do not read {}", unused.join(", ")));
        }
        notes
    }
}

/// The least and the largest value.
type Range = (f32, f32);

/// A seed from the clock and the process: for variety, not for secrets. Small enough to be typed again.
fn draw() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64);
    let mixed = (now ^ (u64::from(std::process::id()) << 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed >> 32
}
