"""Tiny models with random weights whose shapes and options the larger fixture set lacks, with logits of transformers.

usage: make_tiny.py OUT_DIR [NAME...]      (needs torch, transformers, safetensors, gguf, numpy)

OUT_DIR/safetensors/NAME: config.json, model.safetensors, golden.json; OUT_DIR/gguf/NAME: model.gguf, golden.json.
Weights are rounded to the type they are stored in before anything is computed, so that the comparison is exact.
"""
import json
import os
import shutil
import sys

import gguf
import numpy as np
import torch
import transformers as tf
from safetensors.torch import load_file, save_file

torch.set_num_threads(1)
V = 96
BASE = dict(vocab_size=V, hidden_size=36, intermediate_size=50, num_hidden_layers=2, num_attention_heads=3,
            num_key_value_heads=1, max_position_embeddings=128, bos_token_id=1, eos_token_id=2, pad_token_id=0)
NEOX = {k: v for k, v in BASE.items() if k != "num_key_value_heads"}
MLA = dict(BASE, num_key_value_heads=3, kv_lora_rank=12, qk_rope_head_dim=6, qk_nope_head_dim=10, v_head_dim=14,
           moe_intermediate_size=20, num_experts_per_tok=2)


def rope(kind, theta=10000.0, **more):
    return dict(rope_type=kind, rope_theta=theta, **more)


YARN = dict(factor=4.0, original_max_position_embeddings=32)
# As Phi-4-mini has it: part of a head rotates, by one set of divisors up to 24 positions and by another beyond.
LONGROPE = dict(BASE, num_attention_heads=4, hidden_size=64, original_max_position_embeddings=24,
                rope_parameters=rope("longrope", partial_rotary_factor=0.75, short_factor=[1.0, 1.1, 1.25, 1.4, 1.7, 2.0],
                                     long_factor=[1.0, 1.5, 3.0, 6.5, 12.0, 20.0]))
