//! Which layers attend to a sliding window.

use super::{ConfigSource, RawConfig};
use crate::error::ModelError;
use crate::limits::LAYERS;
use serde_json::Value;

/// What a layer attends to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LayerType {
    /// Every earlier position.
    Full,
    /// The last `sliding_window` positions, the own one included.
    Sliding,
}

impl LayerType {
    /// The name in `layer_types` and `rope_parameters`.
    pub fn name(self) -> &'static str {
        match self {
            LayerType::Full => "full_attention",
            LayerType::Sliding => "sliding_attention",
        }
    }
}

impl RawConfig {
    /// `num_hidden_layers`, within budget and not zero.
    ///
    /// # Errors
    /// [`ModelError::Config`].
    pub fn layers(&self) -> Result<u32, ModelError> {
        match self.u32("num_hidden_layers")? {
            1..=LAYERS => self.u32("num_hidden_layers"),
            _ => Err(self.invalid("num_hidden_layers", &format!("1 to {LAYERS}"))),
        }
    }

    /// Every layer's type: `layer_types` where stated, else by the rule of the model's type.
    ///
    /// # Errors
    /// [`ModelError::Unsupported`] for other kinds of attention; [`ModelError::Config`] for lists of another length.
    pub fn layer_types(&self) -> Result<Vec<LayerType>, ModelError> {
        let layers = self.layers()?;
        match self.top().opt("layer_types", "a list", Value::as_array)? {
            Some(list) if list.len() == layers as usize => {
                let stated = list.iter().map(|v| self.layer_type(v)).collect::<Result<Vec<_>, _>>()?;
                self.check_stated(&stated, layers)?;
                Ok(stated)
            }
            Some(_) => Err(self.invalid("layer_types", &format!("a list of {layers}"))),
            None => self.layer_types_by_rule(layers),
        }
    }

    /// Which layers attend, of a hybrid model of which `layer_types` calls those `attention` and the others `other`, or by
    /// another of these names.
    ///
    /// # Errors
    /// [`ModelError::Unsupported`] for layers of other names; [`ModelError::Config`] for no list, or one of another length.
    pub fn attending_layers(&self, attention: &[&str], other: &[&str]) -> Result<Vec<bool>, ModelError> {
        let layers = self.layers()?;
        let list = self.top().opt("layer_types", "a list", Value::as_array)?;
        let list = list.filter(|list| list.len() == layers as usize);
        let list = list.ok_or_else(|| self.invalid("layer_types", &format!("a list of {layers}")))?;
        let attends = |v: &Value| match v.as_str() {
            Some(name) if attention.contains(&name) => Ok(true),
            Some(name) if other.contains(&name) => Ok(false),
            Some(name) => Err(ModelError::Unsupported {
                what: format!("the layer type {name:?}"),
                why: format!(
                    "{}: {} names it; {} are known",
                    self.file(),
                    self.called("layer_types"),
                    [attention, other].concat().join(", ")
                ),
            }),
            None => Err(super::access::mismatch(self.file(), &self.called("layer_types"), "a list of strings", v)),
        };
        list.iter().map(attends).collect()
    }

    /// Every layer's window in positions, the own one included; `None` attends to all.
    ///
    /// # Errors
    /// As [`RawConfig::layer_types`]; [`ModelError::Config`] where a sliding layer has no window.
    pub fn windows(&self) -> Result<Vec<Option<u32>>, ModelError> {
        let window = self.opt_u32("sliding_window")?.filter(|&w| w > 0);
        let of = |t| match t {
            LayerType::Full => Ok(None),
            LayerType::Sliding if window.is_some() => Ok(window),
            LayerType::Sliding => Err(self.invalid("sliding_window", "an integer above 0, for the sliding layers")),
        };
        self.layer_types()?.into_iter().map(of).collect()
    }

    /// Refuses a list that the reference code would not follow.
    fn check_stated(&self, stated: &[LayerType], layers: u32) -> Result<(), ModelError> {
        let sliding = stated.contains(&LayerType::Sliding);
        match self.model_type()? {
            "gemma2" | "gemma3_text" | "gemma3n_text" | "gemma4_text" | "modernbert" | "gpt_oss" | "cohere2"
            | "olmo3" | "exaone4" | "ministral" => Ok(()),
            "qwen2" | "qwen2_moe" | "qwen3" | "smollm3" if sliding && !self.bool_or("use_sliding_window", false)? => {
                Err(self.invalid("use_sliding_window", "true, since layer_types has sliding layers"))
            }
            "qwen2" | "qwen2_moe" | "qwen3" | "smollm3" => Ok(()),
            _ if self.layer_types_by_rule(layers)? == stated => Ok(()),
            other => Err(self.invalid("layer_types", &format!("no other layers than those of every {other} model"))),
        }
    }

