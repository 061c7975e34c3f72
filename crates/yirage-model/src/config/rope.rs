//! Rotary position embedding: what a configuration says about its frequencies. Turning this into tables of cosines and
//! sines is not done here.

use super::access::{Section, as_positive_list};
use super::from_json::same;
use super::{ConfigSource, LayerType, RawConfig};
use crate::error::ModelError;
use serde_json::{Map, Value};

/// The rotation of a kind of layer.
#[derive(Clone, PartialEq, Debug)]
pub struct RopeConfig {
    /// Base of the frequencies.
    pub theta: f64,
    /// What is done to the frequencies for contexts beyond the trained ones.
    pub scaling: RopeScaling,
    /// The share of a head's dimensions that rotates, from the first on.
    pub partial_rotary_factor: f64,
}

/// What files call the rotation of a share of whole heads.
const PROPORTIONAL: &str = "proportional";

/// A scaling of the frequencies. Contexts are counted in positions.
#[derive(Clone, PartialEq, Debug)]
pub enum RopeScaling {
    /// None.
    Default,
    /// Frequencies divided by `factor`.
    Linear {
        /// The divisor.
        factor: f64,
    },
    /// Frequencies of whole heads, each divided by `factor`, of which the first turn, as
    /// [`partial_rotary_factor`](RopeConfig::partial_rotary_factor) says, and the others are 0 (Gemma 4).
    Proportional {
        /// The divisor.
        factor: f64,
    },
    /// The base grows with the sequence beyond `original`.
    Dynamic {
        /// Growth of the context.
        factor: f64,
        /// The trained context.
        original: u32,
    },
    /// Low frequencies divided, high ones kept, a smooth band between.
    Llama3 {
        /// The divisor of low frequencies.
        factor: f64,
        /// Wave lengths above `original / low_freq_factor` are divided.
        low_freq_factor: f64,
        /// Wave lengths below `original / high_freq_factor` are kept.
        high_freq_factor: f64,
        /// The trained context.
        original: u32,
    },
    /// YaRN (arXiv 2309.00071).
    Yarn {
        /// The divisor of interpolated frequencies.
        factor: f64,
        /// The trained context.
        original: u32,
        /// Rotations above which a frequency is kept.
        beta_fast: f64,
        /// Rotations below which a frequency is divided.
        beta_slow: f64,
        /// Scale of cosines and sines where stated; else it follows from `factor` and the two below.
        attention_factor: Option<f64>,
        /// Weight of the logarithm in the scale of cosines and sines.
        mscale: Option<f64>,
        /// The same, in the scale that divides it (and in the scale of scores, for latent attention).
        mscale_all_dim: Option<f64>,
        /// Whether the borders of the band are rounded to whole dimensions.
        truncate: bool,
    },
    /// Every frequency divided by its own number, from this tensor of `[rotary_dim / 2]` (GGUF files store the
    /// Llama 3 scaling so).
    Factors {
        /// The tensor's name.
        tensor: String,
    },
    /// LongRoPE (arXiv 2402.13753): every frequency divided by its own number, which is another one where a sequence is
    /// longer than `original`.
    LongRope {
        /// Divisors of sequences within the trained context.
        short: FrequencyDivisors,
        /// Those of longer ones.
        long: FrequencyDivisors,
        /// The trained context.
        original: u32,
        /// Scale of cosines and sines, for sequences of every length.
        attention_factor: f64,
    },
}

impl RopeScaling {
    fn divisors(&self) -> [Option<&FrequencyDivisors>; 2] {
        match self {
            RopeScaling::LongRope { short, long, .. } => [Some(short), Some(long)],
            _ => [None; 2],
        }
    }

    /// The tensors that hold divisors of its frequencies.
    pub fn divisor_tensors(&self) -> impl Iterator<Item = &str> {
        let own = if let RopeScaling::Factors { tensor } = self { Some(tensor.as_str()) } else { None };
        let of_lengths = self.divisors().into_iter().flatten().filter_map(|divisors| match divisors {
            FrequencyDivisors::Tensor(tensor) => Some(tensor.as_str()),
            FrequencyDivisors::Stated { .. } => None,
        });
        own.into_iter().chain(of_lengths)
    }

    /// Whether each frequency has a divisor of its own.
    pub fn is_divided(&self) -> bool {
        matches!(self, RopeScaling::Factors { .. } | RopeScaling::LongRope { .. })
    }
}

