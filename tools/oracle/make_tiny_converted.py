"""Tiny models with random weights as GGUF files that llama.cpp's own converter wrote, with logits of transformers.

usage: make_tiny_converted.py LLAMA_CPP_DIR LIBRARIES_DIR OUT_DIR [NAME...]      (needs torch, transformers, numpy)

LLAMA_CPP_DIR holds llama.cpp's sources (release b11434 made the committed files), LIBRARIES_DIR its shared libraries.
Each folder of OUT_DIR gets model.gguf (matrices in F16, of which every weight is one), golden.json (transformers, in
F32) and llamacpp.json (llama.cpp, of the same model in F32; absent where it asserts sizes that tiny models lack).
"""
import json
import logging
import os
import pathlib
import shutil
import sys
import tempfile

# The converter's own `gguf`, before another version is imported.
sys.path[:0] = [os.path.join(sys.argv[1], "gguf-py"), sys.argv[1]]

import torch
import transformers as tf

import make_tiny
from llama_logits import BUILD, compile_tool, logits

BASE = dict(make_tiny.BASE, hidden_size=48, intermediate_size=56, num_attention_heads=4, num_key_value_heads=2)
BARE = dict(vocab_size=make_tiny.V, hidden_size=48, num_hidden_layers=2, bos_token_id=1, eos_token_id=2, pad_token_id=0)
LINEAR, FULL, SLIDING = "linear_attention", "full_attention", "sliding_attention"
DELTA = dict(BASE, num_hidden_layers=3, head_dim=12, linear_num_value_heads=6, linear_num_key_heads=2,
             linear_key_head_dim=12, linear_value_head_dim=12, layer_types=[LINEAR, FULL, LINEAR],
             rope_parameters=dict(rope_type="default", rope_theta=5000.0, partial_rotary_factor=0.5))
MROPE = dict(DELTA, rope_parameters=dict(DELTA["rope_parameters"], mrope_section=[1, 1, 1]))
EXPERTS = dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=20, shared_expert_intermediate_size=28)
GRANITE = dict(BASE, num_hidden_layers=3, shared_intermediate_size=28, mamba_n_heads=6, mamba_d_head=16, mamba_d_state=12,
               embedding_multiplier=6.0, attention_multiplier=0.3, residual_multiplier=0.4, logits_scaling=4.0,
               layer_types=[LINEAR, FULL, LINEAR])
NEMOTRON = dict(BASE, head_dim=12, mamba_num_heads=6, mamba_head_dim=8, ssm_state_size=12, n_groups=2)
MODELS = {
    "lfm2": ("Lfm2Config", dict(BASE, num_hidden_layers=3, layer_types=["conv", FULL, "conv"], intermediate_size=90,
             block_multiple_of=8)),
    "granite": ("GraniteConfig", dict(BASE, embedding_multiplier=12.0, attention_multiplier=0.2, residual_multiplier=0.22,
                logits_scaling=8.0)),
    "granitemoe": ("GraniteMoeConfig", dict(BASE, intermediate_size=20, num_local_experts=4, num_experts_per_tok=2,
                   embedding_multiplier=6.0, attention_multiplier=0.3, logits_scaling=4.0, tie_word_embeddings=True)),
    "granitehybrid": ("GraniteMoeHybridConfig", dict(GRANITE, mamba_n_groups=1, intermediate_size=20, num_local_experts=4,
                      num_experts_per_tok=2)),
    "granitehybrid-dense": ("GraniteMoeHybridConfig", dict(GRANITE, mamba_n_groups=2, num_local_experts=0,
                            intermediate_size=28, num_experts_per_tok=0, tie_word_embeddings=True)),
    "mamba2": ("Mamba2Config", dict(BARE, num_heads=6, head_dim=16, state_size=12, n_groups=2)),
    "nemotron-h": ("NemotronHConfig", dict(NEMOTRON, layers_block_type=[LINEAR, "mlp", FULL, "mlp"])),
    "nemotron-h-moe": ("NemotronHConfig", dict(NEMOTRON, layers_block_type=[LINEAR, "moe", FULL, "moe"],
                       n_routed_experts=4, num_experts_per_tok=2, moe_intermediate_size=20, moe_latent_size=24,
                       moe_shared_expert_intermediate_size=28, routed_scaling_factor=1.5)),
    "qwen3next": ("Qwen3NextConfig", dict(DELTA, **EXPERTS)),
    "qwen35": ("Qwen3_5TextConfig", dict(MROPE, tie_word_embeddings=True)),
    "qwen35moe": ("Qwen3_5MoeTextConfig", dict(MROPE, **EXPERTS)),
}
MLA = dict(BASE, num_key_value_heads=4, kv_lora_rank=12, qk_rope_head_dim=6, qk_nope_head_dim=10, v_head_dim=14,
           moe_intermediate_size=20, num_experts_per_tok=2, first_k_dense_replace=1)
