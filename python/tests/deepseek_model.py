"""A DeepSeek-V3 of layer methods, with latent attention in each of its forms."""

import numpy as np

from layer_models import rope

FORMS = ["decode", "mtp_decode", "prefill", "absorbed"]


class Named:
    """Tensors that layers write, one of each name for all layers."""

    def __init__(self, kernel):
        self.kernel, self.known = kernel, {}

    def __call__(self, name, dims, dtype="float32"):
        if name not in self.known:
            self.known[name] = self.kernel.new_tensor(dims, dtype=dtype, name=name)
        return self.known[name]


def attend(kernel, form, queries, rows, cache, out, sizes, scale, launch=(), new=None):
    """Gathers and attends in one of the forms; the sizes are heads, compressed elements and rotated ones."""
    heads, rank, rotated = sizes
    whole, tokens = rank + rotated, queries[0].dims[0]
    new = new or Named(kernel)
    gather = (whole, rank, cache.dims[1])
    if form == "prefill":
        apart = [new("ckv_sep", (64, rank)), new("kpe_sep", (64, rotated))]
        kernel.mla_kv_gather_split_layer(*rows, cache, *apart, gather, *launch)
        params = (heads, 64, rank, rotated, rank)
        kernel.mla_prefill_layer(*queries, *apart, out, params, *launch, softmax_scale=scale)
        return
    kv = new("contiguous_kv", (64, whole))
    kernel.mla_kv_gather_layer(*rows, cache, kv, gather, *launch)
    q = new("q_nope_pe", (tokens, heads, whole))
    kernel.assemble_q_decode_layer(*queries, q, heads, *launch)
    if form == "absorbed":
        kernel.mla_prefill_absorbed_layer(q, kv, out, (heads, 64, rank, rotated, rank), *launch, softmax_scale=scale)
        return
    # As many splits as a GPU might have: they are not rows.
    halves = [new("partial", (tokens * 4, heads * rank)), new("lse", (tokens * 4, heads))]
    if form == "decode":
        kernel.mla_decode_layer(q, kv, *halves, (heads, whole, rank, 4, 64), *launch, softmax_scale=scale)
        kernel.mla_reduce_layer(*halves, out, (heads, rank, 4, 0, rank), *launch)
    else:
        of = {"num_heads": heads, "d_k": whole, "d_v": rank}
        kernel.mla_mtp_decode_layer(q, kv, *halves, 2, 64, softmax_scale=scale, **of)
        kernel.mla_mtp_reduce_layer(*halves, out, 2, 64)