/// Where the divisors of frequencies stand, one for each rotating pair.
#[derive(Clone, PartialEq, Debug)]
pub enum FrequencyDivisors {
    /// In the configuration, under this key.
    Stated {
        /// The key, as messages call it.
        key: String,
        /// The divisors, each above 0.
        values: Vec<f64>,
    },
    /// In this tensor.
    Tensor(String),
}

/// A factor `1 + rate ln(1 + floor(position / every))`, by which queries of far positions are multiplied (Ministral 3).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct QueryGrowth {
    /// Weight of the logarithm.
    pub rate: f64,
    /// Positions of one factor, the trained context: none of them grows.
    pub every: u32,
}

/// Whether a section has sections of its own for kinds of layers.
fn is_nested(section: &Map<String, Value>) -> bool {
    [LayerType::Full, LayerType::Sliding].iter().any(|layer| section.get(layer.name()).is_some_and(Value::is_object))
}

impl RopeConfig {
    /// How many of `head_dim` dimensions rotate. The small addend undoes the rounding of a quotient of integers.
    pub fn rotary_dim(&self, head_dim: u32) -> u32 {
        if matches!(self.scaling, RopeScaling::Proportional { .. }) {
            return head_dim;
        }
        (f64::from(head_dim) * self.partial_rotary_factor + 1e-6) as u32
    }
}

impl RawConfig {
    /// The rotation of layers of this type.
    ///
    /// # Errors
    /// [`ModelError::Unsupported`] with the name of an unknown scaling; [`ModelError::Config`].
    pub fn rope(&self, layer: LayerType) -> Result<RopeConfig, ModelError> {
        let empty = Map::new();
        let top = self.top();
        let local = top.get("rope_local_base_freq").is_some() && layer == LayerType::Sliding;
        let (prefix, values) = match top.opt("rope_parameters", "an object", Value::as_object)? {
            Some(flat) => match flat.get(layer.name()) {
                Some(Value::Object(own)) => (format!("rope_parameters.{}.", layer.name()), own),
                Some(Value::Null) | None if is_nested(flat) => {
                    let key = format!("rope_parameters.{}", layer.name());
                    return Err(super::access::mismatch(
                        self.file(),
                        &key,
                        "an object, as for other layers",
                        &Value::Null,
                    ));
                }
                Some(Value::Null) | None => ("rope_parameters.".to_owned(), flat),
                Some(other) => {
                    let key = format!("rope_parameters.{}", layer.name());
                    return Err(super::access::mismatch(self.file(), &self.called(&key), "an object", other));
                }
            },
            // Local layers of the older dialect have a base of their own and are never scaled.
            None if local => (String::new(), &empty),
            None => {
                let scaling = top.opt("rope_scaling", "an object", Value::as_object)?;
                ("rope_scaling.".to_owned(), scaling.unwrap_or(&empty))
            }
        };
        let section = Section { file: self.file(), prefix: &prefix, values, names: &self.names };
        let theta_key = if local { "rope_local_base_freq" } else { "rope_theta" };
        let theta = match section.opt_positive("rope_theta")? {
            Some(theta) => theta,
            None => top.opt_positive(theta_key)?.unwrap_or(10_000.0),
        };
        let partial = match section.opt_positive("partial_rotary_factor")? {
            Some(partial) => partial,
            None => top.opt_positive("partial_rotary_factor")?.unwrap_or(1.0),
        };
        let proportional = section.opt_str("rope_type")? == Some(PROPORTIONAL);
        let most = if proportional || self.rotates_in_part()? { partial <= 1.0 } else { partial == 1.0 };
        if !most {
            let key = section.called("partial_rotary_factor");
            let expected = "a number above 0 and at most 1, which is 1 where the architecture rotates whole heads";
            return Err(super::access::mismatch(self.file(), &key, expected, &Value::from(partial)));
        }
        if let Some(growth) = self.fixed_growth(&section)? {
            let (theta, scaling) = (theta * growth, RopeScaling::Default);
            return Ok(RopeConfig { theta, scaling, partial_rotary_factor: partial });
        }
        Ok(RopeConfig { theta, scaling: self.scaling(&section)?, partial_rotary_factor: partial })
    }

