//! `config.json` of any dialect, brought into one.

use super::names::ConfigKeyNames;
use super::{ConfigSource, RawConfig, access, defaults, parse_object};
use crate::error::ModelError;
use crate::limits::LAYERS;
use serde_json::{Map, Value};

/// Current name, older or other names.
const ALIASES: &[(&str, &[&str])] = &[
    ("hidden_size", &["n_embd"]),
    ("num_hidden_layers", &["n_layer"]),
    ("num_attention_heads", &["n_head"]),
    ("max_position_embeddings", &["n_positions"]),
    ("intermediate_size", &["n_inner", "block_ff_dim"]),
    ("layer_norm_eps", &["layer_norm_epsilon", "norm_epsilon"]),
    ("hidden_act", &["activation_function"]),
    ("num_experts", &["num_local_experts", "n_routed_experts", "moe_num_experts"]),
    ("num_experts_per_tok", &["moe_k", "moe_topk"]),
    ("n_shared_experts", &["moe_num_shared_experts"]),
    ("tie_word_embeddings", &["tie_embedding"]),
    ("dtype", &["torch_dtype"]),
    ("sliding_window_pattern", &["_sliding_window_pattern"]),
    ("partial_rotary_factor", &["rotary_pct"]),
    ("rope_theta", &["rotary_emb_base", "global_rope_theta"]),
    ("rope_local_base_freq", &["local_rope_theta"]),
    ("quantization_config", &["compression_config"]),
    ("layer_types", &["layers_block_type"]),
];

impl RawConfig {
    /// Parses and normalises the bytes of a `config.json`; `file` is how errors call it.
    ///
    /// # Errors
    /// [`ModelError::Json`] or [`ModelError::Config`].
    pub fn from_json(bytes: &[u8], file: &str) -> Result<RawConfig, ModelError> {
        let outer = parse_object(bytes, file)?;
        let part = outer.get("text_config").is_some_and(|v| !v.is_null());
        let family = outer.get("model_type").and_then(Value::as_str).unwrap_or_default().to_owned();
        let mut names = ConfigKeyNames::default();
        let mut values = flatten_text_config(outer, file, &mut names)?;
        let model_type = values.get("model_type").and_then(Value::as_str).unwrap_or_default().to_owned();
        // Stated values first, so that no default stands in the way of one under another name; then once more, because
        // defaults go in under the names that the type's own files use.
        check_aliases(&values, file)?;
        apply_aliases(&mut values, &mut names);
        if part {
            defaults::fill_part(&family, &model_type, &mut values);
        }
        defaults::fill(&model_type, &mut values);
        apply_aliases(&mut values, &mut names);
        // Files of the first generation say `gelu` and mean its tanh form, whatever else they say of it.
        if model_type == "gemma" && values.get("hidden_act").is_some_and(|v| v == "gelu") {
            values.insert("hidden_act".into(), "gelu_pytorch_tanh".into());
        }
        // Early files of this family name an activation they do not use; this key is the one that counts.
        if matches!(model_type.as_str(), "gemma2" | "gemma3_text" | "gemma3n_text" | "gemma4_text" | "modernbert")
            && let Some(act) = values.get("hidden_activation").filter(|v| !v.is_null())
        {
            values.insert("hidden_act".into(), act.clone());
            names.add("hidden_act", names.of("hidden_activation"));
        }
        let mut config = RawConfig {
            file: file.to_owned(),
            source: ConfigSource::Json,
            values,
            names,
            whole: part.then_some(family),
            context_limit: None,
        };
        config.derive(&model_type)?;
        config.derive_rope(&model_type);
        config.count_learned_positions(&model_type)?;
        config.limit_context()?;
        Ok(config)
    }

