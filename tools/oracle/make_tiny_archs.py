"""Tiny models of every architecture: their configuration, the recipe of their weights, and outputs of transformers.

usage: make_tiny_archs.py OUT_DIR [SEED [NAME...]]      (needs torch, transformers, safetensors, numpy)

OUT_DIR gets NAME.json each, of all models or of those named; the repository's are in crates/yirage-testkit/fixtures/tiny. Weights are not stored: they come
from the counter-based generator (counter_rng.py, and `yirage-testkit` in Rust) by tensor name and element, so that both
sides have the same bytes. Everything is computed in float32; three inputs, with a margin at every position, so that no
rounding decides a token.
"""
import hashlib
import json
import os
import sys
import tempfile

import numpy as np
import torch
import transformers as tf
from safetensors.torch import load_file, save_file

from counter_rng import at, weights

torch.set_num_threads(1)
V = 256
BASE = dict(vocab_size=V, hidden_size=64, intermediate_size=128, num_hidden_layers=3, num_attention_heads=4,
            num_key_value_heads=2, max_position_embeddings=512, bos_token_id=1, eos_token_id=2, pad_token_id=0)
LLAMA3 = dict(rope_type="llama3", rope_theta=500000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=64)
YARN = dict(rope_type="yarn", rope_theta=500000.0, factor=4.0, original_max_position_embeddings=64, beta_fast=16.0,
            beta_slow=1.0)
