//! What GGUF metadata leaves out of hybrid and recurrent families, or says in another way than a `config.json`.

use super::from_gguf::Translation;
use crate::error::ModelError;
use crate::gguf::{GgufArray, GgufValue};
use crate::limits::LAYERS;
use serde_json::Value as Json;

impl Translation<'_> {
    /// Kinds of layers, and sizes that follow from others.
    pub(super) fn hybrid_facts(&mut self) -> Result<(), ModelError> {
        match self.arch {
            "lfm2" => {
                // Stated as it is meant.
                self.set("block_auto_adjust_ff_dim", false);
                self.copy("rms_norm_eps", "norm_eps");
                self.layers_by_heads("conv")
            }
            "lfm2moe" => {
                self.copy("rms_norm_eps", "norm_eps");
                self.layers_by_heads("conv")
            }
            "granite" | "granitemoe" => {
                self.score_factor();
                // Of Granite 4 models without recurrent layers the dense part has the width of its shared one.
                if let Some(inner @ 1..) = self.known("shared_intermediate_size") {
                    self.set("intermediate_size", inner);
                }
                Ok(())
            }
            "granitehybrid" => {
                self.score_factor();
                let inner = self.known("intermediate_size");
                if self.known("shared_intermediate_size").unwrap_or(0) == 0
                    && let Some(inner) = inner
                {
                    self.set("shared_intermediate_size", inner);
                }
                self.head_width("mamba_d_inner", "mamba_n_heads", "mamba_d_head")?;
                let rotates = match self.get("rope.scaling.finetuned") {
                    None => true,
                    Some(v) => v.as_bool().ok_or_else(|| self.error("rope.scaling.finetuned", "a boolean", v))?,
                };
                self.set("position_embedding_type", if rotates { "rope" } else { "nope" });
                self.layers_by_heads("linear_attention")
            }
            "nemotron_h" | "nemotron_h_moe" => {
                self.copy(
                    if self.values.contains_key("rms_norm_eps") { "rms_norm_eps" } else { "layer_norm_eps" },
                    "layer_norm_epsilon",
                );
                self.set("mlp_hidden_act", "relu2");
                for key in ["n_group", "topk_group"] {
                    if self.known(key).unwrap_or(0) == 0 {
                        self.set(key, 1);
                    }
                }
                let norm = self.get("expert_weights_norm").and_then(GgufValue::as_bool);
                self.set("norm_topk_prob", norm.unwrap_or(false));
                self.head_width("mamba_d_inner", "mamba_num_heads", "mamba_head_dim")?;
                self.layers_by_sizes()
            }
            "mamba2" => {
                self.copy("rms_norm_eps", "layer_norm_epsilon");
                self.head_width("mamba_d_inner", "num_heads", "head_dim")
            }
            "qwen3next" | "qwen35" | "qwen35moe" => {
                self.head_width("linear_value_dim", "linear_num_value_heads", "linear_value_head_dim")?;
                self.layers_by_list()
            }
            _ => Ok(()),
        }
    }

    fn copy(&mut self, from: &str, to: &str) {
        if let Some(value) = self.values.get(from).cloned() {
            self.set(to, value);
        }
    }

    /// No factor of scores, or zero, is the usual one.
    fn score_factor(&mut self) {
        let stated = self.values.get("attention_multiplier").and_then(Json::as_f64);
        if let (None | Some(0.0), Some(width @ 1..)) = (stated, self.known("head_dim")) {
            self.set("attention_multiplier", 1.0 / (width as f64).sqrt());
        }
        for key in ["embedding_multiplier", "residual_multiplier", "logits_scaling"] {
            if self.values.get(key).and_then(Json::as_f64) == Some(0.0) {
                self.set(key, 1.0);
            }
        }
    }

    /// The width of a head of recurrent layers, of all of which files state the width.
    fn head_width(&mut self, all: &str, heads: &str, head: &str) -> Result<(), ModelError> {
        let (Some(width), Some(count @ 1..)) = (self.known(all), self.known(heads)) else { return Ok(()) };
        if !width.is_multiple_of(count) {
            const SUFFIX: &str = "ssm.inner_size";
            let found = GgufValue::U64(width);
            return Err(self.error(SUFFIX, &format!("a multiple of {count}, as ssm.time_step_rank says"), &found));
        }
        self.set(head, width / count);
        Ok(())
    }

    /// Layers without heads of keys are recurrent, the others have one number of them.
    fn layers_by_heads(&mut self, recurrent: &str) -> Result<(), ModelError> {
        const SUFFIX: &str = "attention.head_count_kv";
        let layers = self.known("num_hidden_layers").unwrap_or(0).min(LAYERS.into()) as usize;
        let heads: Vec<u64> = match self.values.get("num_key_value_heads") {
            Some(Json::Array(list)) => list.iter().filter_map(Json::as_u64).collect(),
            Some(one) => vec![one.as_u64().unwrap_or(0); layers],
            None => return Ok(()),
        };
        let most = heads.iter().copied().max().unwrap_or(0);
        if heads.len() != layers || heads.iter().any(|&n| n != 0 && n != most) {
            let expected = format!("{layers} numbers, of which those that are not 0 agree");
            return match self.get(SUFFIX) {
                Some(found) => Err(self.error(SUFFIX, &expected, found)),
                None => Ok(()),
            };
        }
        let name = |n: &u64| if *n == 0 { recurrent } else { "full_attention" };
        self.set("layer_types", heads.iter().map(name).collect::<Vec<_>>());
        self.set("num_key_value_heads", most);
        Ok(())
    }

    /// Layers of one part each: those with a feed-forward width have that part, others without heads of keys are recurrent.
    fn layers_by_sizes(&mut self) -> Result<(), ModelError> {
        const SUFFIX: &str = "feed_forward_length";
        let layers = self.known("num_hidden_layers").unwrap_or(0).min(LAYERS.into()) as usize;
        let of_layers = |value: Option<&Json>| match value {
            Some(Json::Array(list)) => list.iter().filter_map(Json::as_u64).collect(),
            one => vec![one.and_then(Json::as_u64).unwrap_or(0); layers],
        };
        let inner = of_layers(self.values.get("intermediate_size"));
        self.layers_by_heads("linear_attention")?;
        let most = inner.iter().copied().max().unwrap_or(0);
        if let Some(found) = self.get(SUFFIX)
            && (inner.len() != layers || inner.iter().any(|&n| n != 0 && n != most))
        {
            return Err(self.error(SUFFIX, &format!("{layers} numbers, of which those that are not 0 agree"), found));
        }
        let feeds = if self.arch == "nemotron_h_moe" { "moe" } else { "mlp" };
        if let Some(Json::Array(kinds)) = self.values.get_mut("layer_types") {
            kinds.iter_mut().zip(&inner).filter(|(_, n)| **n != 0).for_each(|(kind, _)| *kind = feeds.into());
        }
        self.set(if feeds == "moe" { "moe_intermediate_size" } else { "intermediate_size" }, most);
        Ok(())
    }

    /// Recurrent layers as a list, or all but each so manieth.
    fn layers_by_list(&mut self) -> Result<(), ModelError> {
        const SUFFIX: &str = "attention.recurrent_layers";
        let layers = self.known("num_hidden_layers").unwrap_or(0).min(LAYERS.into()) as usize;
        let recurrent: Vec<bool> = match self.get(SUFFIX) {
            // Layers that predict further tokens stand behind the others.
            Some(GgufValue::Array(GgufArray::Bool(list))) if list.len() >= layers => list[..layers].to_vec(),
            Some(v) => return Err(self.error(SUFFIX, &format!("an array of {layers} booleans"), v)),
            None => {
                let every = match (self.known("full_attention_interval"), self.get("full_attention_interval")) {
                    (Some(0), Some(v)) => {
                        return Err(self.error("full_attention_interval", "an integer above 0", v));
                    }
                    (every, _) => every.unwrap_or(4),
                };
                (1..=layers as u64).map(|n| !n.is_multiple_of(every)).collect()
            }
        };
        let name = |r: &bool| if *r { "linear_attention" } else { "full_attention" };
        self.set("layer_types", recurrent.iter().map(name).collect::<Vec<_>>());
        Ok(())
    }
}
