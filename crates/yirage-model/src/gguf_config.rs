//! The keys of a `config.json` as GGUF metadata: the reader's tables, the other way round.
//!
//! What GGUF metadata of a family does not state (kinds of layers, factors that all of its models have) is not written
//! here either: whoever writes a file compares the model that is read from it with the one that was meant.

use crate::config::gguf_keys::{
    FLOATS, FREQUENCY_FACTORS, INTEGERS, LONG_DIVISORS, SHORT_DIVISORS, architecture_of, has_windows, of_family,
};
use crate::config::{FrequencyDivisors, LayerType, RawConfig, RopeConfig, RopeScaling};
use crate::error::ModelError;
use crate::gguf::{GgufArray, GgufValue};
use crate::rope::Frequencies;
use serde_json::Value as Json;

/// What a configuration becomes in a GGUF file.
#[derive(Clone, PartialEq, Debug)]
pub struct GgufConfig {
    /// `general.architecture`.
    pub architecture: &'static str,
    /// Keys, with the architecture in front, and values.
    pub entries: Vec<(String, GgufValue)>,
    /// Tensors that the configuration stands in: their names, and one divisor of a frequency for each rotating pair.
    pub divisors: Vec<(&'static str, Vec<f32>)>,
}

impl RawConfig {
    /// Translates the configuration into GGUF metadata.
    ///
    /// # Errors
    /// [`ModelError::Unsupported`] for a model type that GGUF files have no architecture for, and for a scaling of the
    /// rotation that they cannot state; [`ModelError::Config`] for values that are not what they should be.
    pub fn to_gguf(&self) -> Result<GgufConfig, ModelError> {
        let model_type = self.model_type()?;
        let architecture = architecture_of(model_type).ok_or_else(|| ModelError::Unsupported {
            what: format!("{model_type:?} in a GGUF file"),
            why: format!("{}: model_type is of no architecture that is read from GGUF files", self.file()),
        })?;
        let mut translation = MetadataTranslation { config: self, architecture, entries: Vec::new(), divisors: vec![] };
        translation.integers()?;
        translation.heads()?;
        translation.floats()?;
        translation.rope()?;
        let MetadataTranslation { entries, divisors, .. } = translation;
        Ok(GgufConfig { architecture, entries, divisors })
    }
}

struct MetadataTranslation<'a> {
    config: &'a RawConfig,
    architecture: &'static str,
    entries: Vec<(String, GgufValue)>,
    divisors: Vec<(&'static str, Vec<f32>)>,
}

impl MetadataTranslation<'_> {
    fn put(&mut self, suffix: &str, value: GgufValue) {
        let key = format!("{}.{suffix}", self.architecture);
        match self.entries.iter_mut().find(|(known, _)| *known == key) {
            Some((_, known)) => *known = value,
            None => self.entries.push((key, value)),
        }
    }

    fn integers(&mut self) -> Result<(), ModelError> {
        // A family's own keys count where another's have the same suffix.
        for (suffix, key) in INTEGERS.iter().chain(of_family(self.architecture)) {
            let windowless = *key == "sliding_window" && !has_windows(self.architecture);
            if windowless || matches!(*key, "head_dim" | "v_head_dim") {
                continue;
            }
            let Some(found) = self.config.get(key) else { continue };
            let value = match found {
                Json::Array(_) => {
                    let list = self.config.u32_per_layer(key, self.config.layers()?)?;
                    GgufValue::Array(GgufArray::U32(list))
                }
                _ => GgufValue::U32(self.config.u32(key)?),
            };
            // Dense models say that they have no experts; their GGUF files do not speak of any.
            if suffix.starts_with("expert_") && value == GgufValue::U32(0) {
                continue;
            }
            self.put(suffix, value);
        }
        match self.architecture {
            // Its files say that no layer has a window, as some of the family's have one.
            "phi3" if !self.config.has("sliding_window") => self.put("attention.sliding_window", GgufValue::U32(0)),
            "gpt-oss" | "minimax-m2" => {
                let inner = self.config.u32("intermediate_size")?;
                self.put("expert_feed_forward_length", GgufValue::U32(inner));
            }
            "olmo2" | "exaone4" if self.config.has("sliding_window") => {
                let sliding = self.config.layer_types()?.into_iter().map(|layer| layer == LayerType::Sliding);
                let pattern = GgufValue::Array(GgufArray::Bool(sliding.collect()));
                self.put("attention.sliding_window_pattern", pattern);
            }
            "stablelm" => {
                let parallel = self.config.bool_or("use_parallel_residual", false)?;
                self.put("use_parallel_residual", GgufValue::Bool(parallel));
            }
            _ => {}
        }
        if let Some(vocab) = self.config.opt_u32("vocab_size")? {
            self.put("vocab_size", GgufValue::U32(vocab));
        }
        Ok(())
    }

    fn heads(&mut self) -> Result<(), ModelError> {
        let width = self.config.u32("head_dim")?;
        self.put("attention.key_length", GgufValue::U32(width));
        self.put("attention.value_length", GgufValue::U32(width));
        Ok(())
    }