SMALL = dict(BASE, intermediate_size=96, num_hidden_layers=2)
MODELS = {
    "llama": ("LlamaConfig", dict(BASE)),
    "llama3-rope": ("LlamaConfig", dict(BASE, rope_parameters=LLAMA3)),
    "mistral-swa": ("MistralConfig", dict(BASE, sliding_window=16)),
    "qwen2": ("Qwen2Config", dict(BASE, tie_word_embeddings=True)),
    "qwen3": ("Qwen3Config", dict(BASE, head_dim=32)),
    "qwen3moe": ("Qwen3MoeConfig", dict(BASE, head_dim=16, num_experts=8, num_experts_per_tok=2, norm_topk_prob=True,
                 moe_intermediate_size=48, decoder_sparse_step=1)),
    "mixtral": ("MixtralConfig", dict(BASE, num_local_experts=4, num_experts_per_tok=2)),
    "gemma2": ("Gemma2Config", dict(BASE, head_dim=16, sliding_window=16, query_pre_attn_scalar=16)),
    "gemma3": ("Gemma3TextConfig", dict(BASE, num_hidden_layers=7, head_dim=16, sliding_window=16,
               query_pre_attn_scalar=16)),
    "gemma4": ("Gemma4TextConfig", dict(SMALL, num_hidden_layers=6, head_dim=16, global_head_dim=32, sliding_window=16,
               vocab_size_per_layer_input=V, hidden_size_per_layer_input=8, num_kv_shared_layers=2, use_double_wide_mlp=True,
               layer_types=["sliding_attention", "full_attention"] * 3)),
    "gemma4-moe": ("Gemma4TextConfig", dict(SMALL, num_hidden_layers=3, head_dim=16, global_head_dim=32,
                   num_global_key_value_heads=1, sliding_window=16, hidden_size_per_layer_input=0, attention_k_eq_v=True,
                   enable_moe_block=True, num_experts=4, top_k_experts=2, moe_intermediate_size=24,
                   final_logit_softcapping=2.0, layer_types=["sliding_attention", "full_attention", "full_attention"])),
    "gemma3n": ("Gemma3nTextConfig", dict(SMALL, num_hidden_layers=6, head_dim=16, sliding_window=16, laurel_rank=8,
                vocab_size_per_layer_input=V - 6, hidden_size_per_layer_input=8, num_kv_shared_layers=2, altup_num_inputs=3,
                intermediate_size=[96, 96, 80, 80, 96, 112], activation_sparsity_pattern=[0.9, 0.5, 0.0, 0.0, 0.3, 0.0],
                layer_types=["sliding_attention", "full_attention"] * 3)),
    "phi3": ("Phi3Config", dict(BASE, original_max_position_embeddings=512)),
    "olmo2": ("Olmo2Config", dict(BASE)),
    "gpt2": ("GPT2Config", dict(vocab_size=V, n_embd=64, n_layer=3, n_head=4, n_positions=512, bos_token_id=1,
             eos_token_id=2)),
    "gptneox": ("GPTNeoXConfig", {k: v for k, v in BASE.items() if k != "num_key_value_heads"}),
    "smollm3": ("SmolLM3Config", dict(BASE, no_rope_layer_interval=3)),
    "llama4": ("Llama4TextConfig", dict(SMALL, num_hidden_layers=4, head_dim=16, intermediate_size=48,
               intermediate_size_mlp=96, num_local_experts=4, interleave_moe_layer_step=2, no_rope_layer_interval=4)),
    "gptoss": ("GptOssConfig", dict(BASE, head_dim=16, num_local_experts=4, num_experts_per_tok=2, sliding_window=16)),
    "deepseek-v3": ("DeepseekV3Config", dict(BASE, num_key_value_heads=4, q_lora_rank=32, kv_lora_rank=16,
                    qk_rope_head_dim=8, qk_nope_head_dim=16, v_head_dim=16, n_routed_experts=8, num_experts_per_tok=2,
                    moe_intermediate_size=32, n_group=2, topk_group=1, first_k_dense_replace=1, n_shared_experts=1)),
    "deepseek-v32": ("DeepseekV32Config", dict(SMALL, num_hidden_layers=3, num_key_value_heads=4, q_lora_rank=32,
                     kv_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=16, v_head_dim=16, n_routed_experts=8,
                     num_experts_per_tok=2, moe_intermediate_size=32, n_group=2, topk_group=1, first_k_dense_replace=1,
                     index_topk=512, index_head_dim=16, index_n_heads=4)),
    "glm-moe-dsa": ("GlmMoeDsaConfig", dict(SMALL, num_hidden_layers=3, num_key_value_heads=4, q_lora_rank=32,
                    kv_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=16, v_head_dim=24, n_routed_experts=8,
                    num_experts_per_tok=3, moe_intermediate_size=32, index_topk=512, index_head_dim=16, index_n_heads=2,
                    mlp_layer_types=["dense", "sparse", "sparse"], indexer_types=["full", "full", "shared"])),
    "glm": ("GlmConfig", dict(BASE, head_dim=16)),
    "glm4": ("Glm4Config", dict(BASE, head_dim=16)),
    "qwen2moe": ("Qwen2MoeConfig", dict(SMALL, num_hidden_layers=3, num_experts=6, num_experts_per_tok=2,
                 moe_intermediate_size=32, shared_expert_intermediate_size=40, mlp_only_layers=[1],
                 use_sliding_window=True, sliding_window=16)),
    "cohere": ("CohereConfig", dict(SMALL, logit_scale=0.25, attention_bias=True)),
    "cohere2": ("Cohere2Config", dict(SMALL, num_hidden_layers=4, sliding_window=16)),
    "gemma": ("GemmaConfig", dict(SMALL, head_dim=24, num_key_value_heads=1)),
    "olmo3": ("Olmo3Config", dict(SMALL, num_hidden_layers=4, sliding_window=16, rope_parameters={
              "full_attention": YARN, "sliding_attention": dict(rope_type="default", rope_theta=500000.0)})),
    "exaone4": ("Exaone4Config", dict(SMALL, num_hidden_layers=4, sliding_window=16)),
    "ernie4-5": ("Ernie4_5Config", dict(SMALL, head_dim=24)),
    "hunyuan": ("HunYuanDenseV1Config", dict(SMALL, head_dim=16, rope_parameters=dict(
                rope_type="dynamic", rope_theta=10000.0, alpha=50.0, factor=1.0))),
    "granite": ("GraniteConfig", dict(SMALL, embedding_multiplier=12.0, attention_multiplier=0.2,
                residual_multiplier=0.22, logits_scaling=8.0)),
    "granitemoe": ("GraniteMoeConfig", dict(SMALL, intermediate_size=40, num_local_experts=6, num_experts_per_tok=2,
                   embedding_multiplier=6.0, attention_multiplier=0.3, residual_multiplier=0.4, logits_scaling=4.0)),
    "glm4moe": ("Glm4MoeConfig", dict(SMALL, num_hidden_layers=3, head_dim=16, attention_bias=True, use_qk_norm=True,
                n_routed_experts=8, num_experts_per_tok=3, moe_intermediate_size=32, routed_scaling_factor=1.5)),
    "deepseek-v2": ("DeepseekV2Config", dict(SMALL, num_key_value_heads=4, q_lora_rank=32, kv_lora_rank=16,
                    qk_rope_head_dim=8, qk_nope_head_dim=16, v_head_dim=16, n_routed_experts=8, num_experts_per_tok=3,
                    moe_intermediate_size=32, n_shared_experts=2, first_k_dense_replace=1, routed_scaling_factor=1.5)),
    "ministral": ("MinistralConfig", dict(SMALL, head_dim=24, sliding_window=16,
                  layer_types=["full_attention", "sliding_attention"])),
    "seed-oss": ("SeedOssConfig", dict(SMALL, head_dim=24)),
    "starcoder2": ("Starcoder2Config", dict(SMALL, sliding_window=16)),
    "stablelm": ("StableLmConfig", dict(SMALL, use_qkv_bias=True)),
    "lfm2": ("Lfm2Config", dict(SMALL, num_hidden_layers=4, intermediate_size=120, block_multiple_of=16,
             layer_types=["conv", "full_attention", "conv", "conv"])),
    "granitemoehybrid": ("GraniteMoeHybridConfig", dict(SMALL, num_hidden_layers=4, intermediate_size=40,
                         num_local_experts=6, num_experts_per_tok=2, shared_intermediate_size=48, mamba_n_heads=8,
                         mamba_d_head=16, mamba_d_state=16, mamba_n_groups=1, embedding_multiplier=6.0,
                         attention_multiplier=0.3, residual_multiplier=0.4, logits_scaling=4.0, layer_types=[
                         "linear_attention", "full_attention", "linear_attention", "linear_attention"])),
    "granite-h": ("GraniteMoeHybridConfig", dict(SMALL, num_hidden_layers=3, num_local_experts=0, num_experts_per_tok=0,
                  shared_intermediate_size=96, mamba_n_heads=8, mamba_d_head=16, mamba_d_state=8, mamba_n_groups=2,
                  position_embedding_type="rope", residual_multiplier=0.5, attention_multiplier=0.25, layer_types=[
                  "linear_attention", "linear_attention", "full_attention"])),
    "qwen3next": ("Qwen3NextConfig", dict(SMALL, num_hidden_layers=4, head_dim=16, linear_num_value_heads=4,
                  linear_num_key_heads=2, linear_key_head_dim=16, linear_value_head_dim=24, linear_conv_kernel_dim=4,
                  num_experts=6, num_experts_per_tok=2, moe_intermediate_size=32, shared_expert_intermediate_size=40,
                  mlp_only_layers=[1], layer_types=["linear_attention", "full_attention", "linear_attention",
                  "linear_attention"])),
    "mamba2": ("Mamba2Config", dict(vocab_size=V, hidden_size=64, num_hidden_layers=3, num_heads=8, head_dim=16,
               state_size=16, n_groups=2, bos_token_id=1, eos_token_id=2, pad_token_id=0)),
    "qwen35": ("Qwen3_5TextConfig", dict(SMALL, num_hidden_layers=4, head_dim=16, linear_num_value_heads=4,
               linear_num_key_heads=2, linear_key_head_dim=16, linear_value_head_dim=24, layer_types=[
               "linear_attention", "full_attention", "linear_attention", "linear_attention"])),
    "qwen35moe": ("Qwen3_5MoeTextConfig", dict(SMALL, num_hidden_layers=3, head_dim=16, linear_num_value_heads=3,
                  linear_num_key_heads=3, linear_key_head_dim=16, linear_value_head_dim=16, num_experts=6,
                  num_experts_per_tok=2, moe_intermediate_size=32, shared_expert_intermediate_size=40, layer_types=[
                  "linear_attention", "full_attention", "linear_attention"])),
    "ministral3": ("Ministral3Config", dict(SMALL, head_dim=16, rope_parameters=dict(rope_type="yarn", rope_theta=10000.0,
                   factor=16.0, original_max_position_embeddings=16, mscale=1.0, mscale_all_dim=1.0,
                   llama_4_scaling_beta=0.1))),
    "minimax-m2": ("MiniMaxM2Config", dict(SMALL, head_dim=16, intermediate_size=32, num_local_experts=6,
                   num_experts_per_tok=2, rotary_dim=8)),
    "ernie4-5-moe": ("Ernie4_5_MoeConfig", dict(SMALL, num_hidden_layers=3, moe_num_experts=6, moe_k=2,
                     moe_num_shared_experts=2, moe_intermediate_size=24, moe_layer_start_index=1)),
    "hunyuan-moe": ("HunYuanMoEV1Config", dict(SMALL, head_dim=16, intermediate_size=48, num_experts=4, moe_topk=2)),
    "nemotron-h": ("NemotronHConfig", dict(SMALL, head_dim=16, mamba_num_heads=8, mamba_head_dim=16, ssm_state_size=16,
                   n_groups=2, layers_block_type=["linear_attention", "mlp", "full_attention", "linear_attention"])),
    "nemotron-h-moe": ("NemotronHConfig", dict(SMALL, head_dim=16, mamba_num_heads=8, mamba_head_dim=16,
                       ssm_state_size=8, n_groups=1, n_routed_experts=8, num_experts_per_tok=3, n_group=4, topk_group=2,
                       moe_intermediate_size=32, moe_shared_expert_intermediate_size=40, moe_latent_size=48,
                       routed_scaling_factor=1.5, use_bias=True, mlp_bias=True, layers_block_type=[
                       "linear_attention", "moe", "full_attention", "moe"])),
    "lfm2-moe": ("Lfm2MoeConfig", dict(SMALL, num_hidden_layers=4, num_dense_layers=1, num_experts=6, num_experts_per_tok=2,
                 moe_intermediate_size=24, routed_scaling_factor=1.5,
                 layer_types=["conv", "full_attention", "conv", "full_attention"])),
    "glm4-moe-lite": ("Glm4MoeLiteConfig", dict(SMALL, num_hidden_layers=3, num_key_value_heads=4, q_lora_rank=32,
                      kv_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=16, v_head_dim=24, n_routed_experts=8,
                      num_experts_per_tok=3, moe_intermediate_size=32, mlp_layer_types=["dense", "sparse", "sparse"])),
}
LENGTHS, GREEDY = (1, 7, 40), 16
# Of the spread of a position's logits; transformers and another order of additions differ by about 1e-6 of it.
MARGIN = 5e-3


