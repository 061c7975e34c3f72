//! Keys that change what a model computes, and of which one value only is computed here: the others are refused, so that
//! no key is ignored in silence that the reference implementations (transformers for `config.json`, llama.cpp for GGUF)
//! heed. Keys that they ignore as well are not here.

use super::RawConfig;
use super::from_json::same;
use crate::error::ModelError;
use crate::gguf::{Gguf, GgufValue};
use serde_json::Value as Json;

/// Model types (none: all), key of a `config.json`, its values that are computed, and what others ask for.
type Pinned = (&'static [&'static str], &'static str, Only, &'static str);

/// The values that are computed.
enum Only {
    False,
    True,
    Number(f64),
    Text(&'static str),
}

/// Encoders by learned positions.
const ENCODERS: &[&str] = &["bert", "roberta", "xlm-roberta"];

const PINNED: &[Pinned] = &[
    (&[], "use_bidirectional_attention", Only::False, "attention to later positions"),
    (&[], "is_causal", Only::True, "attention to later positions"),
    (&[], "add_cross_attention", Only::False, "attention to another model's output"),
    (&[], "is_encoder_decoder", Only::False, "attention to another model's output"),
    (&["cohere"], "use_qk_norm", Only::False, "layer norms of each head by weights of its own"),
    (&["stablelm"], "qk_layernorm", Only::False, "layer norms of each head by weights of its own"),
    (
        &["deepseek_v2"],
        "norm_topk_prob",
        Only::False,
        "weights of experts that sum to one, which the reference code lacks",
    ),
    (&["nemotron_h"], "mamba_hidden_act", Only::Text("silu"), "another function of gates"),
    (ENCODERS, "is_decoder", Only::False, "attention to earlier positions alone"),
    (ENCODERS, "position_embedding_type", Only::Text("absolute"), "positions relative to each other"),
];

/// Types whose reference code caps scores.
const CAPPED_SCORES: &[&str] = &["gemma2", "gemma3_text"];
/// Types whose reference code caps logits.
const CAPPED_LOGITS: &[&str] = &["gemma2", "gemma3_text", "gemma3n_text", "gemma4_text"];

/// GGUF architectures that a line is about.
enum Of {
    All,
    These(&'static [&'static str]),
    AllBut(&'static [&'static str]),
}

impl Of {
    fn has(&self, arch: &str) -> bool {
        match self {
            Of::All => true,
            Of::These(list) => list.contains(&arch),
            Of::AllBut(list) => !list.contains(&arch),
        }
    }
}

/// GGUF architectures whose constant factors are read.
const GRANITE: Of = Of::AllBut(&["granite", "granitemoe", "granitehybrid"]);
/// Those whose factor of logits is read.
const LOGITS: Of = Of::AllBut(&["granite", "granitemoe", "granitehybrid", "command-r", "cohere2"]);
/// Those whose shared expert is read.
const SHARED: Of = Of::AllBut(&[
    "granitehybrid",
    "qwen3next",
    "qwen35moe",
    "nemotron_h_moe",
    "granite",
    "qwen2moe",
    "glm4moe",
    "deepseek2",
    "ernie4_5-moe",
]);

/// Those whose choice of experts by corrected sigmoids within groups is read.
const CORRECTED: Of = Of::AllBut(&["nemotron_h_moe", "glm4moe", "deepseek2"]);
/// Those whose first layers may be without experts.
const DENSE_FIRST: Of = Of::AllBut(&["glm4moe", "deepseek2", "ernie4_5-moe", "lfm2moe"]);

