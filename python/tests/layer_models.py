"""Models built of layer methods, with the weights of the repository's tiny models, and what transformers says of them."""

import json
import pathlib
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/oracle"))

from counter_rng import weights  # noqa: E402 - it lies there


def golden(name):
    """A tiny model: its configuration, the recipes of its tensors, and cases with transformers' tokens."""
    return json.loads((ROOT / f"crates/yirage-testkit/fixtures/tiny/{name}.json").read_text())


def state_dict(of):
    """Its weights, float32 by name."""
    return {name: weights(of["seed"], name, shape, base, exponent) for name, shape, base, exponent in of["tensors"]}


def metadata(prompts, positions):
    """`[step, tokens]` of these prompts."""
    tokens = np.zeros((len(prompts), positions), np.int64)
    for row, prompt in enumerate(prompts):
        tokens[row, : len(prompt)] = prompt
    return [np.array([len(prompt) - 1 for prompt in prompts], np.int32), tokens]


def rope(config, positions):
    """Cosines and sines as Hugging Face has them: both halves of a row alike."""
    head = config["head_dim"]
    parameters = config.get("rope_parameters") or config
    frequencies = parameters["rope_theta"] ** (-np.arange(0, head, 2) / head)
    angles = np.outer(np.arange(positions), frequencies)
    angles = np.concatenate([angles, angles], axis=1)
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def build(kernel, config, state, rows, positions, end="argmax", layers=True):
    """Attaches the weights of a Llama or Qwen3 to a kernel, and adds its layers."""
    hidden, inner, vocabulary = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    heads, kv_heads, head = config["num_attention_heads"], config["num_key_value_heads"], config["head_dim"]
    attached = {name: kernel.attach_input(array, name) for name, array in state.items()}
    cos, sin = (kernel.attach_input(table, name) for table, name in zip(rope(config, positions), ["cos", "sin"]))
    if not layers:
        return

    def new(name, width, dtype="float32"):
        return kernel.new_tensor(dims=(rows, width), dtype=dtype, name=name)

    # As in Mirage's demonstrations, one tensor of each kind serves all layers.
    ids = kernel.attach_input(np.zeros((rows, 1), np.int64), "input_token")
    x, y = new("embed_out", hidden), new("mlp_out", hidden)
    qkv, attended = new("attn_in", (heads + 2 * kv_heads) * head), new("attn_out", heads * head)
    mid, wide, act = new("attn_proj_out", hidden), new("mlp_mid", 2 * inner), new("silu_mul_out", inner)
    how = {"grid_dim": (2, 1, 1), "block_dim": (128, 1, 1)}
    kernel.embed_layer(input=ids, weight=attached["model.embed_tokens.weight"], output=x, **how)
    for layer in range(config["num_hidden_layers"]):
        of = {
            name.split(".", 3)[3].removesuffix(".weight"): tensor
            for name, tensor in attached.items()
            if name.startswith(f"model.layers.{layer}.")
        }
        projections = [of[f"self_attn.{part}_proj"] for part in "qkv"]
        fused = kernel.fuse_tensors(inputs=projections, fused_dim=0, num_groups=kv_heads, name=f"layer_{layer}_qkv")
        kernel.rmsnorm_linear_layer(
            input=x, weight_norm=of["input_layernorm"], weight_linear=fused, output=qkv, **how
        )
        cache = np.zeros((1, 64, kv_heads, head), np.float32)
        caches = [kernel.attach_input(cache, f"layer_{layer}_{part}_cache") for part in "kv"]
        norms = [of.get("self_attn.q_norm"), of.get("self_attn.k_norm")]
        kernel.paged_attention_layer(qkv, *caches, *norms, cos, sin, attended, **how)
        kernel.linear_with_residual_layer(
            input=attended, weight=of["self_attn.o_proj"], residual=x, output=mid, **how
        )
        gate_up = kernel.shuffle_tensors(
            inputs=[of["mlp.gate_proj"], of["mlp.up_proj"]], shuffled_dim=0, num_groups=2, name=f"layer_{layer}_gate_up"
        )
        kernel.rmsnorm_linear_layer(
            input=mid, weight_norm=of["post_attention_layernorm"], weight_linear=gate_up, output=wide, **how
        )
        down = of["mlp.down_proj"]
        if layer % 2 == 0:
            kernel.silu_mul_linear_with_residual_layer(input=wide, weight=down, residual=mid, output=y, **how)
        else:
            kernel.silu_mul_layer(input=wide, output=act, **how)
            kernel.linear_with_residual_layer(input=act, weight=down, residual=mid, output=y, **how)
        x, y = y, x
    head_weight = attached.get("lm_head.weight", attached["model.embed_tokens.weight"])
    logits, chosen = new("logits", vocabulary), new("output_token", 1, "int64")
    kernel.rmsnorm_linear_layer(x, attached["model.norm.weight"], head_weight, logits, **how)
    if end == "halves":
        halves = (new("argmax_value", 96), new("argmax_index", 96, "int64"))
        kernel.argmax_partial_layer(input=logits, output=halves, **how)
        kernel.argmax_reduce_layer(input=halves, output=chosen, **how)
    elif end == "argmax":
        kernel.argmax_layer(input=logits, output=chosen, **how)
    else:
        kernel.sampling_layer(logits, chosen, seed=end, **how)


def made(yr, name, prompts, positions, *, end="argmax", compiled=True, meta=None, layers=True, **options):
    """A kernel of a tiny model for these prompts, and its metadata."""
    of = golden(name)
    meta = meta or metadata(prompts, positions)
    eps = of["config"]["rms_norm_eps"]
    kernel = yr.PersistentKernel(meta_tensors=meta, max_seq_length=positions, rms_norm_eps=eps, **options)
    rows = options.get("max_num_batched_tokens", 64)
    build(kernel, of["config"], state_dict(of), rows, positions, end, layers)
    if compiled:
        kernel.compile()
    return kernel, meta


def alone(yr, name, prompt, positions, **options):
    """What stands behind a prompt that has the kernel to itself."""
    kernel, (step, tokens) = made(yr, name, [prompt], positions, **options)
    assert kernel().finished
    return tokens[0, len(prompt) : step[0] + 1].tolist()