def recipe(name, initial):
    """Base and exponent of a tensor, from what transformers begins with: norms that multiply by 1 stay near 1."""
    if initial.ndim >= 2:
        return 0.0, 10
    return (1.0 if bool((initial == 1).all()) else 0.0), 11


def build(cls, keywords, seed, folder):
    """A model whose checkpoint in `folder` has the generator's weights, the recipe of each tensor, and a hash of all their bytes."""
    how = dict(dtype=torch.float32, attn_implementation="eager", experts_implementation="eager")
    tf.AutoModelForCausalLM.from_config(getattr(tf, cls)(**keywords), **how).save_pretrained(folder)
    file, tensors = os.path.join(folder, "model.safetensors"), []
    made, digest = {}, hashlib.sha256()
    for name, initial in sorted(load_file(file).items()):
        base, exponent = recipe(name, initial)
        values = weights(seed, name, list(initial.shape), base, exponent)
        digest.update(values.tobytes())
        made[name] = torch.from_numpy(values)
        tensors.append([name, list(initial.shape), base, exponent])
    save_file(made, file, metadata=dict(format="pt"))
    return tf.AutoModelForCausalLM.from_pretrained(folder, **how).eval(), tensors, digest.hexdigest()


def logits(model, ids):
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].numpy()


def case(model, ids):
    """What the model says of one input, and the least margin between the two best of any position."""
    rows, tokens = logits(model, ids), list(ids)
    best = [rows[:-1]]
    for _ in range(GREEDY):
        last = logits(model, tokens)[-1:]
        best.append(last)
        tokens.append(int(last.argmax()))
    ordered = np.sort(np.concatenate(best), axis=-1)
    margin = float(((ordered[:, -1] - ordered[:, -2]) / ordered.std(-1)).min())
    return margin, dict(ids=ids, last_logits=[float(str(x)) for x in rows[-1]], std=round(float(rows[-1].std()), 5),
                        argmax_each_pos=rows.argmax(-1).tolist(), greedy16=tokens[len(ids):])