    /// Values that follow from others where they are not stated.
    fn derive(&mut self, model_type: &str) -> Result<(), ModelError> {
        let hidden = self.opt_u32("hidden_size")?;
        let heads = self.opt_u32("num_attention_heads")?;
        if heads == Some(0) {
            return Err(self.invalid("num_attention_heads", "an integer above 0"));
        }
        if let Some(heads) = heads {
            self.set_absent("num_key_value_heads", heads);
        }
        if let (Some(hidden), Some(heads @ 1..)) = (hidden, heads) {
            self.set_absent("head_dim", hidden / heads);
        }
        if model_type == "gpt2"
            && let Some(hidden) = hidden
        {
            self.set_absent("intermediate_size", hidden.saturating_mul(4));
        }
        if model_type == "lfm2" && !self.has("layer_types") {
            let layers = self.u32("num_hidden_layers")?.min(LAYERS);
            let attending = self.opt_u32_list("full_attn_idxs")?;
            let name = |layer| match &attending {
                Some(list) if !list.contains(&layer) => "conv",
                _ => "full_attention",
            };
            self.set_absent("layer_types", (0..layers).map(name).collect::<Vec<_>>());
        }
        if matches!(model_type, "qwen3_next" | "qwen3_5_text" | "qwen3_5_moe_text") && !self.has("layer_types") {
            let every = match self.u32("full_attention_interval")? {
                0 => return Err(self.invalid("full_attention_interval", "an integer above 0")),
                every => every,
            };
            let name = |layer: u32| if layer.is_multiple_of(every) { "full_attention" } else { "linear_attention" };
            let layers = self.u32("num_hidden_layers")?.min(LAYERS);
            self.set_absent("layer_types", (1..=layers).map(name).collect::<Vec<_>>());
        }
        if model_type == "minimax_m2"
            && let (Some(rotary), Some(width @ 1..)) = (self.opt_u32("rotary_dim")?, self.opt_u32("head_dim")?)
        {
            self.set_absent("partial_rotary_factor", f64::from(rotary) / f64::from(width));
            self.names.add("partial_rotary_factor", "rotary_dim");
        }
        // Rows of a picture see each other, and no text sees what follows it.
        if model_type == "gemma4_text" && self.get("use_bidirectional_attention").is_some_and(|of| of == "vision") {
            self.values.insert("use_bidirectional_attention".into(), false.into());
        }
        if model_type == "modernbert" {
            // Half of it on each side, and the position itself.
            let all = self.u32("local_attention")?;
            self.values.insert("sliding_window".into(), (all / 2).saturating_add(1).into());
            self.names.add("sliding_window", "local_attention");
        }
        if model_type == "nemotron_h" {
            self.derive_blocks()?;
        }
        if matches!(model_type, "glm4_moe_lite" | "deepseek_v32" | "glm_moe_dsa") {
            self.derive_dense_layers()?;
        }
        if model_type == "granitemoehybrid" && self.get("mamba_d_head").is_none_or(|head| head == "auto") {
            let (inner, heads) =
                (self.u32_or("mamba_expand", 2)?.saturating_mul(self.u32("hidden_size")?), "mamba_n_heads");
            let heads = match self.u32(heads)? {
                0 => return Err(self.invalid(heads, "an integer above 0")),
                heads => heads,
            };
            self.values.insert("mamba_d_head".into(), (inner / heads).into());
        }
        if model_type == "llama4_text" {
            self.derive_widths();
        }
        if matches!(model_type, "smollm3" | "llama4_text") {
            let layers = self.u32("num_hidden_layers")?.min(LAYERS);
            let every = match self.u32("no_rope_layer_interval")? {
                0 if !self.has("no_rope_layers") => {
                    return Err(self.invalid("no_rope_layer_interval", "an integer above 0"));
                }
                every => every.max(1),
            };
            // 1 = the layer rotates, despite the key's name.
            let list: Vec<u32> = (1..=layers).map(|n| u32::from(!n.is_multiple_of(every))).collect();
            self.set_absent("no_rope_layers", list);
        }
        Ok(())
    }

    /// Of Llama 4, which calls the width of an expert what others call that of a layer without any.
    fn derive_widths(&mut self) {
        const DENSE: &str = "intermediate_size_mlp";
        for (key, own) in [("moe_intermediate_size", "intermediate_size"), ("intermediate_size", DENSE)] {
            let width = self.values.get(own).cloned().unwrap_or(Value::Null);
            self.values.insert(key.into(), width);
            self.names.add(key, self.names.of(own));
        }
        // No layer's own word is as good as none.
        if self.get("no_rope_layers").and_then(Value::as_array).is_some_and(Vec::is_empty) {
            self.values.remove("no_rope_layers");
        }
    }

    /// How many layers are without experts, from a list of every layer's kind.
    fn derive_dense_layers(&mut self) -> Result<(), ModelError> {
        const KINDS: &str = "mlp_layer_types";
        let Some(kinds) = self.opt_str_list(KINDS)? else { return Ok(()) };
        let dense = kinds.iter().take_while(|kind| **kind == "dense").count();
        if kinds.iter().skip(dense).any(|kind| *kind != "sparse") {
            return Err(self.invalid(KINDS, "the words dense, and behind the last of them sparse"));
        }
        self.values.insert("first_k_dense_replace".into(), dense.into());
        self.names.add("first_k_dense_replace", KINDS);
        Ok(())
    }