# name: class, configuration, stored type, and options: `old` (configuration in the older dialect), `dynamic` (tables
# for each input's own length), `mxfp4` (packed experts), `bias` (a router correction that is not zero).
SAFE = {
    "llama-biased-linear": ("LlamaConfig", dict(BASE, head_dim=10, tie_word_embeddings=True, attention_bias=True,
                            mlp_bias=True, rope_parameters=rope("linear", factor=2.5)), "float32", "old"),
    "llama-dynamic": ("LlamaConfig", dict(BASE, max_position_embeddings=24,
                      rope_parameters=rope("dynamic", factor=3.0)), "float16", "dynamic"),
    "llama-yarn": ("LlamaConfig", dict(BASE, num_attention_heads=6, num_key_value_heads=2, head_dim=16,
                   rope_parameters=rope("yarn", **YARN)), "bfloat16", "old"),
    "llama-yarn-stated": ("LlamaConfig", dict(BASE, head_dim=24, rope_parameters=rope("yarn", 500.0, **YARN,
                          attention_factor=1.3, beta_fast=6.0, beta_slow=0.5, truncate=False)), "bfloat16", ""),
    "llama-llama3": ("LlamaConfig", dict(BASE, head_dim=22, rope_parameters=rope("llama3", 5000.0, factor=4.0,
                     low_freq_factor=1.0, high_freq_factor=3.0, original_max_position_embeddings=48)), "bfloat16", "old"),
    "mistral-window": ("MistralConfig", dict(BASE, num_attention_heads=6, num_key_value_heads=3, head_dim=8,
                       sliding_window=5), "bfloat16", ""),
    "qwen2-window": ("Qwen2Config", dict(BASE, hidden_size=40, num_attention_heads=5, use_sliding_window=True,
                     max_window_layers=1, sliding_window=6, tie_word_embeddings=False), "bfloat16", "old"),
    "qwen3-biased-tied": ("Qwen3Config", dict(BASE, num_key_value_heads=3, head_dim=14, attention_bias=True,
                          tie_word_embeddings=True), "bfloat16", ""),
    "qwen3moe-sparse": ("Qwen3MoeConfig", dict(BASE, head_dim=12, num_experts=5, num_experts_per_tok=3,
                        moe_intermediate_size=18, norm_topk_prob=False, decoder_sparse_step=2), "bfloat16", ""),
    "mixtral-window": ("MixtralConfig", dict(BASE, num_local_experts=3, num_experts_per_tok=1, sliding_window=7,
                       tie_word_embeddings=True), "float16", ""),
    "gemma2-biased": ("Gemma2Config", dict(BASE, head_dim=14, sliding_window=9, query_pre_attn_scalar=20,
                      attn_logit_softcapping=3.0, final_logit_softcapping=2.0, attention_bias=True), "bfloat16", "old"),
    "gemma3-pattern": ("Gemma3TextConfig", dict(BASE, num_attention_heads=2, head_dim=12, sliding_window=4,
                       query_pre_attn_scalar=24, num_hidden_layers=4, layer_types=["sliding_attention",
                       "full_attention"] * 2, rope_parameters={"full_attention": rope("linear", 1e6, factor=8.0),
                       "sliding_attention": rope("default", 3000.0)}), "bfloat16", "old"),
    "phi3-partial-window": ("Phi3Config", dict(BASE, num_attention_heads=4, original_max_position_embeddings=128,
                            rope_parameters=rope("default", partial_rotary_factor=0.5), hidden_size=48,
                            sliding_window=11, tie_word_embeddings=True), "bfloat16", ""),
    "olmo2-biased": ("Olmo2Config", dict(BASE, num_key_value_heads=3, attention_bias=True), "bfloat16", ""),
    "smollm3-window": ("SmolLM3Config", dict(BASE, no_rope_layer_interval=2, attention_bias=True, mlp_bias=True,
                       use_sliding_window=True, sliding_window=6), "bfloat16", ""),
    "gpt2-scaled": ("GPT2Config", dict(vocab_size=V, n_embd=30, n_layer=2, n_head=3, n_positions=64, n_inner=44,
                    activation_function="relu", scale_attn_by_inverse_layer_idx=True, bos_token_id=1, eos_token_id=2),
                    "bfloat16", ""),
    "gptneox-sequential": ("GPTNeoXConfig", dict(NEOX, use_parallel_residual=False, attention_bias=False,
                           tie_word_embeddings=True, rope_parameters=rope("default", partial_rotary_factor=0.5)),
                           "bfloat16", "old"),
    "gptoss-mxfp4": ("GptOssConfig", dict(BASE, hidden_size=64, intermediate_size=32, num_attention_heads=6,
                     num_key_value_heads=2, head_dim=10, num_local_experts=5, num_experts_per_tok=3, sliding_window=5),
                     "bfloat16", "mxfp4"),
    "deepseek-plain-q": ("DeepseekV3Config", dict(MLA, q_lora_rank=None, n_routed_experts=6, n_group=1, topk_group=1,
                         n_shared_experts=2, norm_topk_prob=False, first_k_dense_replace=1, tie_word_embeddings=True,
                         rope_parameters=rope("yarn", **YARN, mscale=1.0, mscale_all_dim=0.7)), "bfloat16", "bias"),
    "deepseek-groups": ("DeepseekV3Config", dict(MLA, q_lora_rank=20, n_routed_experts=8, n_group=4, topk_group=2,
                        n_shared_experts=1, attention_bias=True, rope_interleave=False, first_k_dense_replace=0,
                        routed_scaling_factor=1.7), "bfloat16", "bias old"),
    "glm-unbiased-tied": ("GlmConfig", dict(BASE, head_dim=20, attention_bias=False, tie_word_embeddings=True,
                          rope_parameters=rope("default", 3000.0)), "bfloat16", "old"),
    "glm4-yarn": ("Glm4Config", dict(BASE, num_attention_heads=6, num_key_value_heads=2, head_dim=16,
                  rope_parameters=rope("yarn", 500.0, partial_rotary_factor=0.75, **YARN)), "bfloat16", ""),
    "phi3-longrope": ("Phi3Config", LONGROPE, "bfloat16", "dynamic old"),
}
GGUF = {
    "llama": ("LlamaConfig", dict(BASE, head_dim=12, tie_word_embeddings=True), "llama"),
    "llama-llama3": ("LlamaConfig", dict(BASE, num_attention_heads=6, num_key_value_heads=2, head_dim=14,
                     rope_parameters=rope("llama3", 5000.0, factor=4.0, low_freq_factor=1.0, high_freq_factor=3.0,
                     original_max_position_embeddings=48)), "llama"),
    "mixtral": ("MixtralConfig", dict(BASE, num_local_experts=4, num_experts_per_tok=2), "llama"),
    "qwen2": ("Qwen2Config", dict(BASE, hidden_size=40, num_attention_heads=4, num_key_value_heads=2), "qwen2"),
    "qwen3": ("Qwen3Config", dict(BASE, head_dim=14), "qwen3"),
    "qwen3moe": ("Qwen3MoeConfig", dict(BASE, head_dim=12, num_experts=5, num_experts_per_tok=2, norm_topk_prob=True,
                 moe_intermediate_size=18), "qwen3moe"),
    "gemma2": ("Gemma2Config", dict(BASE, head_dim=14, sliding_window=9, query_pre_attn_scalar=14,
               attn_logit_softcapping=3.0, final_logit_softcapping=2.0), "gemma2"),
    "gemma3": ("Gemma3TextConfig", dict(BASE, head_dim=12, sliding_window=4, query_pre_attn_scalar=12,
               num_hidden_layers=7), "gemma3"),
    "phi3": ("Phi3Config", dict(BASE, num_attention_heads=4, hidden_size=48, original_max_position_embeddings=128),
             "phi3"),
    "gpt-oss": ("GptOssConfig", dict(BASE, hidden_size=64, intermediate_size=32, num_attention_heads=4,
                num_key_value_heads=2, head_dim=16, num_local_experts=4, num_experts_per_tok=2, sliding_window=5),
                "gpt-oss"),
    "glm4": ("Glm4Config", dict(BASE, head_dim=14, num_key_value_heads=3,
             rope_parameters=rope("default", 5000.0, partial_rotary_factor=0.72)), "glm4"),
    "chatglm": ("GlmConfig", dict(BASE, hidden_size=48, num_attention_heads=4, num_key_value_heads=2, head_dim=12),
                "chatglm"),
    "phi3-longrope": ("Phi3Config", LONGROPE, "phi3"),
}
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], dtype=np.float32)