/// GGUF architectures, suffix, values that are computed, and what others ask for. A boolean is 0 or 1.
const GGUF: &[(Of, &str, &[f64], &str)] = &[
    (Of::All, "attention.causal", &[1.0], "attention to later positions"),
    // No pooling, the mean, the first, the last, a rank: what a model that generates text is made for besides.
    (Of::All, "pooling_type", &[0.0, 1.0, 2.0, 3.0, 4.0], "another pooling of tokens"),
    (Of::All, "attention.max_alibi_bias", &[0.0], "positions by biases of scores (ALiBi)"),
    (Of::All, "attention.clamp_kqv", &[0.0], "clamped queries, keys and values"),
    (GRANITE, "attention.scale", &[0.0], "a factor of scores of its own"),
    (Of::All, "attention.shared_kv_layers", &[0.0], "layers that share keys and values"),
    (LOGITS, "logit_scale", &[0.0, 1.0], "scaled logits"),
    (GRANITE, "embedding_scale", &[0.0, 1.0], "scaled embeddings"),
    (GRANITE, "residual_scale", &[0.0, 1.0], "scaled residuals"),
    (Of::All, "use_parallel_residual", &[0.0], "parts of a layer in parallel"),
    (Of::AllBut(&["mistral3"]), "attention.temperature_scale", &[0.0], "queries that grow with their position"),
    (
        Of::AllBut(&["deepseek2", "mistral3"]),
        "rope.scaling.yarn_log_multiplier",
        &[0.0],
        "a YaRN scaling of another magnitude",
    ),
    (Of::All, "rope.scaling.yarn_ext_factor", &[1.0], "a YaRN scaling of another blend"),
    (DENSE_FIRST, "leading_dense_block_count", &[0.0], "dense layers before those with experts"),
    (
        Of::AllBut(&["ernie4_5-moe", "llama4"]),
        "interleave_moe_layer_step",
        &[0.0, 1.0],
        "dense layers between those with experts",
    ),
    (SHARED, "expert_shared_count", &[0.0], "shared experts"),
    (SHARED, "expert_shared_feed_forward_length", &[0.0], "shared experts"),
    (CORRECTED, "expert_group_count", &[0.0, 1.0], "experts in groups"),
    (CORRECTED, "expert_group_used_count", &[0.0, 1.0], "experts in groups"),
    (CORRECTED, "expert_weights_scale", &[0.0, 1.0], "scaled weights of experts"),
    (CORRECTED, "expert_weights_norm", &[1.0], "weights of experts that do not sum to one"),
    (Of::These(&["llama", "qwen3moe"]), "expert_gating_func", &[0.0, 1.0], "another choice of experts"),
    (Of::These(&["lfm2moe"]), "expert_gating_func", &[2.0], "another choice of experts"),
    (Of::These(&["gpt-oss"]), "expert_gating_func", &[0.0, 3.0], "another choice of experts"),
    (Of::These(&["llama4"]), "expert_gating_func", &[0.0, 2.0], "another choice of experts"),
];

impl RawConfig {
    /// Refuses values of a `config.json` that ask for what is not computed.
    pub(super) fn check_pinned(&self) -> Result<(), ModelError> {
        let model_type = self.opt_str("model_type")?.unwrap_or_default();
        let of_type = |types: &[&str]| types.is_empty() || types.contains(&model_type);
        for (types, key, only, what) in PINNED {
            if of_type(types) {
                self.pin(key, only, what)?;
            }
        }
        if !CAPPED_SCORES.contains(&model_type) {
            self.pin("attn_logit_softcapping", &Only::Number(0.0), "capped scores")?;
        }
        if !CAPPED_LOGITS.contains(&model_type) {
            self.pin("final_logit_softcapping", &Only::Number(0.0), "capped logits")?;
        }
        Ok(())
    }

    fn pin(&self, key: &str, only: &Only, what: &str) -> Result<(), ModelError> {
        let Some(found) = self.get(key) else { return Ok(()) };
        let only = match only {
            Only::False => Json::Bool(false),
            Only::True => Json::Bool(true),
            Only::Number(n) => Json::from(*n),
            Only::Text(text) => Json::from(*text),
        };
        if same(found, &only) {
            return Ok(());
        }
        let (file, key) = (self.file(), self.called(key));
        Err(ModelError::Unsupported {
            what: what.to_owned(),
            why: format!("{file}: {key} is {found} and asks for it; only {only} is computed for this architecture"),
        })
    }
}

/// Refuses values of GGUF metadata that ask for what is not computed.
pub(super) fn check_gguf(gguf: &Gguf, arch: &str) -> Result<(), ModelError> {
    let refuse = |key: &str, found: &str, what: &str| {
        Err(ModelError::Unsupported {
            what: what.to_owned(),
            why: format!("{}: {key} is {found} and asks for it", gguf.name()),
        })
    };
    for (of, suffix, computed, what) in GGUF {
        let key = format!("{arch}.{suffix}");
        let Some(value) = gguf.get(&key).filter(|_| of.has(arch)) else { continue };
        match number(value) {
            Some(n) if computed.contains(&n) => {}
            Some(n) => return refuse(&key, &n.to_string(), what),
            None => return Err(super::gguf_mismatch::mismatch(gguf, &key, "a number or a boolean", value)),
        }
    }
    let key = format!("{arch}.rope.dimension_sections");
    // Of text all of them are equal, so that a family whose every file states them is not refused.
    if gguf.get(&key).is_some() && !matches!(arch, "qwen35" | "qwen35moe") {
        return refuse(&key, "there", "positions in several dimensions");
    }
    Ok(())
}

fn number(value: &GgufValue) -> Option<f64> {
    value.as_f64().or_else(|| value.as_int().map(|n| n as f64)).or_else(|| value.as_bool().map(f64::from))
}