    /// Kinds of layers as a list or as letters, which say how many layers there are, too.
    fn derive_blocks(&mut self) -> Result<(), ModelError> {
        const LETTERS: &str = "hybrid_override_pattern";
        if !self.has("layer_types")
            && let Some(letters) = self.opt_str(LETTERS)?
        {
            let name = |letter| match letter {
                'M' => Some("linear_attention"),
                '*' => Some("full_attention"),
                '-' => Some("mlp"),
                'E' => Some("moe"),
                _ => None,
            };
            let names: Option<Vec<&str>> = letters.chars().map(name).collect();
            let names = names.ok_or_else(|| self.invalid(LETTERS, "of each layer one of the letters M, *, -, E"))?;
            self.values.insert("layer_types".into(), names.into());
            self.names.add("layer_types", LETTERS);
        }
        let count = self.opt_str_list("layer_types")?.map(|list| list.len());
        if let Some(count) = count {
            self.values.insert("num_hidden_layers".into(), count.into());
        }
        Ok(())
    }

    /// What the reference code takes for the rotation where a file of this family says nothing.
    fn derive_rope(&mut self, model_type: &str) {
        if model_type == "gpt_oss" && !self.has("rope_parameters") && !self.has("rope_scaling") {
            let yarn = serde_json::json!({
                "rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": false,
                "original_max_position_embeddings": 4096
            });
            self.values.insert("rope_parameters".into(), yarn);
        }
    }

    fn set_absent(&mut self, key: &str, value: impl Into<Value>) {
        if !self.has(key) {
            self.values.insert(key.to_owned(), value.into());
        }
    }
}

fn apply_aliases(values: &mut Map<String, Value>, names: &mut ConfigKeyNames) {
    for (name, others) in ALIASES {
        if values.get(*name).is_none_or(Value::is_null)
            && let Some((other, value)) = others.iter().find_map(|o| stated(values, o).map(|v| (o, v.clone())))
        {
            values.insert((*name).to_owned(), value);
            names.add(*name, names.of(other));
        }
    }
}

/// Refuses a file that says one thing twice, and differently. The type of the weights is what the weights have, whatever
/// is said of it.
fn check_aliases(values: &Map<String, Value>, file: &str) -> Result<(), ModelError> {
    for (name, others) in ALIASES.iter().filter(|(name, _)| *name != "dtype") {
        let mut said =
            std::iter::once(name).chain(others.iter()).filter_map(|key| stated(values, key).map(|v| (key, v)));
        let Some((first, value)) = said.next() else { continue };
        if let Some((other, found)) = said.find(|(_, v)| !same(v, value)) {
            let expected = format!("{value}, as {first:?} says, which means the same");
            return Err(access::mismatch(file, other, &expected, found));
        }
    }
    Ok(())
}

fn stated<'a>(values: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    values.get(key).filter(|v| !v.is_null())
}

/// Whether two values mean the same: 10000 is 10000.0.
pub(super) fn same(a: &Value, b: &Value) -> bool {
    a == b || a.as_f64().is_some_and(|a| b.as_f64() == Some(a))
}

/// Multi-modal models keep the language model under `text_config`. What it does not state is looked up around it, where
/// such files keep `architectures`, `quantization_config` and token ids.
fn flatten_text_config(
    mut outer: Map<String, Value>,
    file: &str,
    names: &mut ConfigKeyNames,
) -> Result<Map<String, Value>, ModelError> {
    let mut text = match outer.remove("text_config") {
        None | Some(Value::Null) => return Ok(outer),
        Some(Value::Object(text)) => text,
        Some(other) => return Err(access::mismatch(file, "text_config", "an object", &other)),
    };
    for key in text.keys() {
        names.add(key.as_str(), format!("text_config.{key}"));
    }
    // A family's whole is called `gemma3`, its language model `gemma3_text`.
    if let Some(Value::String(family)) = outer.remove("model_type") {
        text.entry("model_type").or_insert(Value::String(format!("{family}_text")));
    }
    for (key, value) in outer {
        match text.get(&key) {
            Some(Value::Null) | None => {
                text.insert(key, value);
            }
            Some(_) => {}
        }
    }
    Ok(text)
}