def to_mxfp4(rows):
    """Codes [.., n / 32, 32] and exponents [.., n / 32] near the given values, and the values they mean."""
    x = rows.reshape(*rows.shape[:-1], -1, 32)
    top = np.maximum(np.abs(x).max(-1), 1e-30)
    exponents = np.clip(np.floor(np.log2(top)) - 2 + 127, 0, 254).astype(np.uint8)
    scale = np.exp2(exponents.astype(np.float32) - 127)[..., None]
    codes = np.abs(x[..., None] / scale[..., None] - E2M1).argmin(-1).astype(np.uint8)
    return codes, exponents, (E2M1[codes] * scale).reshape(rows.shape)


def make(cls, kw, dtype, seed, options=""):
    torch.manual_seed(seed)
    how = dict(dtype=torch.float32, attn_implementation="eager", experts_implementation="eager")
    model = tf.AutoModelForCausalLM.from_config(getattr(tf, cls)(**kw), **how).eval()
    packed = {}
    with torch.no_grad():
        for name, p in list(model.named_parameters()) + [b for b in model.named_buffers() if "correction_bias" in b[0]]:
            if "correction_bias" in name:
                if "bias" in options:
                    p.normal_(0, 0.2)
            elif p.dim() >= 2:
                p.normal_(0, 0.16)
            elif ("norm" in name.lower() or "ln_" in name) and name.endswith("weight"):
                p.add_(torch.randn_like(p) * 0.1)
            else:
                p.normal_(0, 0.1)
            p.copy_(p.to(getattr(torch, dtype)).float())
            if "mxfp4" in options and name.endswith(("gate_up_proj", "down_proj")) and p.dim() == 3:
                codes, exponents, values = to_mxfp4(p.transpose(1, 2).contiguous().numpy())
                p.copy_(torch.from_numpy(values).transpose(1, 2))
                packed[name] = (codes, exponents)
    return model, packed


def golden(model, name, path, dynamic=False):
    g, cases = torch.Generator().manual_seed(len(name)), []
    for length in (1, 7, 40):
        ids = torch.randint(3, V, (1, length), generator=g)
        with torch.no_grad():
            logits = model(ids).logits[0].double()
            greedy = ids[0].tolist()
            for _ in range(0 if dynamic else 4):
                greedy.append(int(model(torch.tensor([greedy])).logits[0, -1].argmax()))
        case = dict(ids=ids[0].tolist(), last_logits=[round(x, 6) for x in logits[-1].tolist()],
                    argmax_each_pos=logits.argmax(-1).tolist(), greedy16=greedy[length:],
                    std=round(float(logits[-1].std()), 5))
        cases.append(dict(case, context=length) if dynamic else case)
    doc = dict(format="tinyrandom-golden-v1", arch=name, transformers=tf.__version__, torch=torch.__version__, cases=cases)
    json.dump(doc, open(os.path.join(path, "golden.json"), "w"), separators=(",", ":"))
    return cases[-1]["std"]


