//! The keys of GGUF metadata: which are read into which keys of a `config.json`, and what errors call those again.

use super::LayerType;
use super::names::ConfigKeyNames;

/// GGUF architecture, `model_type`, class name.
pub(super) const ARCHITECTURES: &[(&str, &str, &str)] = &[
    ("llama", "llama", "LlamaForCausalLM"),
    ("qwen2", "qwen2", "Qwen2ForCausalLM"),
    ("qwen3", "qwen3", "Qwen3ForCausalLM"),
    ("qwen3moe", "qwen3_moe", "Qwen3MoeForCausalLM"),
    ("gemma2", "gemma2", "Gemma2ForCausalLM"),
    ("gemma3", "gemma3_text", "Gemma3ForCausalLM"),
    ("phi3", "phi3", "Phi3ForCausalLM"),
    ("chatglm", "glm", "GlmForCausalLM"),
    ("glm4", "glm4", "Glm4ForCausalLM"),
    ("gpt-oss", "gpt_oss", "GptOssForCausalLM"),
];

/// Suffix of `<architecture>.`, key here: integers, or lists of one a layer.
pub(super) const INTEGERS: &[(&str, &str)] = &[
    ("embedding_length", "hidden_size"),
    ("feed_forward_length", "intermediate_size"),
    ("block_count", "num_hidden_layers"),
    ("context_length", "max_position_embeddings"),
    ("attention.head_count", "num_attention_heads"),
    ("attention.head_count_kv", "num_key_value_heads"),
    ("attention.key_length", "head_dim"),
    ("attention.value_length", "v_head_dim"),
    ("attention.sliding_window", "sliding_window"),
    ("expert_count", "num_experts"),
    ("expert_used_count", "num_experts_per_tok"),
    ("expert_feed_forward_length", "moe_intermediate_size"),
    ("expert_shared_feed_forward_length", "shared_expert_intermediate_size"),
    ("leading_dense_block_count", "first_k_dense_replace"),
];

/// The same for floats.
pub(super) const FLOATS: &[(&str, &str)] = &[
    ("attention.layer_norm_rms_epsilon", "rms_norm_eps"),
    ("attention.layer_norm_epsilon", "layer_norm_eps"),
    ("attn_logit_softcapping", "attn_logit_softcapping"),
    ("final_logit_softcapping", "final_logit_softcapping"),
    ("attention.scale", "attention_scale"),
];

/// Key here, tensor whose presence it states.
pub(super) const PRESENCE: &[(&str, &str)] =
    &[("attention_bias", "blk.0.attn_q.bias"), ("mlp_bias", "blk.0.ffn_up.bias")];

/// Suffixes of `<architecture>.` that are read one by one.
const OTHERS: &[&str] = &[
    "vocab_size",
    "attention.sliding_window_pattern",
    "rope.dimension_count",
    "rope.freq_base",
    "rope.freq_base_swa",
    "rope.scale_linear",
    "rope.scaling.type",
    "rope.scaling.factor",
    "rope.scaling.attn_factor",
    "rope.scaling.original_context_length",
    "rope.scaling.yarn_attn_factor",
    "rope.scaling.yarn_beta_fast",
    "rope.scaling.yarn_beta_slow",
];

/// Whether the translation reads the key `<architecture>.<suffix>`.
pub(crate) fn is_read(suffix: &str) -> bool {
    let in_table = |table: &[(&str, &str)]| table.iter().any(|(s, _)| *s == suffix);
    in_table(INTEGERS) || in_table(FLOATS) || OTHERS.contains(&suffix)
}

/// Rest of a key of `rope_parameters`, and the suffix that it is made from.
const ROPE: &[(&str, &str)] = &[
    ("rope_theta", "rope.freq_base"),
    ("partial_rotary_factor", "rope.dimension_count"),
    ("rope_type", "rope.scaling.type"),
    ("factor", "rope.scaling.factor"),
    ("original_max_position_embeddings", "rope.scaling.original_context_length"),
    ("beta_fast", "rope.scaling.yarn_beta_fast"),
    ("beta_slow", "rope.scaling.yarn_beta_slow"),
    ("attention_factor", "rope.scaling.yarn_attn_factor"),
];

/// Key here that has no suffix of its own, and the one it follows from.
const DERIVED: &[(&str, &str)] = &[
    ("vocab_size", "vocab_size"),
    ("layer_types", "attention.sliding_window_pattern"),
    ("query_pre_attn_scalar", "attention.key_length"),
];

/// What a file of `arch` calls the keys that its metadata are translated into. `has` says whether it has a suffix: what
/// it does not state follows from other keys.
pub(super) fn names(arch: &str, has: &dyn Fn(&str) -> bool) -> ConfigKeyNames {
    let mut names = ConfigKeyNames::default();
    for (suffix, key) in INTEGERS.iter().chain(FLOATS) {
        names.add(*key, format!("{arch}.{suffix}"));
    }
    for (key, suffix) in DERIVED {
        names.add(*key, format!("{arch}.{suffix}"));
    }
    if !has("attention.key_length") {
        let (all, heads) = (format!("{arch}.embedding_length"), format!("{arch}.attention.head_count"));
        names.add("head_dim", format!("{all} divided by {heads}"));
    }
    if !has("attention.head_count_kv") {
        names.add("num_key_value_heads", format!("{arch}.attention.head_count"));
    }
    for (key, suffix) in ROPE {
        let (full, sliding) = (LayerType::Full.name(), LayerType::Sliding.name());
        for section in ["rope_parameters".to_owned(), format!("rope_parameters.{full}")] {
            names.add(format!("{section}.{key}"), format!("{arch}.{suffix}"));
        }
        names.add(format!("rope_parameters.{sliding}.{key}"), format!("{arch}.{suffix}_swa"));
    }
    names.add("partial_rotary_factor", format!("{arch}.rope.dimension_count"));
    names.add("model_type", "general.architecture");
    for key in ["bos", "eos"] {
        names.add(format!("{key}_token_id"), format!("tokenizer.ggml.{key}_token_id"));
    }
    names
}