WINDOWS = dict(BASE, num_hidden_layers=4, sliding_window=9)
GROWS = dict(rope_type="yarn", rope_theta=10000.0, factor=16.0, original_max_position_embeddings=16, mscale=1.0,
             mscale_all_dim=1.0, llama_4_scaling_beta=0.1)
YARN = dict(make_tiny.YARN, rope_type="yarn", rope_theta=10000.0)
# The converter knows this scaling with one width of heads alone.
ALPHA = dict(num_hidden_layers=1, intermediate_size=20, num_attention_heads=2, num_key_value_heads=1, head_dim=128,
             max_position_embeddings=32768,
             rope_parameters=dict(rope_type="dynamic", rope_theta=10000.0, alpha=1000.0, factor=1.0))
MODELS.update({
    "olmo2": ("Olmo2Config", dict(BASE)),
    "olmo3": ("Olmo3Config", dict(WINDOWS, rope_parameters={
              FULL: YARN, SLIDING: dict(rope_type="default", rope_theta=10000.0)})),
    "smollm3": ("SmolLM3Config", dict(BASE, num_hidden_layers=4, no_rope_layer_interval=4)),
    "gemma": ("GemmaConfig", dict(BASE, head_dim=24, num_key_value_heads=1)),
    "cohere": ("CohereConfig", dict(BASE, logit_scale=0.25)),
    "cohere2": ("Cohere2Config", dict(WINDOWS)),
    "exaone4": ("Exaone4Config", dict(BASE, sliding_window=None, sliding_window_pattern=4, layer_types=[FULL, FULL])),
    "ernie4-5": ("Ernie4_5Config", dict(BASE, head_dim=24)),
    "ernie4-5-moe": ("Ernie4_5_MoeConfig", dict(BASE, num_hidden_layers=3, moe_num_experts=6, moe_k=2,
                     moe_num_shared_experts=2, moe_intermediate_size=20, moe_layer_start_index=1)),
    "hunyuan-dense": ("HunYuanDenseV1Config", dict(BASE, **ALPHA)),
    "seed-oss": ("SeedOssConfig", dict(BASE, head_dim=24)),
    "starcoder2": ("Starcoder2Config", dict(BASE)),
    "stablelm": ("StableLmConfig", dict(BASE, use_qkv_bias=True,
                 rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5))),
    "qwen2moe": ("Qwen2MoeConfig", dict(BASE, **EXPERTS)),
    "glm4moe": ("Glm4MoeConfig", dict(BASE, head_dim=16, attention_bias=True, use_qk_norm=True, n_routed_experts=6,
                num_experts_per_tok=2, moe_intermediate_size=20, routed_scaling_factor=1.5)),
    "deepseek-v2": ("DeepseekV2Config", dict(MLA, q_lora_rank=None, n_routed_experts=4, n_shared_experts=2,
                    routed_scaling_factor=1.5)),
    "deepseek-v3": ("DeepseekV3Config", dict(MLA, q_lora_rank=20, n_routed_experts=8, n_group=4, topk_group=2,
                    n_shared_experts=1, routed_scaling_factor=1.7,
                    rope_parameters=dict(YARN, mscale=0.7, mscale_all_dim=0.7))),
    "minimax-m2": ("MiniMaxM2Config", dict(BASE, head_dim=16, intermediate_size=20, num_local_experts=4,
                   num_experts_per_tok=2, rotary_dim=8)),
    "ministral3": ("Ministral3Config", dict(BASE, head_dim=16, rope_parameters=GROWS)),
    "llama4": ("Llama4TextConfig", dict(BASE, num_hidden_layers=4, head_dim=16, intermediate_size=20,
               intermediate_size_mlp=56, num_local_experts=4, interleave_moe_layer_step=2)),
    "lfm2moe": ("Lfm2MoeConfig", dict(BASE, num_hidden_layers=3, layer_types=["conv", FULL, "conv"], num_dense_layers=1,
                num_experts=4, num_experts_per_tok=2, moe_intermediate_size=20)),
    "glm4-moe-lite": ("Glm4MoeLiteConfig", dict(MLA, q_lora_rank=20, n_routed_experts=6, n_shared_experts=1,
                      routed_scaling_factor=1.8)),
})
# What the converter knows under other names than transformers of today writes.
OLDER_LAYERS = {"granitemoehybrid": {LINEAR: "mamba", FULL: "attention"}}
LETTERS = {LINEAR: "M", FULL: "*", "mlp": "-", "moe": "E"}


