"""Configuration and tensors of a tiny model of every architecture, as Hugging Face lays them out."""
VOCAB, HIDDEN, HEADS, KV_HEADS, WIDTH, INNER, LAYERS, EXPERTS = 320, 32, 4, 2, 8, 48, 3, 4
PLAIN_ROPE = {"rope_type": "default", "rope_theta": 10000.0}
LLAMA3_ROPE = {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0,
               "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
YARN = {"rope_type": "yarn", "rope_theta": 150000.0, "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0,
        "original_max_position_embeddings": 4096, "truncate": False}
WINDOWS = ["sliding_attention", "full_attention", "sliding_attention"]
FULL = ["full_attention"] * LAYERS

COMMON = {"vocab_size": VOCAB, "hidden_size": HIDDEN, "intermediate_size": INNER, "num_hidden_layers": LAYERS,
          "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "hidden_act": "silu", "rms_norm_eps": 1e-5,
          "max_position_embeddings": 256, "rope_parameters": PLAIN_ROPE, "tie_word_embeddings": False,
          "attention_dropout": 0.0, "initializer_range": 0.02, "use_cache": True, "dtype": "float32",
          "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, "transformers_version": "5.0.0"}
GEMMA = {"hidden_activation": "gelu_pytorch_tanh", "layer_types": WINDOWS, "sliding_window": 16, "head_dim": WIDTH,
         "query_pre_attn_scalar": 8, "tie_word_embeddings": True, "attention_bias": False}
# What each has besides; None takes a common key away.
OWN = {
    "llama": {"model_type": "llama", "head_dim": WIDTH, "attention_bias": False, "mlp_bias": False},
    "llama3": {"model_type": "llama", "head_dim": WIDTH, "rope_parameters": LLAMA3_ROPE},
    "mistral": {"model_type": "mistral", "head_dim": WIDTH, "sliding_window": 16},
    "qwen2": {"model_type": "qwen2", "layer_types": FULL, "use_sliding_window": False, "max_window_layers": 28,
              "sliding_window": None, "tie_word_embeddings": True},
    "qwen3": {"model_type": "qwen3", "layer_types": FULL, "use_sliding_window": False, "max_window_layers": 28,
              "sliding_window": None, "head_dim": 16, "attention_bias": False},
    "qwen3moe": {"model_type": "qwen3_moe", "head_dim": WIDTH, "num_experts": EXPERTS, "num_experts_per_tok": 2,
                 "moe_intermediate_size": 24, "norm_topk_prob": True, "decoder_sparse_step": 1, "mlp_only_layers": [],
                 "attention_bias": False},
    "smollm3": {"model_type": "smollm3", "layer_types": FULL, "no_rope_layer_interval": 3, "no_rope_layers": [1, 1, 0],
                "attention_bias": False, "mlp_bias": False, "use_sliding_window": False, "sliding_window": None,
                "tie_word_embeddings": True},
    "olmo2": {"model_type": "olmo2", "attention_bias": False},
    "phi3": {"model_type": "phi3", "original_max_position_embeddings": 256, "sliding_window": None,
             "rope_parameters": dict(PLAIN_ROPE, partial_rotary_factor=1.0)},
    "gemma2": dict(GEMMA, model_type="gemma2", attn_logit_softcapping=50.0, final_logit_softcapping=30.0),
    "gemma3": dict(GEMMA, model_type="gemma3_text", rope_parameters={
        "full_attention": {"rope_theta": 1000000.0, "rope_type": "default"}, "sliding_attention": PLAIN_ROPE}),
    "mixtral": {"model_type": "mixtral", "num_local_experts": EXPERTS, "num_experts_per_tok": 2,
                "sliding_window": None},
    "glm": {"model_type": "glm", "head_dim": WIDTH, "attention_bias": False,
            "rope_parameters": dict(PLAIN_ROPE, partial_rotary_factor=0.5)},
    "glm4": {"model_type": "glm4", "head_dim": WIDTH, "attention_bias": True,
             "rope_parameters": dict(PLAIN_ROPE, partial_rotary_factor=0.5)},
    "gpt2": {"model_type": "gpt2", "n_embd": HIDDEN, "n_head": HEADS, "n_layer": LAYERS, "n_positions": 256,
             "n_inner": None, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "scale_attn_weights": True,
             "scale_attn_by_inverse_layer_idx": False, "tie_word_embeddings": True},
    "gptneox": {"model_type": "gpt_neox", "hidden_act": "gelu", "layer_norm_eps": 1e-5, "attention_bias": True,
                "use_parallel_residual": True, "rope_parameters": dict(PLAIN_ROPE, partial_rotary_factor=0.25)},
    "gptoss": {"model_type": "gpt_oss", "head_dim": WIDTH, "layer_types": WINDOWS, "sliding_window": 16,
               "num_local_experts": EXPERTS, "num_experts_per_tok": 2, "attention_bias": True, "rope_parameters": YARN,
               "swiglu_alpha": 1.702, "swiglu_limit": 7.0},
    "deepseek": {"model_type": "deepseek_v3", "num_key_value_heads": HEADS, "kv_lora_rank": 16, "q_lora_rank": 16,
                 "qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "qk_head_dim": 16, "head_dim": 8, "v_head_dim": 8,
                 "n_group": 2, "topk_group": 1, "n_routed_experts": EXPERTS, "n_shared_experts": 1,
                 "num_experts_per_tok": 2, "moe_intermediate_size": 24, "first_k_dense_replace": 1,
                 "norm_topk_prob": True, "routed_scaling_factor": 2.5, "rope_interleave": True,
                 "attention_bias": False},
}
NAMES = list(OWN)
# Keys of other families that gpt2 has under other names, or that a family lacks.
FOREIGN = {"gpt2": ["hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                    "num_key_value_heads", "hidden_act", "rms_norm_eps", "max_position_embeddings", "rope_parameters"],
           "gptneox": ["num_key_value_heads", "rms_norm_eps"]}
CLASSES = {"llama": "Llama", "llama3": "Llama", "mistral": "Mistral", "qwen2": "Qwen2", "qwen3": "Qwen3",
           "qwen3moe": "Qwen3Moe", "smollm3": "SmolLM3", "olmo2": "Olmo2", "phi3": "Phi3", "gemma2": "Gemma2",
           "gemma3": "Gemma3", "glm": "Glm", "glm4": "Glm4", "mixtral": "Mixtral", "gpt2": "GPT2LMHead", "gptneox": "GPTNeoX", "gptoss": "GptOss",
           "deepseek": "DeepseekV3"}


def config(name):
    """config.json of an architecture."""
    common = {key: value for key, value in COMMON.items() if key not in FOREIGN.get(name, [])}
    head = "Model" if name == "gpt2" else "ForCausalLM"
    return {"architectures": [CLASSES[name] + head], **common, **OWN[name]}


def shapes(name):
    """`{tensor: shape}` of an architecture, norms and biases included."""
    build = {"gpt2": gpt2, "gptneox": gptneox}.get(name, decoder)
    return build(name)


def decoder(name):
    c = config(name)
    out = {"model.embed_tokens.weight": [VOCAB, HIDDEN], "model.norm.weight": [HIDDEN]}
    if not c["tie_word_embeddings"]:
        out["lm_head.weight"] = [VOCAB, HIDDEN]
    for layer in range(LAYERS):
        parts = norms(name) | (latent() if name == "deepseek" else attention(name, c.get("head_dim", WIDTH)))
        parts |= feed_forward(name, layer)
        out |= {f"model.layers.{layer}.{part}": shape for part, shape in parts.items()}
    return out


def norms(name):
    found = ["post_attention_layernorm"] if name == "olmo2" else ["input_layernorm", "post_attention_layernorm"]
    if name in ("gemma2", "gemma3"):
        found += ["pre_feedforward_layernorm"]
    if name in ("gemma2", "gemma3", "olmo2"):
        found += ["post_feedforward_layernorm"]
    if name == "glm4":
        found += ["post_self_attn_layernorm", "post_mlp_layernorm"]
    return {f"{norm}.weight": [HIDDEN] for norm in found}


def attention(name, width):
    q, kv = HEADS * width, KV_HEADS * width
    if name == "phi3":
        return {"self_attn.qkv_proj.weight": [q + 2 * kv, HIDDEN], "self_attn.o_proj.weight": [HIDDEN, q]}
    rows = {"q": q, "k": kv, "v": kv}
    out = {f"self_attn.{part}_proj.weight": [count, HIDDEN] for part, count in rows.items()}
    out["self_attn.o_proj.weight"] = [HIDDEN, q]
    if name in ("qwen2", "gptoss", "glm4"):
        out |= {f"self_attn.{part}_proj.bias": [count] for part, count in rows.items()}
    if name == "gptoss":
        out |= {"self_attn.o_proj.bias": [HIDDEN], "self_attn.sinks": [HEADS]}
    if name in ("qwen3", "qwen3moe", "gemma3"):
        out |= {"self_attn.q_norm.weight": [width], "self_attn.k_norm.weight": [width]}
    if name == "olmo2":
        out |= {"self_attn.q_norm.weight": [q], "self_attn.k_norm.weight": [kv]}
    return out


def latent():
    part = {"q_a_proj": [16, HIDDEN], "q_a_layernorm": [16], "q_b_proj": [HEADS * 16, 16],
            "kv_a_proj_with_mqa": [24, HIDDEN], "kv_a_layernorm": [16], "kv_b_proj": [HEADS * 16, 16],
            "o_proj": [HIDDEN, HEADS * 8]}
    return {f"self_attn.{name}.weight": shape for name, shape in part.items()}


def gated(prefix, inner, names=("gate_proj", "up_proj", "down_proj")):
    gate, up, down = names
    return {f"{prefix}.{gate}.weight": [inner, HIDDEN], f"{prefix}.{up}.weight": [inner, HIDDEN],
            f"{prefix}.{down}.weight": [HIDDEN, inner]}


def feed_forward(name, layer):
    if name in ("phi3", "glm", "glm4"):
        return {"mlp.gate_up_proj.weight": [2 * INNER, HIDDEN], "mlp.down_proj.weight": [HIDDEN, INNER]}
    if name == "gptoss":
        experts = {"gate_up_proj": [EXPERTS, HIDDEN, 2 * INNER], "gate_up_proj_bias": [EXPERTS, 2 * INNER],
                   "down_proj": [EXPERTS, INNER, HIDDEN], "down_proj_bias": [EXPERTS, HIDDEN]}
        router = {"mlp.router.weight": [EXPERTS, HIDDEN], "mlp.router.bias": [EXPERTS]}
        return router | {f"mlp.experts.{part}": shape for part, shape in experts.items()}
    if name == "mixtral":
        out = {"block_sparse_moe.gate.weight": [EXPERTS, HIDDEN]}
        for e in range(EXPERTS):
            out |= gated(f"block_sparse_moe.experts.{e}", INNER, ("w1", "w3", "w2"))
        return out
    if name == "qwen3moe" or (name == "deepseek" and layer > 0):
        out = {"mlp.gate.weight": [EXPERTS, HIDDEN]}
        for e in range(EXPERTS):
            out |= gated(f"mlp.experts.{e}", 24)
        if name == "deepseek":
            out |= {"mlp.gate.e_score_correction_bias": [EXPERTS]} | gated("mlp.shared_experts", 24)
        return out
    return gated("mlp", INNER)


def gpt2(_name):
    out = {"transformer.wte.weight": [VOCAB, HIDDEN], "transformer.wpe.weight": [256, HIDDEN]}
    both = {"ln_1": None, "ln_2": None, "attn.c_attn": [HIDDEN, 3 * HIDDEN], "attn.c_proj": [HIDDEN, HIDDEN],
            "mlp.c_fc": [HIDDEN, 4 * HIDDEN], "mlp.c_proj": [4 * HIDDEN, HIDDEN]}
    for layer in range(LAYERS):
        for part, shape in both.items():
            out |= with_bias(f"transformer.h.{layer}.{part}", shape, -1)
    return out | with_bias("transformer.ln_f", None, -1)


def gptneox(_name):
    out = {"gpt_neox.embed_in.weight": [VOCAB, HIDDEN], "embed_out.weight": [VOCAB, HIDDEN]}
    both = {"input_layernorm": None, "post_attention_layernorm": None,
            "attention.query_key_value": [3 * HIDDEN, HIDDEN],
            "attention.dense": [HIDDEN, HIDDEN], "mlp.dense_h_to_4h": [INNER, HIDDEN],
            "mlp.dense_4h_to_h": [HIDDEN, INNER]}
    for layer in range(LAYERS):
        for part, shape in both.items():
            out |= with_bias(f"gpt_neox.layers.{layer}.{part}", shape, 0)
    return out | with_bias("gpt_neox.final_layer_norm", None, 0)


def with_bias(name, shape, outputs):
    shape = shape or [HIDDEN]
    return {f"{name}.weight": shape, f"{name}.bias": [shape[outputs]]}