def cases(model, seed):
    for length in LENGTHS:
        for attempt in range(100):
            drawn = at(seed * 1000 + length, np.arange(length) + 1000 * attempt) % np.uint64(V - 3)
            margin, found = case(model, [int(x) + 3 for x in drawn])
            if margin > MARGIN:
                yield found
                break
        else:
            raise SystemExit(f"no input of {length} tokens has a margin of {MARGIN}")


def main(out, seed, names):
    os.makedirs(out, exist_ok=True)
    for name in names:
        cls, keywords = MODELS[name]
        with tempfile.TemporaryDirectory() as folder:
            model, tensors, digest = build(cls, keywords, seed, folder)
            config = json.load(open(os.path.join(folder, "config.json")))
            generation = os.path.join(folder, "generation_config.json")
            generation = json.load(open(generation)) if os.path.exists(generation) else None
        found = list(cases(model, seed))
        doc = dict(format="tiny-archs-v1", arch=name, transformers=tf.__version__, torch=torch.__version__, seed=seed,
                   config=config, generation_config=generation, tensors=tensors, sha256=digest, cases=found)
        path = os.path.join(out, f"{name}.json")
        with open(path, "w") as file:
            lines = [f"{json.dumps(k)}: {json.dumps(v, separators=(',', ':'))}" for k, v in doc.items()]
            file.write("{\n" + ",\n".join(lines) + "\n}\n")
        size = sum(int(np.prod(shape)) for _, shape, _, _ in tensors)
        print(name, size, "weights", os.path.getsize(path), "bytes", "std", found[-1]["std"], flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1, sys.argv[3:] or MODELS)
