//! GGUF metadata, translated into the keys of a current `config.json`.

use super::gguf_keys::{
    ARCHITECTURES, FLOATS, FREQUENCY_FACTORS, INTEGERS, LONG_DIVISORS, PRESENCE, SHORT_DIVISORS, names, of_family,
};
use super::gguf_mismatch::mismatch;
use super::pinned::check_gguf;
use super::{ConfigSource, LayerType, RawConfig};
use crate::error::ModelError;
use crate::gguf::{Gguf, GgufArray, GgufValue};
use crate::limits::LAYERS;
use serde_json::{Map, Value as Json, json};

impl RawConfig {
    /// Translates the metadata of `gguf`. `has_tensor` and `vocab_rows` (rows of the embedding) answer what the metadata
    /// leaves to the tensors.
    ///
    /// # Errors
    /// [`ModelError::Config`] for absent architecture and values of another type.
    pub fn from_gguf(
        gguf: &Gguf,
        has_tensor: &dyn Fn(&str) -> bool,
        vocab_rows: Option<usize>,
    ) -> Result<RawConfig, ModelError> {
        let Some(arch) = gguf.architecture() else {
            let (file, key) = (gguf.name().to_owned(), "general.architecture".to_owned());
            let (expected, found) = ("the name of an architecture".to_owned(), "nothing".to_owned());
            return Err(ModelError::Config { file, key, expected, found });
        };
        check_gguf(gguf, arch)?;
        let mut t = Translation { gguf, arch, values: Map::new() };
        t.name_model(has_tensor)?;
        t.numbers()?;
        t.pass_over_predictors()?;
        t.sizes(vocab_rows)?;
        t.tokens()?;
        t.set("tie_word_embeddings", !has_tensor("output.weight"));
        for (key, tensor) in PRESENCE {
            t.set(key, has_tensor(tensor));
        }
        t.family_facts(has_tensor)?;
        t.hybrid_facts()?;
        t.layer_types()?;
        let rope = t.rope(has_tensor)?;
        t.set("rope_parameters", rope);
        let names = names(arch, &|suffix| t.get(suffix).is_some());
        let (file, source) = (gguf.name().to_owned(), ConfigSource::Gguf);
        let mut config = RawConfig { file, source, values: t.values, names, whole: None, context_limit: None };
        config.limit_context()?;
        Ok(config)
    }
}

pub(super) struct Translation<'a> {
    pub(super) gguf: &'a Gguf,
    pub(super) arch: &'a str,
    pub(super) values: Map<String, Json>,
}

impl<'a> Translation<'a> {
    pub(super) fn set(&mut self, key: &str, value: impl Into<Json>) {
        self.values.insert(key.to_owned(), value.into());
    }

    pub(super) fn set_absent(&mut self, key: &str, value: impl Into<Json>) {
        self.values.entry(key).or_insert_with(|| value.into());
    }