    /// How queries grow with their position, in the one family that says so.
    ///
    /// # Errors
    /// [`ModelError::Config`].
    pub fn query_growth(&self) -> Result<Option<QueryGrowth>, ModelError> {
        if self.model_type()? != "ministral3" {
            return Ok(None);
        }
        let empty = Map::new();
        let values = self.top().opt("rope_parameters", "an object", Value::as_object)?.unwrap_or(&empty);
        let s = Section { file: self.file(), prefix: "rope_parameters.", values, names: &self.names };
        let rate = s.required("llama_4_scaling_beta", "a number", s.opt_f64("llama_4_scaling_beta")?)?;
        Ok(Some(QueryGrowth { rate, every: self.original_context(&s)? }))
    }

    /// What the base of a Hunyuan model is multiplied by, whose files call a growth `dynamic` that is the same for every
    /// length.
    fn fixed_growth(&self, s: &Section<'_>) -> Result<Option<f64>, ModelError> {
        let name = s.opt_str("rope_type")?.or(s.opt_str("type")?);
        if !matches!(self.model_type()?, "hunyuan_v1_dense" | "hunyuan_v1_moe") || name != Some("dynamic") {
            return Ok(None);
        }
        let Some(alpha) = s.opt_positive("alpha")? else { return Ok(None) };
        match f64::from(self.u32("head_dim")?) {
            dim if dim > 2.0 => Ok(Some(alpha.powf(dim / (dim - 2.0)))),
            _ => Err(self.invalid("head_dim", "an integer above 2")),
        }
    }

    /// Whether the reference code heeds the share of a head that rotates.
    fn rotates_in_part(&self) -> Result<bool, ModelError> {
        Ok(self.source() == ConfigSource::Gguf
            || matches!(
                self.model_type()?,
                "phi3"
                    | "gpt_neox"
                    | "glm"
                    | "glm4"
                    | "glm4_moe"
                    | "stablelm"
                    | "minimax_m2"
                    | "qwen3_next"
                    | "qwen3_5_text"
                    | "qwen3_5_moe_text"
            ))
    }

    /// Refuses a file whose older section of the rotation contradicts its current one: the reference code takes one of
    /// them, which one depends on its age.
    ///
    /// # Errors
    /// [`ModelError::Config`] naming the key.
    pub(super) fn check_rope_sections(&self) -> Result<(), ModelError> {
        let top = self.top();
        let old = top.opt("rope_scaling", "an object", Value::as_object)?;
        let new = top.opt("rope_parameters", "an object", Value::as_object)?;
        let (Some(old), Some(new)) = (old, new) else { return Ok(()) };
        let new = new.get(LayerType::Full.name()).and_then(Value::as_object).unwrap_or(new);
        let kind = |section: &Map<String, Value>| {
            let stated = section.get("rope_type").or_else(|| section.get("type"));
            stated.cloned().unwrap_or_else(|| Value::from("default"))
        };
        let disagree = |key: &str, value: &Value, found: &Value| {
            let expected = format!("{found}, as rope_parameters says, or no rope_scaling beside it");
            Err(super::access::mismatch(self.file(), &format!("rope_scaling.{key}"), &expected, value))
        };
        if kind(old) != kind(new) {
            return disagree("rope_type", &kind(old), &kind(new));
        }
        for (key, value) in old.iter().filter(|(key, _)| !matches!(key.as_str(), "type" | "rope_type")) {
            let found = new.get(key).unwrap_or(&Value::Null);
            if !same(found, value) {
                return disagree(key, value, found);
            }
        }
        Ok(())
    }

    fn scaling(&self, s: &Section<'_>) -> Result<RopeScaling, ModelError> {
        let name = match s.opt_str("rope_type")? {
            Some(name) => name,
            None => s.opt_str("type")?.unwrap_or("default"),
        };
        let number = |key| s.required(key, "a number above 0", s.opt_positive(key)?);
        match name {
            "default" | "none" => Ok(RopeScaling::Default),
            "longrope" => self.longrope(s),
            // The family's own code takes older names for longrope, and knows no other scaling.
            "su" | "yarn" if self.is_phi_json()? => self.longrope(s),
            _ if self.is_phi_json()? => Err(self.unknown_scaling(s, name)),
            "linear" => Ok(RopeScaling::Linear { factor: number("factor")? }),
            PROPORTIONAL => Ok(RopeScaling::Proportional { factor: s.opt_positive("factor")?.unwrap_or(1.0) }),
            "dynamic" => {
                // The reference takes the configured maximum here, whatever the section calls original.
                let original = self.context()?;
                Ok(RopeScaling::Dynamic { factor: number("factor")?, original })
            }
            "llama3" => {
                let (low_freq_factor, high_freq_factor) = (number("low_freq_factor")?, number("high_freq_factor")?);
                if high_freq_factor <= low_freq_factor {
                    let found = Value::from(high_freq_factor);
                    let key = s.called("high_freq_factor");
                    return Err(super::access::mismatch(s.file, &key, "a number above low_freq_factor", &found));
                }
                let original = self.original_context(s)?;
                Ok(RopeScaling::Llama3 { factor: number("factor")?, low_freq_factor, high_freq_factor, original })
            }
            "yarn" => self.yarn(s),
            "factors" => {
                let tensor = s.required("tensor", "a tensor name", s.opt_str("tensor")?)?;
                Ok(RopeScaling::Factors { tensor: tensor.to_owned() })
            }
            other => Err(self.unknown_scaling(s, other)),
        }
    }