def make(cls, keywords, seed):
    torch.manual_seed(seed)
    how = dict(dtype=torch.float32, attn_implementation="eager", experts_implementation="eager")
    config = getattr(tf, cls)(**keywords)
    try:
        model = tf.AutoModelForCausalLM.from_config(config, **how)
    except (TypeError, ValueError):  # a family without experts that can be chosen
        del how["experts_implementation"]
        model = tf.AutoModelForCausalLM.from_config(config, **how)
    buffers = [b for b in model.named_buffers() if b[0].endswith(("correction_bias", "expert_bias", "correction.bias"))]
    with torch.no_grad():
        for name, p in list(model.named_parameters()) + buffers:
            if "A_log" in name:
                p.copy_(torch.log(torch.rand_like(p) * 4 + 0.3))
            elif p.dim() >= 2:
                p.normal_(0, 0.16)
            elif "norm" in name.lower() and name.endswith("weight"):
                p.add_(torch.randn_like(p) * 0.1)
            else:
                p.normal_(0, 0.3)
            p.copy_(p.half().float())
    return model.eval()


def older(parameters):
    """The configuration as the converter reads it."""
    kind = parameters["model_type"]
    if kind in OLDER_LAYERS:
        parameters["layer_types"] = [OLDER_LAYERS[kind][name] for name in parameters["layer_types"]]
    if kind == "nemotron_h":
        letters = "".join(LETTERS[name] for name in parameters["layers_block_type"])
        parameters.update(hybrid_override_pattern=letters, mamba_d_head=parameters["mamba_head_dim"])
        if "E" not in letters:
            for key in ("num_experts_per_tok", "n_routed_experts", "n_group"):
                del parameters[key]
    rope = parameters.get("rope_parameters") or {}
    if kind == "deepseek_v3":
        parameters["scoring_func"] = "sigmoid"
    if kind == "minimax_m2":
        parameters["rotary_dim"] = int(parameters["head_dim"] * rope["partial_rotary_factor"])
    if kind in ("cohere2", "stablelm"):
        parameters["rotary_pct"] = rope.get("partial_rotary_factor", 1.0)
    return parameters


def without_vocabulary(self):
    self.gguf_writer.add_tokenizer_model("none")


def convert(folder, file, kind):
    import gguf
    from conversion import get_model_class
    from conversion.base import ModelBase
    parameters = older(ModelBase.load_hparams(pathlib.Path(folder), False))
    cls = get_model_class(parameters["architectures"][0])
    for base in cls.__mro__:
        if "set_vocab" in base.__dict__:
            base.set_vocab = without_vocabulary
    cls.no_mtp = True
    kind = getattr(gguf.LlamaFileType, kind)
    cls(pathlib.Path(folder), kind, pathlib.Path(file), hparams=parameters, eager=True).write()


def second_opinion(tool, file, golden, path):
    cases = []
    try:
        for case in golden["cases"]:
            rows = logits(tool, file, len(case["last_logits"]), case["ids"])
            argmax = [max(range(len(r)), key=lambda i: (r[i], -i)) for r in rows]
            cases.append({"last_logits": rows[-1], "argmax_each_pos": argmax})
    except Exception as error:
        return f"llama.cpp gives none: {error}"[:200]
    with open(path, "w") as f:
        json.dump({"llamacpp": BUILD, "cases": cases}, f)
        f.write("\n")
    pairs = zip(cases, golden["cases"])
    return max(max(abs(a - b) for a, b in zip(c["last_logits"], g["last_logits"])) / g["std"] for c, g in pairs)


def main(llama, libraries, out, names):
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as tools:
        tool = compile_tool(os.path.abspath(llama), tools, libraries)
        for name in names:
            cls, keywords = MODELS[name]
            path = os.path.join(out, name)
            shutil.rmtree(path, ignore_errors=True)
            os.makedirs(path)
            with tempfile.TemporaryDirectory() as folder:
                model = make(cls, keywords, sum(map(ord, name)))
                model.save_pretrained(folder)
                make_tiny.golden(model, name, path)
                file, wide = os.path.join(path, "model.gguf"), os.path.join(folder, "wide.gguf")
                convert(folder, file, "MOSTLY_F16")
                convert(folder, wide, "ALL_F32")
                golden = json.load(open(os.path.join(path, "golden.json")))
                opinion = second_opinion(tool, wide, golden, os.path.join(path, "llamacpp.json"))
            print(name, os.path.getsize(file), "std", golden["cases"][-1]["std"], "llama.cpp", opinion, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:4], sys.argv[4:] or MODELS)