    fn layer_type(&self, v: &Value) -> Result<LayerType, ModelError> {
        // Of the positions that are computed of these, an index chooses all.
        let is_indexed = matches!(self.model_type()?, "deepseek_v32" | "glm_moe_dsa");
        match v.as_str() {
            Some("full_attention") => Ok(LayerType::Full),
            Some("indexed_attention") if is_indexed => Ok(LayerType::Full),
            Some("sliding_attention") => Ok(LayerType::Sliding),
            Some(other) => Err(ModelError::Unsupported {
                what: format!("the layer type {other:?}"),
                why: format!(
                    "{}: {} names it; full_attention and sliding_attention are known",
                    self.file(),
                    self.called("layer_types")
                ),
            }),
            None => Err(super::access::mismatch(self.file(), &self.called("layer_types"), "a list of strings", v)),
        }
    }

    /// Every so many layers one attends to all.
    fn window_pattern(&self, default: u32) -> Result<u32, ModelError> {
        match self.u32_or("sliding_window_pattern", default)? {
            0 => Err(self.invalid("sliding_window_pattern", "an integer above 0")),
            pattern => Ok(pattern),
        }
    }

    fn layer_types_by_rule(&self, layers: u32) -> Result<Vec<LayerType>, ModelError> {
        // In GGUF metadata 0 is how converters write "none"; in a `config.json` it would leave nothing to attend to.
        let window = match self.opt_u32("sliding_window")? {
            Some(0) if self.source() == ConfigSource::Json => {
                return Err(self.invalid("sliding_window", "an integer above 0, or null for none"));
            }
            window => window.filter(|&w| w > 0),
        };
        let sliding = |rule: &dyn Fn(u32) -> bool| -> Vec<LayerType> {
            let of = |n| if window.is_some() && rule(n) { LayerType::Sliding } else { LayerType::Full };
            (0..layers).map(of).collect()
        };
        // Families whose layers slide whether there is a window or not: without one, that is an error.
        let always = |rule: &dyn Fn(u32) -> bool| -> Vec<LayerType> {
            (0..layers).map(|n| if rule(n) { LayerType::Sliding } else { LayerType::Full }).collect()
        };
        let enabled = self.bool_or("use_sliding_window", false)?;
        Ok(match self.model_type()? {
            "mistral" | "ministral" | "ministral3" | "mixtral" | "phi3" | "starcoder2" => sliding(&|_| true),
            "gemma2" | "gpt_oss" => always(&|n| n.is_multiple_of(2)),
            "gemma3_text" => {
                let pattern = self.window_pattern(6)?;
                always(&|n| !(n + 1).is_multiple_of(pattern))
            }
            "gemma3n_text" => always(&|n| !(n + 1).is_multiple_of(5)),
            "modernbert" => match self.u32_or("global_attn_every_n_layers", 3)? {
                0 => return Err(self.invalid("global_attn_every_n_layers", "an integer above 0")),
                every => always(&|n| !n.is_multiple_of(every)),
            },
            "gemma4_text" => always(&|n| !(n + 1).is_multiple_of(6) && n + 1 < layers),
            "cohere2" => {
                let pattern = self.window_pattern(4)?;
                always(&|n| !(n + 1).is_multiple_of(pattern))
            }
            "exaone4" => {
                let pattern = self.window_pattern(4)?;
                sliding(&|n| !(n + 1).is_multiple_of(pattern))
            }
            "olmo3" => always(&|n| !(n + 1).is_multiple_of(4)),
            "qwen2_moe" => {
                let first_full = self.u32_or("max_window_layers", 28)?;
                sliding(&|n| enabled && n.is_multiple_of(2) && n < first_full)
            }
            "qwen2" | "qwen3" => {
                let first = self.u32_or("max_window_layers", 28)?;
                sliding(&|n| enabled && n >= first)
            }
            "qwen3_moe" => sliding(&|_| enabled),
            "smollm3" => {
                let rotates = self.u32_per_layer("no_rope_layers", layers)?;
                sliding(&|n| enabled && rotates[n as usize] == 0)
            }
            _ => sliding(&|_| false),
        })
    }
}
