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
    ("lfm2", "lfm2", "Lfm2ForCausalLM"),
    ("lfm2moe", "lfm2_moe", "Lfm2MoeForCausalLM"),
    ("granite", "granite", "GraniteForCausalLM"),
    ("granitemoe", "granitemoe", "GraniteMoeForCausalLM"),
    ("granitehybrid", "granitemoehybrid", "GraniteMoeHybridForCausalLM"),
    ("mamba2", "mamba2", "Mamba2ForCausalLM"),
    ("olmo2", "olmo2", "Olmo2ForCausalLM"),
    ("smollm3", "smollm3", "SmolLM3ForCausalLM"),
    ("llama4", "llama4_text", "Llama4ForCausalLM"),
    ("gemma", "gemma", "GemmaForCausalLM"),
    ("command-r", "cohere", "CohereForCausalLM"),
    ("cohere2", "cohere2", "Cohere2ForCausalLM"),
    ("exaone4", "exaone4", "Exaone4ForCausalLM"),
    ("ernie4_5", "ernie4_5", "Ernie4_5ForCausalLM"),
    ("ernie4_5-moe", "ernie4_5_moe", "Ernie4_5_MoeForCausalLM"),
    ("hunyuan-dense", "hunyuan_v1_dense", "HunYuanDenseV1ForCausalLM"),
    ("seed_oss", "seed_oss", "SeedOssForCausalLM"),
    ("starcoder2", "starcoder2", "Starcoder2ForCausalLM"),
    ("stablelm", "stablelm", "StableLmForCausalLM"),
    ("qwen2moe", "qwen2_moe", "Qwen2MoeForCausalLM"),
    ("glm4moe", "glm4_moe", "Glm4MoeForCausalLM"),
    ("deepseek2", "deepseek_v2", "DeepseekV2ForCausalLM"),
    ("minimax-m2", "minimax_m2", "MiniMaxM2ForCausalLM"),
    ("mistral3", "ministral3", "Ministral3ForCausalLM"),
    ("nemotron_h", "nemotron_h", "NemotronHForCausalLM"),
    ("nemotron_h_moe", "nemotron_h", "NemotronHForCausalLM"),
    ("qwen3next", "qwen3_next", "Qwen3NextForCausalLM"),
    ("qwen35", "qwen3_5_text", "Qwen3_5ForCausalLM"),
    ("qwen35moe", "qwen3_5_moe_text", "Qwen3_5MoeForCausalLM"),
];

/// `model_type` of families that GGUF files count to an architecture of another's name.
const WRITTEN_AS: &[(&str, &str)] = &[("mistral", "llama"), ("mixtral", "llama"), ("olmo3", "olmo2")];

/// The GGUF architecture of a `model_type`.
pub(crate) fn architecture_of(model_type: &str) -> Option<&'static str> {
    let of_another = WRITTEN_AS.iter().find(|row| row.0 == model_type).map(|row| row.1);
    of_another.or_else(|| ARCHITECTURES.iter().find(|row| row.1 == model_type).map(|row| row.0))
}

/// Architectures whose files state the window of some of their layers.
const WINDOWED: &[&str] = &["gemma2", "gemma3", "gpt-oss", "phi3", "olmo2", "cohere2", "exaone4"];

/// Whether files of `arch` state a window. Of others nobody looks for one, so that a file that has one says nothing.
pub(crate) fn has_windows(arch: &str) -> bool {
    WINDOWED.contains(&arch)
}

/// Where GGUF files keep the divisors of LongRoPE, for sequences within the trained context and for longer ones.
pub(crate) const SHORT_DIVISORS: &str = "rope_factors_short.weight";
pub(crate) const LONG_DIVISORS: &str = "rope_factors_long.weight";

/// Where GGUF files keep the Llama 3 scaling.
pub(crate) const FREQUENCY_FACTORS: &str = "rope_freqs.weight";