def older_dialect(path):
    c = json.load(open(path))
    p = c.pop("rope_parameters", None)
    c["torch_dtype"] = c.pop("dtype")
    if c["model_type"] == "gemma3_text":
        c["rope_local_base_freq"] = p["sliding_attention"]["rope_theta"]
        p = p["full_attention"]
        c["sliding_window_pattern"] = 2
        c.pop("_sliding_window_pattern", None)
    c.pop("layer_types", None)
    theta, partial = p.pop("rope_theta"), p.pop("partial_rotary_factor", None)
    if c["model_type"] == "gpt_neox":
        c["rotary_emb_base"], c["rotary_pct"] = theta, partial
    else:
        c["rope_theta"] = theta
        if partial is not None:
            c["partial_rotary_factor"] = partial
    if p.get("rope_type") != "default":
        c["rope_scaling"] = dict(type=p.pop("rope_type"), **p)
    json.dump(c, open(path, "w"), indent=1)


def write_safetensors(out, name, cls, kw, dtype, options, seed):
    path = os.path.join(out, name)
    model, packed = make(cls, kw, dtype, seed, options)
    model.save_pretrained(path)
    std = golden(model, name, path, "dynamic" in options)
    file = os.path.join(path, "model.safetensors")
    tensors = {k: v.to(getattr(torch, dtype)).contiguous() for k, v in load_file(file).items()}
    for key, (codes, exponents) in packed.items():
        del tensors[key]
        tensors[key + "_blocks"] = torch.from_numpy(codes[..., 0::2] | codes[..., 1::2] << 4)
        tensors[key + "_scales"] = torch.from_numpy(exponents)
    save_file(tensors, file)
    config = os.path.join(path, "config.json")
    if packed:
        c = json.load(open(config))
        c["quantization_config"] = dict(quant_method="mxfp4", modules_to_not_convert=[])
        json.dump(c, open(config, "w"), indent=1)
    if "old" in options:
        older_dialect(config)
    extra = os.path.join(path, "generation_config.json")
    if os.path.exists(extra):
        os.remove(extra)
    print("safetensors", name, os.path.getsize(file), "std", std)


LAYER = {"input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
         "self_attn.v_proj": "attn_v", "self_attn.qkv_proj": "attn_qkv", "self_attn.o_proj": "attn_output",
         "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm", "mlp.gate_proj": "ffn_gate",
         "mlp.up_proj": "ffn_up", "mlp.gate_up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "mlp.gate": "ffn_gate_inp",
         "mlp.router": "ffn_gate_inp", "pre_feedforward_layernorm": "ffn_norm",
         "post_feedforward_layernorm": "post_ffw_norm", "post_self_attn_layernorm": "post_attention_norm",
         "post_mlp_layernorm": "post_ffw_norm"}
MODEL = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight",
         "lm_head.weight": "output.weight"}