    fn is_phi_json(&self) -> Result<bool, ModelError> {
        Ok(self.source() == ConfigSource::Json && self.model_type()? == "phi3")
    }

    fn unknown_scaling(&self, s: &Section<'_>, name: &str) -> ModelError {
        let phi = self.is_phi_json().unwrap_or(false);
        let known = if phi {
            "default and longrope"
        } else {
            "default, linear, proportional, dynamic, llama3, yarn and longrope"
        };
        let why = format!("{}: {} names it; {known} are known", s.file, s.called("rope_type"));
        ModelError::Unsupported { what: format!("the rope scaling {name:?}"), why }
    }

    fn longrope(&self, s: &Section<'_>) -> Result<RopeScaling, ModelError> {
        let divisors = |length: &str| -> Result<FrequencyDivisors, ModelError> {
            let (stated, tensor) = (format!("{length}_factor"), format!("{length}_tensor"));
            if let Some(tensor) = s.opt_str(&tensor)?.filter(|_| self.source() == ConfigSource::Gguf) {
                return Ok(FrequencyDivisors::Tensor(tensor.to_owned()));
            }
            const LIST: &str = "a list of numbers above 0";
            let values = s.required(&stated, LIST, s.opt(&stated, LIST, as_positive_list)?)?;
            Ok(FrequencyDivisors::Stated { key: s.called(&stated), values })
        };
        let (short, long, original) = (divisors("short")?, divisors("long")?, self.original_context(s)?);
        let attention_factor = match s.opt_positive("attention_factor")? {
            Some(stated) => stated,
            None => {
                let factor = match s.opt_positive("factor")? {
                    Some(factor) => factor,
                    None => f64::from(self.context()?) / f64::from(original),
                };
                // A context of one position has no logarithm to divide by.
                if factor <= 1.0 || original <= 1 { 1.0 } else { (1.0 + factor.ln() / f64::from(original).ln()).sqrt() }
            }
        };
        Ok(RopeScaling::LongRope { short, long, original, attention_factor })
    }

    fn yarn(&self, s: &Section<'_>) -> Result<RopeScaling, ModelError> {
        let original = self.original_context(s)?;
        let factor = match s.opt_positive("factor")? {
            Some(factor) => factor,
            None => f64::from(self.context()?) / f64::from(original),
        };
        Ok(RopeScaling::Yarn {
            factor,
            original,
            beta_fast: s.opt_positive("beta_fast")?.unwrap_or(32.0),
            beta_slow: s.opt_positive("beta_slow")?.unwrap_or(1.0),
            attention_factor: s.opt_positive("attention_factor")?,
            mscale: s.opt_f64("mscale")?,
            mscale_all_dim: s.opt_f64("mscale_all_dim")?,
            truncate: s.opt_bool("truncate")?.unwrap_or(true),
        })
    }

    /// The trained context: in the section, beside it, or the maximum itself.
    fn original_context(&self, s: &Section<'_>) -> Result<u32, ModelError> {
        const KEY: &str = "original_max_position_embeddings";
        let found = match s.opt_u32(KEY)? {
            Some(n) => Some(n),
            None => self.opt_u32(KEY)?,
        };
        match found {
            Some(0) => Err(self.invalid(KEY, "an integer above 0")),
            Some(n) => Ok(n),
            None => self.context(),
        }
    }

    fn context(&self) -> Result<u32, ModelError> {
        match self.u32("max_position_embeddings")? {
            0 => Err(self.invalid("max_position_embeddings", "an integer above 0")),
            n => Ok(n),
        }
    }
}