/// Suffix of `<architecture>.`, key here: integers, or lists of one a layer.
pub(crate) const INTEGERS: &[(&str, &str)] = &[
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

/// The same for integers that a family alone has, or calls otherwise.
pub(super) const OF_FAMILY: &[(&str, &[(&str, &str)])] = &[
    ("lfm2", &[("shortconv.l_cache", "conv_L_cache")]),
    ("lfm2moe", &[("shortconv.l_cache", "conv_L_cache"), ("leading_dense_block_count", "num_dense_layers")]),
    (
        "granitehybrid",
        &[
            ("ssm.conv_kernel", "mamba_d_conv"),
            ("ssm.state_size", "mamba_d_state"),
            ("ssm.group_count", "mamba_n_groups"),
            ("ssm.time_step_rank", "mamba_n_heads"),
            ("ssm.inner_size", "mamba_d_inner"),
            ("expert_shared_feed_forward_length", "shared_intermediate_size"),
        ],
    ),
    (
        "mamba2",
        &[
            ("ssm.conv_kernel", "conv_kernel"),
            ("ssm.state_size", "state_size"),
            ("ssm.group_count", "n_groups"),
            ("ssm.time_step_rank", "num_heads"),
            ("ssm.inner_size", "mamba_d_inner"),
        ],
    ),
    ("nemotron_h", NEMOTRON_H),
    ("nemotron_h_moe", NEMOTRON_H),
    ("granite", &[("expert_shared_feed_forward_length", "shared_intermediate_size")]),
    ("glm4moe", GROUPED),
    ("llama4", &[("interleave_moe_layer_step", "interleave_moe_layer_step")]),
    ("deepseek2", GROUPED),
    (
        "ernie4_5-moe",
        &[
            ("expert_shared_count", "n_shared_experts"),
            ("leading_dense_block_count", "moe_layer_start_index"),
            ("interleave_moe_layer_step", "moe_layer_interval"),
        ],
    ),
    ("qwen3next", DELTA_NET),
    ("qwen35", DELTA_NET),
    ("qwen35moe", DELTA_NET),
];

/// Sizes of gated delta nets, which GGUF files state under names of another kind of layer.
const DELTA_NET: &[(&str, &str)] = &[
    ("ssm.conv_kernel", "linear_conv_kernel_dim"),
    ("ssm.state_size", "linear_key_head_dim"),
    ("ssm.group_count", "linear_num_key_heads"),
    ("ssm.time_step_rank", "linear_num_value_heads"),
    ("ssm.inner_size", "linear_value_dim"),
    ("full_attention_interval", "full_attention_interval"),
];

/// Experts in groups and latent attention.
const GROUPED: &[(&str, &str)] = &[
    ("expert_group_count", "n_group"),
    ("expert_group_used_count", "topk_group"),
    ("expert_shared_count", "n_shared_experts"),
    ("attention.q_lora_rank", "q_lora_rank"),
    ("attention.kv_lora_rank", "kv_lora_rank"),
];

const NEMOTRON_H: &[(&str, &str)] = &[
    ("ssm.conv_kernel", "conv_kernel"),
    ("ssm.state_size", "ssm_state_size"),
    ("ssm.group_count", "n_groups"),
    ("ssm.time_step_rank", "mamba_num_heads"),
    ("ssm.inner_size", "mamba_d_inner"),
    ("expert_shared_feed_forward_length", "moe_shared_expert_intermediate_size"),
    ("expert_group_count", "n_group"),
    ("expert_group_used_count", "topk_group"),
    ("moe_latent_size", "moe_latent_size"),
];

/// What [`OF_FAMILY`] says of `arch`.
pub(crate) fn of_family(arch: &str) -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    OF_FAMILY.iter().filter(move |(family, _)| *family == arch).flat_map(|(_, keys)| keys.iter())
}

/// The same for floats.
pub(crate) const FLOATS: &[(&str, &str)] = &[
    ("attention.layer_norm_rms_epsilon", "rms_norm_eps"),
    ("attention.layer_norm_epsilon", "layer_norm_eps"),
    ("attn_logit_softcapping", "attn_logit_softcapping"),
    ("final_logit_softcapping", "final_logit_softcapping"),
    ("attention.scale", "attention_multiplier"),
    ("embedding_scale", "embedding_multiplier"),
    ("residual_scale", "residual_multiplier"),
    ("logit_scale", "logits_scaling"),
    ("expert_weights_scale", "routed_scaling_factor"),
];

/// Key here, tensor whose presence it states.
pub(super) const PRESENCE: &[(&str, &str)] = &[
    ("attention_bias", "blk.0.attn_q.bias"),
    ("mlp_bias", "blk.0.ffn_up.bias"),
    ("use_qk_norm", "blk.0.attn_q_norm.weight"),
];

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
    "rope.scaling.finetuned",
    "attention.recurrent_layers",
    "nextn_predict_layers",
    "expert_weights_norm",
    "expert_gating_func",
    "attention.key_length_mla",
    "attention.value_length_mla",
    "attention.temperature_scale",
    "rope.scaling.yarn_log_multiplier",
];

/// Whether the translation reads the key `<architecture>.<suffix>`.
pub(crate) fn is_read(suffix: &str) -> bool {
    let in_table = |table: &[(&str, &str)]| table.iter().any(|(s, _)| *s == suffix);
    in_table(INTEGERS) || in_table(FLOATS) || OF_FAMILY.iter().any(|(_, t)| in_table(t)) || OTHERS.contains(&suffix)
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
    ("norm_eps", "attention.layer_norm_rms_epsilon"),
    ("layer_norm_epsilon", "attention.layer_norm_rms_epsilon"),
    ("mamba_d_head", "ssm.inner_size"),
    ("linear_value_head_dim", "ssm.inner_size"),
    ("position_embedding_type", "rope.scaling.finetuned"),
];

/// What a file of `arch` calls the keys that its metadata are translated into. `has` says whether it has a suffix: what
/// it does not state follows from other keys.
pub(super) fn names(arch: &str, has: &dyn Fn(&str) -> bool) -> ConfigKeyNames {
    let mut names = ConfigKeyNames::default();
    for (suffix, key) in INTEGERS.iter().chain(FLOATS) {
        names.add(*key, format!("{arch}.{suffix}"));
    }
    for (suffix, key) in of_family(arch) {
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
