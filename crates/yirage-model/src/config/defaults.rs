//! What the reference implementation assumes for keys that a `config.json` leaves out, per model type. Only keys that
//! published files do leave out; sizes that every file states have none, so that a damaged file is noticed.

use serde_json::{Map, Value, json};

/// Adds the defaults of `model_type` for keys that are absent. A key that is there as `null` stays so: it says "none".
pub(super) fn fill(model_type: &str, values: &mut Map<String, Value>) {
    if let Value::Object(defaults) = of(model_type) {
        for (key, value) in defaults {
            values.entry(key).or_insert(value);
        }
    }
}

/// Adds what files of a multi-modal family leave out of their language model's part, where it has the sizes of the first
/// model of its type.
pub(super) fn fill_part(family: &str, model_type: &str, values: &mut Map<String, Value>) {
    let defaults = match (family, model_type) {
        ("llava", "llama") => json!({
            "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32,
            "vocab_size": 32000
        }),
        ("llava", "mistral") => json!({
            "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
            "vocab_size": 32000
        }),
        _ => return,
    };
    if let Value::Object(defaults) = defaults {
        for (key, value) in defaults {
            values.entry(key).or_insert(value);
        }
    }
}

fn of(model_type: &str) -> Value {
    match model_type {
        "llama" => json!({
            "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": false, "attention_bias": false,
            "mlp_bias": false, "hidden_act": "silu", "max_position_embeddings": 2048
        }),
        "mistral" => json!({
            "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": false, "num_key_value_heads": 8,
            "sliding_window": 4096, "hidden_act": "silu", "max_position_embeddings": 131072
        }),
        "mixtral" => json!({
            "rms_norm_eps": 1e-5, "rope_theta": 1000000.0, "tie_word_embeddings": false, "num_key_value_heads": 8,
            "sliding_window": null, "hidden_act": "silu", "max_position_embeddings": 131072,
            "num_local_experts": 8, "num_experts_per_tok": 2
        }),
        "qwen2" => json!({
            "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": false, "use_sliding_window": false,
            "sliding_window": 4096, "max_window_layers": 28, "hidden_act": "silu", "max_position_embeddings": 32768
        }),
        "qwen3" => json!({
            "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": false, "use_sliding_window": false,
            "sliding_window": 4096, "max_window_layers": 28, "hidden_act": "silu", "head_dim": 128,
            "attention_bias": false, "max_position_embeddings": 32768
        }),
        "qwen3_moe" => json!({
            "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": false, "use_sliding_window": false,
            "sliding_window": 4096, "hidden_act": "silu", "attention_bias": false, "norm_topk_prob": false,
            "decoder_sparse_step": 1, "mlp_only_layers": [], "max_position_embeddings": 32768
        }),
        "gemma2" => json!({
            "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": true, "head_dim": 256,
            "num_key_value_heads": 4, "query_pre_attn_scalar": 256, "sliding_window": 4096,
            "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0, "attention_bias": false,
            "hidden_activation": "gelu_pytorch_tanh", "vocab_size": 256000, "max_position_embeddings": 8192
        }),
        "gemma3_text" => json!({
            "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "rope_local_base_freq": 10000.0,
            "tie_word_embeddings": true, "head_dim": 256, "num_attention_heads": 8, "num_key_value_heads": 4,
            "query_pre_attn_scalar": 256, "sliding_window": 4096, "sliding_window_pattern": 6,
            "attention_bias": false, "hidden_activation": "gelu_pytorch_tanh", "vocab_size": 262208,
            "max_position_embeddings": 131072
        }),
        "gemma3n_text" => json!({
            "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "rope_local_base_freq": 10000.0,
            "tie_word_embeddings": true, "head_dim": 256, "num_attention_heads": 8, "num_key_value_heads": 2,
            "sliding_window": 512, "attention_bias": false, "hidden_activation": "gelu_pytorch_tanh",
            "vocab_size": 262400, "vocab_size_per_layer_input": 262144, "hidden_size_per_layer_input": 256,
            "final_logit_softcapping": 30.0, "altup_active_idx": 0, "altup_correct_scale": true,
            "altup_num_inputs": 4, "num_kv_shared_layers": 15, "laurel_rank": 64, "max_position_embeddings": 32768
        }),
        "gemma4_text" => json!({
            "rms_norm_eps": 1e-6, "tie_word_embeddings": true, "head_dim": 256, "num_attention_heads": 8,
            "num_key_value_heads": 4, "sliding_window": 512, "attention_bias": false, "attention_k_eq_v": false,
            "hidden_activation": "gelu_pytorch_tanh", "vocab_size": 262144, "vocab_size_per_layer_input": 262144,
            "hidden_size_per_layer_input": 256, "num_kv_shared_layers": 0, "enable_moe_block": false,
            "use_double_wide_mlp": false, "max_position_embeddings": 131072, "rope_parameters": {
                "full_attention": {
                    "rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1000000.0
                },
                "sliding_attention": { "rope_type": "default", "rope_theta": 10000.0 }
            }
        }),
        "clip_vision_model" => json!({
            "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12,
            "image_size": 224, "patch_size": 32, "hidden_act": "quick_gelu", "layer_norm_eps": 1e-5
        }),
        "siglip_vision_model" => json!({
            "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12,
            "image_size": 224, "patch_size": 16, "hidden_act": "gelu_pytorch_tanh", "layer_norm_eps": 1e-6
        }),
        // Early files call the tower what the whole is called.
        "idefics3" | "idefics3_vision" | "smolvlm" | "smolvlm_vision" => json!({
            "hidden_size": 1152, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 16,
            "image_size": 224, "patch_size": 32, "hidden_act": "gelu_pytorch_tanh", "layer_norm_eps": 1e-6
        }),
        "phi3" => json!({
            "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false, "sliding_window": null,
            "hidden_act": "silu", "max_position_embeddings": 4096
        }),
        "olmo2" => json!({
            "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false, "attention_bias": false,
            "hidden_act": "silu", "max_position_embeddings": 2048
        }),
        "smollm3" => json!({
            "rms_norm_eps": 1e-6, "rope_theta": 2000000.0, "tie_word_embeddings": true, "num_key_value_heads": 4,
            "use_sliding_window": false, "sliding_window": null, "no_rope_layer_interval": 4,
            "attention_bias": false, "mlp_bias": false, "hidden_act": "silu", "max_position_embeddings": 32768
        }),
        "llama4_text" => json!({
            "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "tie_word_embeddings": false, "num_key_value_heads": 8,
            "head_dim": 128, "attention_bias": false, "hidden_act": "silu", "num_local_experts": 16,
            "num_experts_per_tok": 1, "interleave_moe_layer_step": 1, "use_qk_norm": true, "no_rope_layer_interval": 4,
            "attention_chunk_size": 8192, "attn_temperature_tuning": true, "floor_scale": 8192,
            "max_position_embeddings": 131072
        }),
        "glm" | "glm4" => json!({
            "rms_norm_eps": 1.5625e-7, "rope_theta": 10000.0, "partial_rotary_factor": 0.5, "head_dim": 128,
            "num_key_value_heads": 2, "tie_word_embeddings": false, "attention_bias": true, "hidden_act": "silu",
            "max_position_embeddings": 131072
        }),
        "gpt2" => json!({
            "layer_norm_epsilon": 1e-5, "tie_word_embeddings": true, "activation_function": "gelu_new",
            "scale_attn_weights": true, "scale_attn_by_inverse_layer_idx": false, "n_positions": 1024
        }),
        "gpt_neox" => json!({
            "layer_norm_eps": 1e-5, "rotary_pct": 0.25, "rotary_emb_base": 10000, "use_parallel_residual": true,
            "tie_word_embeddings": false, "attention_bias": true, "hidden_act": "gelu",
            "max_position_embeddings": 2048
        }),
        "gpt_oss" => json!({
            "rms_norm_eps": 1e-5, "rope_theta": 150000.0, "tie_word_embeddings": false, "head_dim": 64,
            "num_key_value_heads": 8, "sliding_window": 128, "num_local_experts": 128, "num_experts_per_tok": 4,
            "swiglu_limit": 7.0, "swiglu_alpha": 1.702, "attention_bias": true, "hidden_act": "silu",
            "max_position_embeddings": 131072
        }),
        "deepseek_v32" => json!({
            "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": false, "attention_bias": false,
            "n_group": 8, "topk_group": 4, "norm_topk_prob": true, "routed_scaling_factor": 2.5,
            "first_k_dense_replace": 3, "n_shared_experts": 1, "n_routed_experts": 256, "num_experts_per_tok": 8,
            "moe_intermediate_size": 2048, "num_key_value_heads": 128, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128,
            "v_head_dim": 128, "kv_lora_rank": 512, "q_lora_rank": 1536, "index_topk": 2048, "hidden_act": "silu",
            "max_position_embeddings": 163840
        }),
        "glm_moe_dsa" => json!({
            "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false, "attention_bias": false,
            "n_group": 1, "topk_group": 1, "norm_topk_prob": true, "routed_scaling_factor": 2.5,
            "first_k_dense_replace": 3, "n_shared_experts": 1, "n_routed_experts": 256, "num_experts_per_tok": 8,
            "moe_intermediate_size": 2048, "num_key_value_heads": 64, "qk_rope_head_dim": 64, "qk_nope_head_dim": 192,
            "v_head_dim": 256, "kv_lora_rank": 512, "q_lora_rank": 2048, "index_topk": 2048, "hidden_act": "silu",
            "max_position_embeddings": 202752
        }),
        "deepseek_v3" | "kimi_k2" => json!({
            "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": false, "attention_bias": false,
            "n_group": 8, "topk_group": 4, "norm_topk_prob": true, "routed_scaling_factor": 2.5,
            "first_k_dense_replace": 3, "n_shared_experts": 1, "n_routed_experts": 256, "num_experts_per_tok": 8,
            "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128, "kv_lora_rank": 512,
            "q_lora_rank": 1536, "rope_interleave": true, "hidden_act": "silu", "max_position_embeddings": 4096
        }),
        "qwen2_moe" => json!({
            "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": false, "use_sliding_window": false,
            "sliding_window": 4096, "max_window_layers": 28, "hidden_act": "silu", "qkv_bias": true,
            "norm_topk_prob": false, "decoder_sparse_step": 1, "mlp_only_layers": [], "max_position_embeddings": 32768
        }),
        "cohere" => json!({
            "layer_norm_eps": 1e-5, "rope_theta": 500000.0, "tie_word_embeddings": true, "logit_scale": 0.0625,
            "attention_bias": false, "use_qk_norm": false, "hidden_act": "silu", "max_position_embeddings": 8192
        }),
        "cohere2" => json!({
            "layer_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": true, "logit_scale": 0.0625,
            "attention_bias": false, "sliding_window": 4096, "hidden_act": "silu", "max_position_embeddings": 8192
        }),
        "gemma" => json!({
            "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": true, "head_dim": 256,
            "num_key_value_heads": 16, "attention_bias": false, "hidden_act": "gelu_pytorch_tanh",
            "vocab_size": 256000, "max_position_embeddings": 8192
        }),
        // Where a file says nothing of the layers with a window, their base is this one, whatever the others' is.
        "olmo3" => json!({
            "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "rope_local_base_freq": 500000.0,
            "tie_word_embeddings": false, "attention_bias": false, "sliding_window": 4096, "hidden_act": "silu",
            "max_position_embeddings": 2048
        }),
        "exaone4" => json!({
            "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false, "num_key_value_heads": 32,
            "sliding_window": 4096, "sliding_window_pattern": 4, "hidden_act": "silu", "max_position_embeddings": 2048
        }),
        "ernie4_5" => json!({
            "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "tie_word_embeddings": true, "num_key_value_heads": 2,
            "head_dim": 128, "use_bias": false, "hidden_act": "silu", "max_position_embeddings": 131072
        }),
        "hunyuan_v1_dense" => json!({
            "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false, "attention_bias": false,
            "hidden_act": "silu", "max_position_embeddings": 2048
        }),
        "granite" | "granitemoe" => json!({
            "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": false, "attention_bias": false,
            "mlp_bias": false, "embedding_multiplier": 1.0, "attention_multiplier": 1.0, "residual_multiplier": 1.0,
            "logits_scaling": 1.0, "hidden_act": "silu", "max_position_embeddings": 2048
        }),
        "granitemoehybrid" => json!({
            "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": false, "attention_bias": false,
            "embedding_multiplier": 1.0, "attention_multiplier": 1.0, "residual_multiplier": 1.0, "logits_scaling": 1.0,
            "hidden_act": "silu", "max_position_embeddings": 2048, "num_local_experts": 8, "num_experts_per_tok": 2,
            "mamba_n_heads": 128, "mamba_n_groups": 1, "mamba_d_state": 256, "mamba_d_conv": 4,
            "mamba_conv_bias": true, "mamba_proj_bias": false
        }),
        "qwen3_next" => json!({
            "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "partial_rotary_factor": 0.25, "tie_word_embeddings": false,
            "attention_bias": false, "head_dim": 256, "hidden_act": "silu", "linear_conv_kernel_dim": 4,
            "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_num_key_heads": 16,
            "linear_num_value_heads": 32, "decoder_sparse_step": 1, "moe_intermediate_size": 512,
            "shared_expert_intermediate_size": 512, "num_experts_per_tok": 10, "num_experts": 512, "norm_topk_prob": true,
            "full_attention_interval": 4, "max_position_embeddings": 32768
        }),
        "qwen3_5_text" | "qwen3_5_moe_text" => json!({
            "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "partial_rotary_factor": 0.25, "tie_word_embeddings": false,
            "attention_bias": false, "head_dim": 256, "hidden_act": "silu", "linear_conv_kernel_dim": 4,
            "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_num_key_heads": 16,
            "linear_num_value_heads": 32, "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512,
            "num_experts_per_tok": 8, "num_experts": 256, "norm_topk_prob": true, "full_attention_interval": 4,
            "max_position_embeddings": 32768
        }),
        "nemotron_h" => json!({
            "layer_norm_epsilon": 1e-5, "tie_word_embeddings": false, "head_dim": 128, "num_key_value_heads": 8,
            "mlp_hidden_act": "relu2", "mamba_hidden_act": "silu", "mlp_bias": false, "use_bias": false,
            "use_conv_bias": true, "ssm_state_size": 128, "mamba_num_heads": 128, "mamba_head_dim": 64, "n_groups": 8,
            "conv_kernel": 4, "time_step_min": 0.001, "n_routed_experts": 8, "moe_intermediate_size": 7688,
            "moe_shared_expert_intermediate_size": 7688, "num_experts_per_tok": 2, "routed_scaling_factor": 1.0,
            "n_group": 1, "topk_group": 1, "norm_topk_prob": true, "max_position_embeddings": 4096
        }),
        "ministral3" => json!({
            "rms_norm_eps": 1e-5, "tie_word_embeddings": false, "num_key_value_heads": 8, "head_dim": 128,
            "sliding_window": null, "hidden_act": "silu", "max_position_embeddings": 262144
        }),
        "minimax_m2" => json!({
            "rms_norm_eps": 1e-6, "rope_theta": 5000000.0, "tie_word_embeddings": false, "num_key_value_heads": 8,
            "head_dim": 128, "hidden_act": "silu", "num_experts_per_tok": 8, "num_local_experts": 256,
            "max_position_embeddings": 196608
        }),
        "ernie4_5_moe" => json!({
            "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "tie_word_embeddings": true, "num_key_value_heads": 4,
            "use_bias": false, "hidden_act": "silu", "moe_intermediate_size": 1536, "moe_k": 6, "moe_num_experts": 64,
            "moe_num_shared_experts": 2, "moe_layer_start_index": 1, "moe_layer_end_index": -1, "moe_layer_interval": 1,
            "moe_norm_min": 1e-12, "max_position_embeddings": 131072
        }),
        "hunyuan_v1_moe" => json!({
            "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false, "attention_bias": false,
            "hidden_act": "silu", "num_experts": 1, "moe_topk": 1, "max_position_embeddings": 2048
        }),
        "mamba2" => json!({
            "layer_norm_epsilon": 1e-5, "tie_word_embeddings": false, "n_groups": 8, "conv_kernel": 4,
            "use_conv_bias": true, "use_bias": false, "max_position_embeddings": 1048576
        }),
        "glm4_moe" => json!({
            "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "partial_rotary_factor": 0.5, "tie_word_embeddings": false,
            "attention_bias": false, "use_qk_norm": false, "num_key_value_heads": 8, "n_group": 1, "topk_group": 1,
            "norm_topk_prob": true, "routed_scaling_factor": 1.0, "first_k_dense_replace": 1, "n_shared_experts": 1,
            "n_routed_experts": 128, "num_experts_per_tok": 8, "hidden_act": "silu", "max_position_embeddings": 131072
        }),
        "glm4_moe_lite" => json!({
            "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false, "attention_bias": false,
            "n_group": 1, "topk_group": 1, "norm_topk_prob": true, "routed_scaling_factor": 1.8,
            "first_k_dense_replace": 1, "n_shared_experts": 1, "n_routed_experts": 64, "num_experts_per_tok": 4,
            "qk_rope_head_dim": 64, "qk_nope_head_dim": 192, "v_head_dim": 256, "kv_lora_rank": 512,
            "q_lora_rank": 768, "rope_interleave": true, "hidden_act": "silu", "max_position_embeddings": 202752
        }),
        "deepseek_v2" => json!({
            "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": false, "attention_bias": false,
            "mlp_bias": false, "topk_method": "greedy", "norm_topk_prob": false, "routed_scaling_factor": 1.0,
            "first_k_dense_replace": 0, "n_shared_experts": 2, "n_routed_experts": 64, "qk_rope_head_dim": 64,
            "qk_nope_head_dim": 128, "v_head_dim": 128, "kv_lora_rank": 512, "q_lora_rank": 1536,
            "hidden_act": "silu", "max_position_embeddings": 2048
        }),
        "ministral" => json!({
            "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": false, "num_key_value_heads": 8,
            "sliding_window": 4096, "hidden_act": "silu", "max_position_embeddings": 131072
        }),
        "seed_oss" => json!({
            "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": false, "num_key_value_heads": 8,
            "head_dim": 128, "attention_bias": true, "attention_out_bias": false, "mlp_bias": false,
            "hidden_act": "silu", "max_position_embeddings": 524288
        }),
        "starcoder2" => json!({
            "norm_epsilon": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": true, "num_key_value_heads": 2,
            "use_bias": true, "sliding_window": null, "hidden_act": "gelu_pytorch_tanh", "max_position_embeddings": 4096
        }),
        "lfm2" => json!({
            "norm_eps": 1e-5, "rope_theta": 1000000.0, "tie_word_embeddings": true, "conv_bias": false, "conv_L_cache": 3,
            "block_auto_adjust_ff_dim": true, "block_ffn_dim_multiplier": 1.0, "block_multiple_of": 256,
            "num_key_value_heads": 8, "max_position_embeddings": 128000
        }),
        "lfm2_moe" => json!({
            "norm_eps": 1e-5, "rope_theta": 1000000.0, "tie_word_embeddings": true, "conv_bias": false, "conv_L_cache": 3,
            "num_key_value_heads": 8, "num_dense_layers": 2, "num_experts": 32, "num_experts_per_tok": 4,
            "use_expert_bias": true, "routed_scaling_factor": 1.0, "norm_topk_prob": true,
            "max_position_embeddings": 128000
        }),
        "stablelm" => json!({
            "layer_norm_eps": 1e-5, "rope_theta": 10000.0, "partial_rotary_factor": 0.25, "tie_word_embeddings": false,
            "num_key_value_heads": 32, "use_qkv_bias": false, "qk_layernorm": false, "use_parallel_residual": false,
            "hidden_act": "silu", "max_position_embeddings": 4096
        }),
        "modernbert" => json!({
            "norm_eps": 1e-5, "norm_bias": false, "hidden_activation": "gelu", "local_attention": 128,
            "global_rope_theta": 160000.0, "local_rope_theta": 10000.0, "attention_bias": false, "mlp_bias": false,
            "classifier_bias": false, "max_position_embeddings": 8192
        }),
        "bert" | "roberta" | "xlm-roberta" => json!({
            "layer_norm_eps": 1e-12, "hidden_act": "gelu", "type_vocab_size": 2, "max_position_embeddings": 512
        }),
        _ => Value::Null,
    }
}