def deepseek(kernel, config, state, rows, positions, form):
    """Attaches the weights of a DeepSeek-V3 to a kernel, and adds its layers."""
    new = Named(kernel)
    hidden, heads, rank = config["hidden_size"], config["num_attention_heads"], config["kv_lora_rank"]
    nope, turn, v, q_rank = (config[n] for n in ["qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "q_lora_rank"])

    def tensor(name, *sizes):
        return new(name, (rows, *sizes))

    def weight(name):
        return kernel.attach_input(state[name], name)

    def attach(name, array):
        return kernel.attach_input(np.ascontiguousarray(array), name)

    tables = [kernel.attach_input(table, name) for table, name in zip(rope(config, positions), ["cos", "sin"], strict=True)]
    ids = kernel.attach_input(np.zeros((rows, 1), np.int64), "input_token")
    x, mid, y = tensor("x", hidden), tensor("mid", hidden), tensor("y", hidden)
    kernel.embed_layer(ids, weight("model.embed_tokens.weight"), x)
    for layer in range(config["num_hidden_layers"]):
        of = f"model.layers.{layer}."
        norm = weight(f"{of}input_layernorm.weight")
        part = {n: f"{of}self_attn.{n}.weight" for n in ["q_a_proj", "q_a_layernorm", "kv_a_layernorm", "o_proj"]}
        kernel.rmsnorm_linear_layer(x, norm, weight(part["q_a_proj"]), tensor("q_a", q_rank))
        kernel.rmsnorm_layer(tensor("q_a", q_rank), weight(part["q_a_layernorm"]), tensor("q_a_normed", q_rank))
        q_b = state[f"{of}self_attn.q_b_proj.weight"].reshape(heads, nope + turn, q_rank)
        wide = attach(f"{layer}.q_nope", q_b[:, :nope].reshape(-1, q_rank))
        narrow = attach(f"{layer}.q_rope", q_b[:, nope:].reshape(-1, q_rank))
        kernel.linear_layer(tensor("q_a_normed", q_rank), wide, tensor("q_nope", heads * nope))
        kernel.linear_layer(tensor("q_a_normed", q_rank), narrow, tensor("q_pe", heads * turn))
        kernel.mla_rope_layer(tensor("q_pe", heads * turn), *tables, tensor("q_turned", heads * turn), turn)
        kv_b = state[f"{of}self_attn.kv_b_proj.weight"].reshape(heads, nope + v, rank)
        keys, values = attach(f"{layer}.keys", kv_b[:, :nope].transpose(0, 2, 1)), attach(f"{layer}.values", kv_b[:, nope:])
        kernel.linear_bmm_layer(tensor("q_nope", heads * nope), keys, tensor("q_latent", heads * rank))
        kv_a = state[f"{of}self_attn.kv_a_proj_with_mqa.weight"]
        row, key = attach(f"{layer}.kv_a", kv_a[:rank]), attach(f"{layer}.k_rope", kv_a[rank:])
        kernel.rmsnorm_linear_layer(x, norm, row, tensor("c_raw", rank))
        kernel.rmsnorm_layer(tensor("c_raw", rank), weight(part["kv_a_layernorm"]), tensor("c_latent", rank))
        kernel.rmsnorm_linear_layer(x, norm, key, tensor("k_straight", turn))
        kernel.mla_rope_layer(tensor("k_straight", turn), *tables, tensor("k_pe", turn), turn)
        cache = attach(f"{layer}.cache", np.zeros((4, 64, rank + turn), np.float32))
        queries = [tensor("q_latent", heads * rank), tensor("q_turned", heads * turn)]
        compressed, attended = [tensor("c_latent", rank), tensor("k_pe", turn)], tensor("attended", heads * rank)
        scale = 1 / np.sqrt(nope + turn)
        attend(kernel, form, queries, compressed, cache, attended, (heads, rank, turn), scale, new=new)
        kernel.linear_bmm_layer(attended, values, tensor("back", heads * v))
        kernel.linear_with_residual_layer(tensor("back", heads * v), weight(part["o_proj"]), x, mid)
        norm = weight(f"{of}post_attention_layernorm.weight")
        if layer < config["first_k_dense_replace"]:
            inner = config["intermediate_size"]
            parts = [weight(f"{of}mlp.{name}_proj.weight") for name in ["gate", "up"]]
            fused = kernel.fuse_tensors(parts, 0, 1, f"{layer}.gate_up")
            kernel.rmsnorm_linear_layer(mid, norm, fused, tensor("wide", 2 * inner))
            down = weight(f"{of}mlp.down_proj.weight")
            kernel.silu_mul_linear_with_residual_layer(tensor("wide", 2 * inner), down, mid, y)
        else:
            experts(kernel, config, state, f"{of}mlp.", norm, tensor, weight, mid, y)
        x, y = y, x
    logits, chosen = tensor("logits", config["vocab_size"]), new("output_token", (rows, 1), "int64")
    kernel.rmsnorm_linear_layer(x, weight("model.norm.weight"), weight("lm_head.weight"), logits)
    kernel.argmax_layer(logits, chosen)


def experts(kernel, config, state, of, norm, tensor, weight, mid, out):
    """Experts that are chosen from groups with a bias, beside a shared one."""
    count, top_k = config["n_routed_experts"], config["num_experts_per_tok"]
    inner, hidden = config["moe_intermediate_size"], config["hidden_size"]
    normed, scores = tensor("moe_normed", hidden), tensor("moe_scores", count)
    kernel.rmsnorm_layer(mid, norm, normed)
    kernel.linear_layer(normed, weight(f"{of}gate.weight"), scores)
    chosen = [tensor("moe_weights", top_k), tensor("moe_indices", top_k)]
    kernel.moe_topk_sigmoid_routing_layer(
        scores,
        weight(f"{of}gate.e_score_correction_bias"),
        chosen,
        num_groups=config["n_group"],
        topk_group=config["topk_group"],
        routed_scaling_factor=config["routed_scaling_factor"],
    )
    every = [{n: state[f"{of}experts.{e}.{n}_proj.weight"] for n in ["gate", "up", "down"]} for e in range(count)]
    w13 = kernel.attach_input(np.stack([np.concatenate([e["gate"], e["up"]]) for e in every]), f"{of}w13")
    w2 = kernel.attach_input(np.stack([e["down"] for e in every]), f"{of}w2")
    wide, act, back = tensor("moe_wide", top_k, 2 * inner), tensor("moe_act", top_k, inner), tensor("moe_back", top_k, hidden)
    kernel.moe_w13_linear_layer(normed, w13, chosen[1], None, wide)
    kernel.moe_silu_mul_layer(wide, act)
    kernel.moe_w2_linear_layer(act, w2, chosen[1], None, back)
    parts = [weight(f"{of}shared_experts.{name}_proj.weight") for name in ["gate", "up"]]
    fused = kernel.fuse_tensors(parts, 0, 1, f"{of}shared_gate_up")
    shared, beside = tensor("shared_wide", 2 * inner), tensor("shared_out", hidden)
    kernel.linear_layer(normed, fused, shared)
    kernel.silu_mul_linear_with_residual_layer(shared, weight(f"{of}shared_experts.down_proj.weight"), mid, beside)
    kernel.moe_mul_sum_add_layer(back, chosen[0], beside, out)