def neighbours(w, heads):
    """Rows of each head from halves to neighbouring pairs."""
    return w.reshape(heads, 2, w.shape[0] // heads // 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


def fused(parameters):
    """Queries, keys and values as one tensor, which the first GLM-4 has in the makers' own checkpoints."""
    for name, w in parameters.items():
        if ".q_proj." in name:
            parts = [parameters[name.replace("q_proj", part)] for part in ("q_proj", "k_proj", "v_proj")]
            yield name.replace("q_proj", "qkv_proj"), np.concatenate(parts)
        elif ".k_proj." not in name and ".v_proj." not in name:
            yield name, w


def gguf_tensors(model, arch, packed):
    c = model.config
    norms_after = arch in ("gemma2", "gemma3", "gpt-oss")
    parameters = {name: p.detach().numpy() for name, p in model.named_parameters()}
    for name, w in fused(parameters) if arch == "chatglm" else parameters.items():
        if name in MODEL:
            out = MODEL[name]
        else:
            _, _, layer, part = name.split(".", 3)
            stem, kind = (part.rsplit(".", 1) + [""])[:2] if part.endswith((".weight", ".bias")) else (part, "")
            if stem == "post_attention_layernorm":
                short = "post_attention_norm" if norms_after else "ffn_norm"
            elif stem == "self_attn.sinks":
                short, kind = "attn_sinks", "weight"
            elif stem.startswith("mlp.experts."):
                yield from gguf_experts(name, stem[12:], f"blk.{layer}.", w, packed.get(name))
                continue
            else:
                short = LAYER[stem]
            out = f"blk.{layer}.{short}.{kind}"
            if arch == "llama" and short in ("attn_q", "attn_k"):
                w = neighbours(w, c.num_attention_heads if short == "attn_q" else c.num_key_value_heads)
        if arch.startswith("gemma") and "norm" in out:
            w = w + 1
        yield out, w, None


def gguf_experts(name, part, prefix, w, codes):
    if codes:  # [experts, rows, blocks, 32] codes and their exponents
        halves = [("gate", slice(0, None, 2)), ("up", slice(1, None, 2))] if "gate_up" in part else [("down", slice(None))]
        for label, rows in halves:
            q, e = codes[0][:, rows], codes[1][:, rows]
            bytes_ = np.concatenate([e[..., None], q[..., :16] | q[..., 16:] << 4], -1).astype(np.uint8)
            yield f"{prefix}ffn_{label}_exps.weight", bytes_.reshape(*bytes_.shape[:2], -1), gguf.GGMLQuantizationType.MXFP4
    elif part == "gate_up_proj_bias":
        yield f"{prefix}ffn_gate_exps.bias", w[:, 0::2], None
        yield f"{prefix}ffn_up_exps.bias", w[:, 1::2], None
    elif part == "down_proj_bias":
        yield f"{prefix}ffn_down_exps.bias", w, None
    elif part == "gate_up_proj":
        yield f"{prefix}ffn_gate_exps.weight", w[:, :w.shape[1] // 2], None
        yield f"{prefix}ffn_up_exps.weight", w[:, w.shape[1] // 2:], None
    else:
        yield f"{prefix}ffn_down_exps.weight", w, None


def write_gguf(out, name, cls, kw, arch, seed):
    path = os.path.join(out, name)
    os.makedirs(path)
    model, packed = make(cls, kw, "float16", seed, "mxfp4" if arch == "gpt-oss" else "")
    std, c = golden(model, name, path, kw is LONGROPE), model.config
    file = os.path.join(path, "model.gguf")
    w = gguf.GGUFWriter(file, arch)
    w.add_context_length(c.max_position_embeddings)
    w.add_embedding_length(c.hidden_size)
    w.add_block_count(c.num_hidden_layers)
    w.add_feed_forward_length(c.intermediate_size)
    w.add_head_count(c.num_attention_heads)
    w.add_head_count_kv(c.num_key_value_heads)
    width = getattr(c, "head_dim", None) or c.hidden_size // c.num_attention_heads
    w.add_key_length(width)
    w.add_value_length(width)
    w.add_layer_norm_rms_eps(c.rms_norm_eps)
    rp = c.rope_parameters
    rp = rp.get("full_attention", rp)
    w.add_rope_freq_base(rp["rope_theta"])
    w.add_rope_dimension_count(int(width * rp.get("partial_rotary_factor", 1.0) + 1e-6))
    if "num_experts_per_tok" in kw:
        w.add_expert_count(kw.get("num_experts", kw.get("num_local_experts")))
        w.add_expert_used_count(c.num_experts_per_tok)
        w.add_expert_feed_forward_length(getattr(c, "moe_intermediate_size", None) or c.intermediate_size)
    if arch in ("gemma2", "gemma3", "gpt-oss"):
        w.add_sliding_window(c.sliding_window)
    if arch == "gemma2":
        w.add_attn_logit_softcapping(c.attn_logit_softcapping)
        w.add_final_logit_softcapping(c.final_logit_softcapping)
    if arch == "gpt-oss":
        w.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        w.add_rope_scaling_factor(rp["factor"])
        w.add_rope_scaling_orig_ctx_len(rp["original_max_position_embeddings"])
    if rp["rope_type"] == "longrope":
        w.add_rope_scaling_orig_ctx_len(c.original_max_position_embeddings)
        w.add_rope_scaling_attn_factors(model.model.rotary_emb.attention_scaling)
        for length in ("long", "short"):
            w.add_tensor(f"rope_factors_{length}.weight", np.array(rp[f"{length}_factor"], dtype=np.float32))
    if rp["rope_type"] == "llama3":
        plain = 1 / rp["rope_theta"] ** (np.arange(0, width, 2) / width)
        w.add_tensor("rope_freqs.weight", (plain / model.model.rotary_emb.inv_freq.double().numpy()).astype(np.float32))
    for tensor, values, kind in gguf_tensors(model, arch, packed):
        if kind is None and values.ndim >= 2 and not tensor.endswith(".bias"):
            values = values.astype(np.float16)
        w.add_tensor(tensor, np.ascontiguousarray(values), raw_dtype=kind)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    print("gguf", name, os.path.getsize(file), "std", std)


def main(out, *names):
    for kind, models, write in (("safetensors", SAFE, write_safetensors), ("gguf", GGUF, write_gguf)):
        for seed, (name, made) in enumerate(models.items()):
            if names and name not in names:
                continue
            shutil.rmtree(os.path.join(out, kind, name), ignore_errors=True)
            os.makedirs(os.path.join(out, kind), exist_ok=True)
            write(os.path.join(out, kind), name, *made, seed + (100 if kind == "gguf" else 0))


if __name__ == "__main__":
    main(*sys.argv[1:])