    pub(super) fn get(&self, suffix: &str) -> Option<&'a GgufValue> {
        self.gguf.get(&format!("{}.{suffix}", self.arch))
    }

    pub(super) fn error(&self, suffix: &str, expected: &str, found: &GgufValue) -> ModelError {
        mismatch(self.gguf, &format!("{}.{suffix}", self.arch), expected, found)
    }

    pub(super) fn float(&self, suffix: &str) -> Result<Option<f64>, ModelError> {
        let read =
            |v: &GgufValue| v.as_f64().filter(|x| x.is_finite()).ok_or_else(|| self.error(suffix, "a finite float", v));
        self.get(suffix).map(read).transpose()
    }

    pub(super) fn u32(&self, suffix: &str) -> Result<Option<u32>, ModelError> {
        let read = |v: &GgufValue| v.as_u32().ok_or_else(|| self.error(suffix, "an unsigned integer", v));
        self.get(suffix).map(read).transpose()
    }

    /// A number already translated; lists count as absent.
    pub(super) fn known(&self, key: &str) -> Option<u64> {
        self.values.get(key).and_then(Json::as_u64)
    }

    fn name_model(&mut self, has_tensor: &dyn Fn(&str) -> bool) -> Result<(), ModelError> {
        let known = ARCHITECTURES.iter().find(|a| a.0 == self.arch);
        // The converters call this family `llama` too.
        let experts = self.arch == "llama" && has_tensor("blk.0.ffn_gate_inp.weight");
        let (model_type, class) = match known {
            Some(_) if experts => ("mixtral", "MixtralForCausalLM"),
            // With windows it is the next generation.
            Some(_) if self.arch == "olmo2" && self.get("attention.sliding_window").is_some() => {
                ("olmo3", "Olmo3ForCausalLM")
            }
            Some(&(_, model_type, class)) => (model_type, class),
            None => (self.arch, self.arch),
        };
        self.set("model_type", model_type);
        self.set("architectures", json!([class]));
        Ok(())
    }

    fn numbers(&mut self) -> Result<(), ModelError> {
        for (suffix, key) in INTEGERS.iter().chain(of_family(self.arch)) {
            if let Some(value) = self.get(suffix) {
                let json = self.integer_or_list(suffix, value)?;
                self.set(key, json);
            }
        }
        for (suffix, key) in FLOATS {
            if let Some(x) = self.float(suffix)? {
                self.set(key, x);
            }
        }
        Ok(())
    }

    /// Layers behind the last that predict further tokens are counted in, and of lists the last are theirs.
    fn pass_over_predictors(&mut self) -> Result<(), ModelError> {
        const SUFFIX: &str = "nextn_predict_layers";
        let (Some(more @ 1..), Some(all)) = (self.u32(SUFFIX)?, self.known("num_hidden_layers")) else { return Ok(()) };
        let Some(layers) = all.checked_sub(more.into()).filter(|&n| n > 0) else {
            let found = self.get(SUFFIX).map_or(GgufValue::U32(more), Clone::clone);
            return Err(self.error(SUFFIX, &format!("fewer than the {all} of block_count"), &found));
        };
        self.set("num_hidden_layers", layers);
        for (_, value) in self.values.iter_mut() {
            if let Json::Array(list) = value
                && list.len() as u64 == all
            {
                list.truncate(layers as usize);
            }
        }
        Ok(())
    }

    /// One number where all layers agree, so that few readers meet a list.
    fn integer_or_list(&self, suffix: &str, value: &GgufValue) -> Result<Json, ModelError> {
        let expected = format!("an unsigned integer, or an array of at most {LAYERS}");
        let wrong = || self.error(suffix, &expected, value);
        let GgufValue::Array(array) = value else { return value.as_u32().map(Json::from).ok_or_else(wrong) };
        if array.is_empty() || array.len() > LAYERS as usize {
            return Err(wrong());
        }
        let list: Option<Vec<u32>> = (0..array.len()).map(|i| array.get(i)?.as_u32()).collect();
        let list = list.ok_or_else(wrong)?;
        Ok(if list.iter().all(|&n| n == list[0]) { list[0].into() } else { list.into() })
    }

    fn sizes(&mut self, vocab_rows: Option<usize>) -> Result<(), ModelError> {
        let tokens = self.gguf.get("tokenizer.ggml.tokens").and_then(GgufValue::as_array).map(GgufArray::len);
        let stated = self.u32("vocab_size")?.map(|n| n as usize);
        if let Some(vocab) = vocab_rows.or(stated).or(tokens) {
            self.set("vocab_size", vocab);
        }
        if let Some(heads) = self.values.get("num_attention_heads").cloned() {
            self.set_absent("num_key_value_heads", heads);
        }
        if let (Some(hidden), Some(heads @ 1..)) = (self.known("hidden_size"), self.known("num_attention_heads")) {
            self.set_absent("head_dim", hidden / heads);
        }
        Ok(())
    }

    fn tokens(&mut self) -> Result<(), ModelError> {
        for key in ["bos", "eos"] {
            let name = format!("tokenizer.ggml.{key}_token_id");
            if let Some(value) = self.gguf.get(&name) {
                let id = value.as_u32().ok_or_else(|| mismatch(self.gguf, &name, "an unsigned integer", value))?;
                self.set(&format!("{key}_token_id"), id);
            }
        }
        Ok(())
    }

    /// What a family's converter leaves out because every model of it has the same.
    fn family_facts(&mut self, has_tensor: &dyn Fn(&str) -> bool) -> Result<(), ModelError> {
        let gemma = self.arch.starts_with("gemma");
        self.set("hidden_act", if gemma { "gelu_pytorch_tanh" } else { "silu" });
        match self.arch {
            "gemma2" => {
                self.set_absent("attn_logit_softcapping", 50.0);
                self.set_absent("final_logit_softcapping", 30.0);
                self.set_absent("sliding_window", 4096);
                self.score_scale(46);
            }
            "gemma3" => self.score_scale(62),
            "starcoder2" => self.set("hidden_act", "gelu_pytorch_tanh"),
            "smollm3" => {
                // Every fourth layer of every model.
                let layers = self.known("num_hidden_layers").unwrap_or(0).min(LAYERS.into());
                self.set("no_rope_layers", (1..=layers).map(|n| u32::from(!n.is_multiple_of(4))).collect::<Vec<_>>());
            }
            "llama4" => self.chunked_attention(),
            "command-r" | "cohere2" => {
                if let Some(factor) = self.values.remove("logits_scaling") {
                    self.set("logit_scale", factor);
                }
            }
            "qwen2moe" => self.set("norm_topk_prob", false),
            "glm4moe" | "deepseek2" => self.corrected_experts(has_tensor),
            "qwen3moe" | "qwen3next" | "qwen35moe" => self.set("norm_topk_prob", true),
            "gpt-oss" => {
                self.set("swiglu_alpha", 1.702);
                self.set("swiglu_limit", 7.0);
            }
            _ => {}
        }
        Ok(())
    }

    /// Experts chosen by sigmoids and a correction, or (of DeepSeek-V2) by softmax.
    fn corrected_experts(&mut self, has_tensor: &dyn Fn(&str) -> bool) {
        let stated = self.get("expert_gating_func").and_then(GgufValue::as_u32).filter(|&function| function != 0);
        let first = self.known("first_k_dense_replace").unwrap_or(0);
        // Files of GLM-4.7-Flash state none; what corrects a choice is sigmoids' alone.
        let sigmoid =
            stated.map_or_else(|| has_tensor(&format!("blk.{first}.exp_probs_b.bias")), |function| function == 2);
        if self.arch == "deepseek2" {
            self.latent_attention();
            if sigmoid {
                self.set("model_type", "deepseek_v3");
                self.set("architectures", json!(["DeepseekV3ForCausalLM"]));
            }
        }
        let grouped = self.known("n_group").unwrap_or(0) > 1;
        self.set("topk_method", if grouped && !sigmoid { "group_limited_greedy" } else { "greedy" });
        for key in ["n_group", "topk_group"] {
            if self.known(key).unwrap_or(0) == 0 {
                self.set(key, 1);
            }
        }
        let norm = self.get("expert_weights_norm").and_then(GgufValue::as_bool);
        self.set("norm_topk_prob", norm.unwrap_or(self.arch == "glm4moe"));
        if self.values.get("routed_scaling_factor").and_then(Json::as_f64) == Some(0.0) {
            self.set("routed_scaling_factor", 1.0);
        }
    }

    /// What every file of Llama 4 leaves out. A window of 0 says that there are no chunks: then all layers rotate.
    fn chunked_attention(&mut self) {
        let layers = self.known("num_hidden_layers").unwrap_or(0).min(LAYERS.into());
        let whole = self.get("attention.sliding_window").and_then(GgufValue::as_u32) == Some(0);
        let rotates = |n: u64| u32::from(whole || !n.is_multiple_of(4));
        self.set("no_rope_layers", (1..=layers).map(rotates).collect::<Vec<_>>());
        self.set("attn_temperature_tuning", !whole);
        if !whole {
            self.set("attention_chunk_size", 8192);
            self.set("floor_scale", 8192);
        }
        self.values.remove("sliding_window");
        // Of the published models that with most experts alone has none.
        self.set("use_qk_norm", self.known("num_experts") != Some(128));
    }

    /// Parts of a head: the rotating one, the other, and a value's. What a file says of keys and values is of the cache.
    fn latent_attention(&mut self) {
        let whole = |own: &str, usual: &str| {
            let stated = self.get(own).or_else(|| self.get(usual)).and_then(GgufValue::as_u32);
            stated.unwrap_or(0)
        };
        let (head, value) = (
            whole("attention.key_length_mla", "attention.key_length"),
            whole("attention.value_length_mla", "attention.value_length"),
        );
        let rotates = self.get("rope.dimension_count").and_then(GgufValue::as_u32).unwrap_or(0);
        self.set("qk_rope_head_dim", rotates);
        self.set("qk_nope_head_dim", head.saturating_sub(rotates));
        self.set("v_head_dim", value);
        if let Some(heads) = self.values.get("num_attention_heads").cloned() {
            self.set("num_key_value_heads", heads);
        }
    }

    /// Scores are divided by the root of a head's width, save in the family's largest model, which has this many layers
    /// and divides by the root of the hidden width per head.
    fn score_scale(&mut self, layers_of_largest: u64) {
        let per_head = self.known("hidden_size").zip(self.known("num_attention_heads").filter(|&h| h > 0));
        let scalar = match per_head {
            Some((hidden, heads)) if self.known("num_hidden_layers") == Some(layers_of_largest) => Some(hidden / heads),
            _ => self.known("head_dim"),
        };
        if let Some(scalar) = scalar {
            self.set("query_pre_attn_scalar", scalar);
        }
    }

    /// `layer_types` where layers differ.
    fn layer_types(&mut self) -> Result<(), ModelError> {
        let period = match self.arch {
            "gemma2" | "gpt-oss" => 2,
            "gemma3" => 6,
            "cohere2" => 4,
            "olmo2" | "exaone4" if self.get("attention.sliding_window").is_some() => 4,
            _ => return self.check_no_window(),
        };
        let layers = self.known("num_hidden_layers").unwrap_or(0).min(LAYERS.into()) as usize;
        if self.known("sliding_window").unwrap_or(0) == 0 {
            // The first files of this family have no windows; its other families always state theirs.
            if self.arch == "gemma3" {
                self.set("layer_types", vec![LayerType::Full.name(); layers]);
            }
            return Ok(());
        }
        const SUFFIX: &str = "attention.sliding_window_pattern";
        let wrong = |v| self.error(SUFFIX, &format!("an integer above 0, or an array of {layers} booleans"), v);
        let by_period = |period: usize| (1..=layers).map(|n| !n.is_multiple_of(period)).collect();
        let sliding: Vec<bool> = match self.get(SUFFIX) {
            None => by_period(period),
            Some(GgufValue::Array(GgufArray::Bool(list))) if list.len() == layers => list.clone(),
            Some(v) => by_period(v.as_u32().filter(|&n| n > 0).ok_or_else(|| wrong(v))? as usize),
        };
        let name = |s: &bool| if *s { LayerType::Sliding.name() } else { LayerType::Full.name() };
        let names: Vec<&str> = sliding.iter().map(name).collect();
        self.set("layer_types", names);
        Ok(())
    }

    /// Families without layers of two kinds: every layer has the window, or the family's own code knows none.
    fn check_no_window(&self) -> Result<(), ModelError> {
        const SUFFIX: &str = "attention.sliding_window";
        let every_layer = matches!(self.values.get("model_type").and_then(Json::as_str), Some("mixtral" | "phi3"));
        let context = self.known("max_position_embeddings").unwrap_or(0);
        match (self.get(SUFFIX), self.known("sliding_window")) {
            (Some(value), Some(1..)) if !every_layer && self.known("sliding_window") < Some(context) => {
                let expected = format!("no window, or one of the whole context of {context}, for this architecture");
                Err(self.error(SUFFIX, &expected, value))
            }
            _ => Ok(()),
        }
    }

    fn rope(&self, has_tensor: &dyn Fn(&str) -> bool) -> Result<Json, ModelError> {
        let default_theta = if self.arch == "gemma3" { 1e6 } else { 1e4 };
        let mut full = self.rope_scaling(has_tensor)?;
        full.insert("rope_theta".into(), self.float("rope.freq_base")?.unwrap_or(default_theta).into());
        // Converters write it of models without any rotation as well.
        let rotates = !self.arch.starts_with("nemotron_h") && self.arch != "deepseek2";
        if let (Some(rotated), Some(width @ 1..)) =
            (self.u32("rope.dimension_count")?, self.known("head_dim").filter(|_| rotates))
        {
            full.insert("partial_rotary_factor".into(), (f64::from(rotated) / width as f64).into());
        }
        if self.arch == "olmo2" && self.get("attention.sliding_window").is_some() {
            let sliding = json!({"rope_type": "default", "rope_theta": full["rope_theta"]});
            return Ok(json!({LayerType::Full.name(): full, LayerType::Sliding.name(): sliding}));
        }
        if self.arch != "gemma3" {
            self.same_base_for_windows(&full)?;
            return Ok(Json::Object(full));
        }
        let theta = self.float("rope.freq_base_swa")?.unwrap_or(1e4);
        let sliding = json!({"rope_type": "default", "rope_theta": theta});
        Ok(json!({LayerType::Full.name(): full, LayerType::Sliding.name(): sliding}))
    }

    /// Only one family has a base of its own for layers with a window.
    fn same_base_for_windows(&self, full: &Map<String, Json>) -> Result<(), ModelError> {
        const SUFFIX: &str = "rope.freq_base_swa";
        let own = self.float(SUFFIX)?;
        let base = full.get("rope_theta").and_then(Json::as_f64);
        match (self.get(SUFFIX), base) {
            (Some(value), Some(base)) if own != Some(base) => {
                Err(self.error(SUFFIX, &format!("{base} as rope.freq_base, for this architecture"), value))
            }
            _ => Ok(()),
        }
    }

    fn rope_scaling(&self, has_tensor: &dyn Fn(&str) -> bool) -> Result<Map<String, Json>, ModelError> {
        let mut out = Map::new();
        if has_tensor(LONG_DIVISORS) {
            out.insert("rope_type".into(), "longrope".into());
            out.insert("short_tensor".into(), SHORT_DIVISORS.into());
            out.insert("long_tensor".into(), LONG_DIVISORS.into());
            if let Some(original) = self.u32("rope.scaling.original_context_length")? {
                out.insert("original_max_position_embeddings".into(), original.into());
            }
            if let Some(value) = self.get("rope.scaling.factor").filter(|v| v.as_f64() != Some(1.0)) {
                return Err(self.error("rope.scaling.factor", "none, or 1, beside the divisors of LongRoPE", value));
            }
            let stated = self.float("rope.scaling.attn_factor")?;
            out.insert("attention_factor".into(), stated.unwrap_or(1.0).into());
            return Ok(out);
        }
        if has_tensor(FREQUENCY_FACTORS) {
            out.insert("rope_type".into(), "factors".into());
            out.insert("tensor".into(), FREQUENCY_FACTORS.into());
            return Ok(out);
        }
        let factor = match self.float("rope.scaling.factor")? {
            Some(factor) => Some(factor),
            None => self.float("rope.scale_linear")?,
        };
        let stated = match self.get("rope.scaling.type") {
            Some(v) => Some(v.as_str().ok_or_else(|| self.error("rope.scaling.type", "a string", v))?),
            None => None,
        };
        // A factor of zero or one is how converters write "none".
        let scales = factor.is_some_and(|f| f != 0.0 && f != 1.0);
        let rope_type = match stated {
            Some("linear") | None if !scales => "default",
            None => "linear",
            Some(name) => name,
        };
        out.insert("rope_type".into(), rope_type.into());
        if let Some(factor) = factor.filter(|_| rope_type != "default") {
            out.insert("factor".into(), factor.into());
        }
        if rope_type == "yarn" {
            self.yarn(&mut out)?;
        }
        Ok(out)
    }

    fn yarn(&self, out: &mut Map<String, Json>) -> Result<(), ModelError> {
        if let Some(original) = self.u32("rope.scaling.original_context_length")? {
            out.insert("original_max_position_embeddings".into(), original.into());
        }
        for key in ["beta_fast", "beta_slow"] {
            if let Some(x) = self.float(&format!("rope.scaling.yarn_{key}"))? {
                out.insert(key.into(), x.into());
            }
        }
        if let Some(log) = self.float("rope.scaling.yarn_log_multiplier")?.filter(|&x| x != 0.0) {
            // DeepSeek's files hold a tenth of the weight of the logarithm, those of Ministral 3 the weight.
            let weight = if self.arch == "deepseek2" { log * 10.0 } else { log };
            out.insert("mscale".into(), weight.into());
            out.insert("mscale_all_dim".into(), weight.into());
        }
        if let Some(rate) = self.float("attention.temperature_scale")? {
            out.insert("llama_4_scaling_beta".into(), rate.into());
        }
        // Here a multiplier of the usual scale of cosines and sines, in `config.json` that scale itself.
        let multiplier = match self.float("rope.scaling.yarn_attn_factor")? {
            Some(x) => Some(x),
            None => self.float("rope.scaling.attn_factor")?,
        };
        let factor = out.get("factor").and_then(Json::as_f64);
        if let (Some(multiplier), Some(factor)) = (multiplier.filter(|&x| x != 1.0), factor.filter(|&f| f > 1.0)) {
            out.insert("attention_factor".into(), (multiplier * (1.0 + 0.1 * factor.ln())).into());
        }
        // The family's own code does not round the band; its GGUF files do not say so.
        out.insert("truncate".into(), (self.arch != "gpt-oss").into());
        Ok(())
    }
}
