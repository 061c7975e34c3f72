//! What a request may ask of a chain, and the ranges.

use super::breakers::SequenceBreakers;
use crate::sampling::ParamError;
use std::sync::Arc;

/// A stage of a chain by its name in llama.cpp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageName(pub(super) &'static str);

/// A penalty on repetitions.
#[derive(Clone, Debug, PartialEq)]
pub struct DrySettings {
    /// Its factor; 0 is none.
    pub multiplier: f32,
    /// Each further repeated token multiplies it by this; 1 or above.
    pub base: f32,
    /// Repeated tokens that cost nothing.
    pub allowed_length: u32,
    /// So many last tokens are looked at; none is all.
    pub last_tokens: Option<u32>,
    /// Texts over which no repetition goes; whoever has a tokenizer makes [`DrySettings::breakers`] of them.
    pub sequence_breakers: Vec<String>,
    /// The same as tokens.
    pub breakers: Arc<SequenceBreakers>,
}

impl Default for DrySettings {
    /// llama.cpp's values, and no penalty.
    fn default() -> Self {
        DrySettings {
            multiplier: 0.0,
            base: 1.75,
            allowed_length: 2,
            last_tokens: Some(64),
            sequence_breakers: ["\n", ":", "\"", "*"].map(str::to_owned).to_vec(),
            breakers: Arc::default(),
        }
    }
}

/// How surprising tokens shall be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MirostatSettings {
    /// 0 is off, 1 and 2 the versions.
    pub version: u8,
    /// The target, in bits.
    pub tau: f32,
    /// How fast the limit follows; 0 to 1.
    pub eta: f32,
}

impl Default for MirostatSettings {
    /// Off, with llama.cpp's target and rate.
    fn default() -> Self {
        MirostatSettings { version: 0, tau: 5.0, eta: 0.1 }
    }
}

impl MirostatSettings {
    /// The limit before the first token, in bits.
    pub(super) fn initial(self) -> f64 {
        2.0 * f64::from(self.tau)
    }

    /// The limit behind a token of this probability.
    pub(super) fn next(self, limit: f64, probability: f64) -> f64 {
        limit - f64::from(self.eta) * (-libm::log2(probability) - f64::from(self.tau))
    }
}

/// Exclusion of top choices ("XTC", <https://github.com/oobabooga/text-generation-webui/pull/6335>).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct XtcSettings {
    /// How often it is applied: 0 never, 1 always.
    pub probability: f32,
    /// Of the tokens that have at least this probability all but the least likely are dropped; above 0.5 none.
    pub threshold: f32,
}

/// A temperature that follows the entropy of what is left (<https://github.com/ggml-org/llama.cpp/pull/4972>).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DynamicTemperature {
    /// It lies within the temperature less and plus this; 0 is the temperature itself.
    pub range: f32,
    /// Power of the entropy's share of the largest possible one.
    pub exponent: f32,
}

/// The samplers that run on the host. The default asks for none of them.
#[derive(Clone, Debug, PartialEq)]
pub struct SamplerChain {
    /// The stages and their order; none is llama.cpp's own where anything else is asked for.
    pub order: Option<Vec<StageName>>,
    /// A penalty on what would go on with a repetition.
    pub dry: DrySettings,
    /// Likeliest tokens dropped at random.
    pub xtc: XtcSettings,
    /// Keeps the tokens whose surprise is nearest to the expected one, up to this share (Meister et al., "Locally typical
    /// sampling", TACL 2023); 1 keeps all.
    pub typical_p: f32,
    /// Keeps logits within so many standard deviations of the largest (Tang et al., "Top-nσ", 2024); 0 keeps all.
    pub top_n_sigma: f32,
    /// A temperature by entropy.
    pub dynamic_temperature: DynamicTemperature,
    /// A fixed surprise in the place of every other limit.
    pub mirostat: MirostatSettings,
}

impl Default for SamplerChain {
    /// llama.cpp's values, with which nothing is done.
    fn default() -> Self {
        SamplerChain {
            order: None,
            dry: DrySettings::default(),
            xtc: XtcSettings { probability: 0.0, threshold: 0.1 },
            typical_p: 1.0,
            top_n_sigma: 0.0,
            dynamic_temperature: DynamicTemperature { range: 0.0, exponent: 1.0 },
            mirostat: MirostatSettings::default(),
        }
    }
}

impl SamplerChain {
    /// Whether nothing is asked for: the device samples.
    pub fn is_off(&self) -> bool {
        self.order.is_none() && !self.active().any(|_| true)
    }

    /// What it asks for, by llama.cpp's names.
    pub fn asked(&self) -> Vec<&'static str> {
        self.active().chain(self.order.is_some().then_some("samplers")).collect()
    }

    /// The parameters that ask for something, by llama.cpp's names.
    pub(in crate::sampling) fn active(&self) -> impl Iterator<Item = &'static str> {
        let all = [
            ("dry_multiplier", self.dry.multiplier != 0.0),
            ("xtc_probability", self.xtc.probability > 0.0),
            ("typical_p", self.typical_p < 1.0),
            ("top_n_sigma", self.top_n_sigma > 0.0),
            ("dynatemp_range", self.dynamic_temperature.range > 0.0),
            ("mirostat", self.mirostat.version != 0),
        ];
        all.into_iter().filter(|(_, active)| *active).map(|(name, _)| name)
    }

    /// Checks every number.
    pub(in crate::sampling) fn check(&self) -> Result<(), ParamError> {
        let most = f32::MAX;
        let ranges = [
            ("dry_multiplier", self.dry.multiplier, 0.0..=100.0, "between 0 and 100"),
            ("dry_base", self.dry.base, 1.0..=100.0, "between 1 and 100"),
            ("xtc_probability", self.xtc.probability, 0.0..=1.0, "between 0 and 1"),
            ("xtc_threshold", self.xtc.threshold, 0.0..=1.0, "between 0 and 1"),
            ("typical_p", self.typical_p, f32::MIN_POSITIVE..=1.0, "above 0 and at most 1"),
            ("top_n_sigma", self.top_n_sigma, 0.0..=most, "0 or above"),
            ("dynatemp_range", self.dynamic_temperature.range, 0.0..=100.0, "between 0 and 100"),
            ("dynatemp_exponent", self.dynamic_temperature.exponent, 0.0..=100.0, "between 0 and 100"),
            ("mirostat", f32::from(self.mirostat.version), 0.0..=2.0, "0, 1 or 2"),
            ("mirostat_tau", self.mirostat.tau, 0.0..=100.0, "between 0 and 100"),
            ("mirostat_eta", self.mirostat.eta, 0.0..=1.0, "between 0 and 1"),
        ];
        match ranges.into_iter().find(|(_, value, range, _)| !range.contains(value)) {
            Some((field, value, _, allowed)) => Err(ParamError::OutOfRange { field, value, allowed }),
            None => Ok(()),
        }
    }
}