    fn floats(&mut self) -> Result<(), ModelError> {
        for (suffix, key) in FLOATS {
            if let Some(value) = self.config.opt_f64(key)? {
                let value = self.float(key, value)?;
                self.put(suffix, value);
            }
        }
        if matches!(self.architecture, "command-r" | "cohere2")
            && let Some(factor) = self.config.opt_f64("logit_scale")?
        {
            let factor = self.float("logit_scale", factor)?;
            self.put("logit_scale", factor);
        }
        Ok(())
    }

    /// A number as the f32 that such files hold.
    fn float(&self, key: &str, value: f64) -> Result<GgufValue, ModelError> {
        match value as f32 {
            narrow if narrow.is_finite() => Ok(GgufValue::F32(narrow)),
            _ => Err(self.config.invalid(key, "a number that an f32 holds")),
        }
    }

    fn rope(&mut self) -> Result<(), ModelError> {
        let width = self.config.u32("head_dim")?;
        let full = self.config.rope(LayerType::Full)?;
        let theta = self.float("rope_theta", full.theta)?;
        self.put("rope.freq_base", theta);
        self.put("rope.dimension_count", GgufValue::U32(full.rotary_dim(width)));
        // Only these have a rotation of their own for layers with a window.
        if matches!(self.config.model_type()?, "gemma3_text" | "olmo3") {
            let sliding = self.float("rope_theta", self.config.rope(LayerType::Sliding)?.theta)?;
            self.put("rope.freq_base_swa", sliding);
        }
        if self.architecture == "phi3"
            && let Some(original) = self.config.opt_u32("original_max_position_embeddings")?
        {
            self.put("rope.scaling.original_context_length", GgufValue::U32(original));
        }
        self.scaling(&full, full.rotary_dim(width))
    }

    fn scaling(&mut self, rope: &RopeConfig, rotary: u32) -> Result<(), ModelError> {
        match &rope.scaling {
            RopeScaling::Default => Ok(()),
            RopeScaling::Linear { factor } => self.factor("linear", *factor),
            RopeScaling::Yarn { factor, original, beta_fast, beta_slow, attention_factor, .. } => {
                self.factor("yarn", *factor)?;
                self.put("rope.scaling.original_context_length", GgufValue::U32(*original));
                let (fast, slow) = (self.float("beta_fast", *beta_fast)?, self.float("beta_slow", *beta_slow)?);
                self.put("rope.scaling.yarn_beta_fast", fast);
                self.put("rope.scaling.yarn_beta_slow", slow);
                // There a multiplier of the usual scale of cosines and sines, here that scale itself.
                if let Some(scale) = attention_factor {
                    let usual = if *factor > 1.0 { 1.0 + 0.1 * factor.ln() } else { 1.0 };
                    let multiplier = self.float("attention_factor", scale / usual)?;
                    self.put("rope.scaling.yarn_attn_factor", multiplier);
                }
                Ok(())
            }
            RopeScaling::Llama3 { .. } => {
                let plain = RopeConfig { scaling: RopeScaling::Default, ..rope.clone() };
                let per_position = |rope: &RopeConfig| Frequencies::new(rope, rotary, None).per_position;
                let pairs = per_position(&plain).into_iter().zip(per_position(rope));
                self.divisors.push((FREQUENCY_FACTORS, pairs.map(|(plain, scaled)| (plain / scaled) as f32).collect()));
                Ok(())
            }
            RopeScaling::LongRope { short, long, original, attention_factor } => {
                for (tensor, divisors) in [(LONG_DIVISORS, long), (SHORT_DIVISORS, short)] {
                    let FrequencyDivisors::Stated { values, .. } = divisors else {
                        return Err(self.not_stated("divisors in a tensor of the file"));
                    };
                    self.divisors.push((tensor, values.iter().map(|&x| x as f32).collect()));
                }
                self.put("rope.scaling.type", GgufValue::String("longrope".into()));
                self.put("rope.scaling.original_context_length", GgufValue::U32(*original));
                let scale = self.float("attention_factor", *attention_factor)?;
                self.put("rope.scaling.attn_factor", scale);
                Ok(())
            }
            RopeScaling::Dynamic { .. } => Err(self.not_stated("a rotation that is scaled by the sequence's length")),
            RopeScaling::Proportional { .. } => Err(self.not_stated("a share of whole heads that rotates")),
            RopeScaling::Factors { .. } => Err(self.not_stated("divisors in a tensor of the file")),
        }
    }

    fn factor(&mut self, kind: &str, factor: f64) -> Result<(), ModelError> {
        self.put("rope.scaling.type", GgufValue::String(kind.to_owned()));
        let factor = self.float("factor", factor)?;
        self.put("rope.scaling.factor", factor);
        Ok(())
    }

    fn not_stated(&self, what: &str) -> ModelError {
        ModelError::Unsupported {
            what: format!("{what} in a GGUF file"),
            why: format!("{}: GGUF metadata has no key for it", self.config.file()),
        }
    }
}
