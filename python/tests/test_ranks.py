"""Ranks in one process: each has its own heads and its own part of every feed-forward layer, and their tokens are those of one
rank and of transformers."""

import logging

import pytest

np = pytest.importorskip("numpy", reason="NumPy is not installed here")

from layer_models import alone, golden, metadata, rope, state_dict  # noqa: E402 - it needs NumPy


def rank(yr, own, world, meta, positions, rows=16, layers=True, **options):
    """One rank of a Llama of layer methods."""
    of = golden("llama")
    config, state = of["config"], state_dict(of)
    options = {"max_num_batched_tokens": rows, "rms_norm_eps": config["rms_norm_eps"], **options}
    kernel = yr.PersistentKernel(
        world_size=world, mpi_rank=own, meta_tensors=meta, max_seq_length=positions, **options
    )
    hidden, inner = config["hidden_size"], config["intermediate_size"] // world
    heads, kv_heads = config["num_attention_heads"] // world, config["num_key_value_heads"] // world
    head = config["head_dim"]

    def part(name):
        array = state[name]
        if any(f".{of}_proj." in name for of in ["q", "k", "v", "gate", "up"]):
            return np.split(array, world)[own]
        if ".o_proj." in name or ".down_proj." in name:
            return np.split(array, world, axis=1)[own]
        return array

    attached = {name: kernel.attach_input(part(name), name) for name in state}
    cos, sin = (kernel.attach_input(table, name) for table, name in zip(rope(config, positions), ["cos", "sin"], strict=True))
    if not layers:
        return kernel

    def new(name, *sizes, dtype="float32"):
        return kernel.new_tensor((rows, *sizes), dtype=dtype, name=name)

    ids = kernel.attach_input(np.zeros((rows, 1), np.int64), "input_token")
    x, y, mid = new("x", hidden), new("y", hidden), new("mid", hidden)
    share, whole = new("share", hidden), new("whole", hidden)
    buffer = kernel.new_tensor((world, rows, hidden), dtype="float32", name="buffer")
    qkv, attended = new("qkv", (heads + 2 * kv_heads) * head), new("attended", heads * head)
    wide, act = new("wide", 2 * inner), new("act", inner)
    kernel.embed_layer(ids, attached["model.embed_tokens.weight"], x)
    for layer in range(config["num_hidden_layers"]):
        of = {
            name.split(".", 3)[3].removesuffix(".weight"): tensor
            for name, tensor in attached.items()
            if name.startswith(f"model.layers.{layer}.")
        }
        fused = kernel.fuse_tensors([of[f"self_attn.{p}_proj"] for p in "qkv"], 0, kv_heads, f"{layer}.qkv")
        kernel.rmsnorm_linear_layer(x, of["input_layernorm"], fused, qkv)
        cache = np.zeros((1, 64, kv_heads, head), np.float32)
        caches = [kernel.attach_input(cache, f"{layer}.{p}_cache") for p in "kv"]
        kernel.paged_attention_layer(qkv, *caches, None, None, cos, sin, attended)
        kernel.linear_layer(attended, of["self_attn.o_proj"], share)
        kernel.allreduce_layer(share, buffer, whole)
        kernel.elementwise_add_layer(x, whole, mid)
        fused = kernel.fuse_tensors([of["mlp.gate_proj"], of["mlp.up_proj"]], 0, 1, f"{layer}.gate_up")
        kernel.rmsnorm_linear_layer(mid, of["post_attention_layernorm"], fused, wide)
        kernel.silu_mul_layer(wide, act)
        kernel.linear_layer(act, of["mlp.down_proj"], share)
        kernel.allreduce_layer(share, buffer, whole)
        kernel.elementwise_add_layer(mid, whole, y)
        x, y = y, x
    logits, chosen = new("logits", config["vocab_size"]), new("output_token", 1, dtype="int64")
    last = attached.get("lm_head.weight", attached["model.embed_tokens.weight"])
    kernel.rmsnorm_linear_layer(x, attached["model.norm.weight"], last, logits)
    kernel.argmax_layer(logits, chosen)
    return kernel


def joined(yr, world, meta, positions, **options):
    return yr.PersistentKernel.ranks([rank(yr, own, world, meta, positions, **options) for own in range(world)])


@pytest.mark.parametrize("world", [1, 2])
@pytest.mark.parametrize("number", [0, 1, 2])
def test_ranks_give_the_tokens_of_transformers(yr, world, number, caplog):
    caplog.set_level(logging.INFO, logger="yirage")
    case = golden("llama")["cases"][number]
    prompt, wanted = case["ids"], case["greedy16"]
    positions = len(prompt) + len(wanted)
    step, tokens = metadata([prompt], positions)
    kernel = joined(yr, world, [step, tokens], positions)
    kernel.compile()
    assert kernel().finished
    assert tokens[0].tolist() == prompt + wanted and step.tolist() == [positions - 1]
    told = [record.getMessage() for record in caplog.records]
    assert sum("2 ranks run in one process" in text for text in told) == (world == 2), told


def test_a_kernel_of_ranks_batches_requests_and_is_saved(yr, tmp_path):
    prompts = [[3 + (t * 5 + i) % 240 for t in range(3 + 8 * i)] for i in range(4)]
    options = {"rows": 8, "max_num_batched_requests": 2}
    meta = metadata(prompts, 48)
    kernel = joined(yr, 2, meta, 48, **options)
    kernel.compile(output_dir=tmp_path)
    kernel()
    for row in [0, 3]:
        assert meta[1][row, len(prompts[row]) :].tolist() == alone(yr, "llama", prompts[row], 48)
    again = metadata(prompts, 48)
    loaded = joined(yr, 2, again, 48, layers=False, **options)
    loaded.load_mpk_kernel(tmp_path)
    loaded()
    assert (again[1] == meta[1]).all() and loaded.plan_counts()["compiled"] == 0
    loaded.load_new_request(0, prompts[1])
    loaded()
    assert again[1][0].tolist() == again[1][1].tolist(), "the arrays of rank 0 are written"


def summand(yr, world, own, values, out=None, **options):
    """A rank in test mode with its part of a sum."""
    kernel = yr.PersistentKernel(world_size=world, mpi_rank=own, test_mode=True, max_seq_length=8, **options)
    x = kernel.attach_input(np.asarray(values, np.float32).reshape(2, 3), "x")
    copy = kernel.new_tensor((2, 3), dtype="float32", name="copy")
    out = kernel.new_tensor((2, 3), dtype="float32", name="out") if out is None else kernel.attach_input(out, "out")
    category = "nvshmem_tensor" if world > 1 else "cuda_tensor"
    buffer = kernel.new_tensor((world, 2, 3), dtype="float32", name="buffer", io_category=category)
    kernel.identity_layer(x, copy)
    kernel.allreduce_layer(copy, buffer, out)
    return kernel


def test_a_sum_over_ranks_is_in_their_order(yr):
    # Other orders do not give this to the bit.
    parts = np.array(
        [[1e8, 1.0, 0.1, 3.0, 1e-3, 7.0], [1.0, 1e8, 0.2, -3.0, 1e-8, 0.5], [-1e8, -1e8, 0.3, 1e-7, 1.0, 1.0]], np.float32
    )
    out = np.zeros((2, 3), np.float32)
    kernel = yr.PersistentKernel.ranks([summand(yr, 3, own, parts[own], out if own == 0 else None) for own in range(3)])
    found = kernel.run_test_mode()
    wanted = ((parts[0] + parts[1]) + parts[2]).reshape(2, 3)
    assert [name for name in found if name.endswith(".out")] == ["rank0.out"]
    assert (found["rank0.out"].numpy() == wanted).all()
    assert (out == wanted).all(), "what was attached to rank 0 is written where it lies"


def test_ranks_that_are_no_kernel_together_are_refused(yr):
    values = [0.5] * 6

    def refused(class_, part, kernels):
        with pytest.raises(class_, match=part):
            yr.PersistentKernel.ranks(kernels)

    refused(yr.OptionError, "a kernel of each rank", [])
    refused(yr.OptionError, "1 builders are given", [summand(yr, 2, 0, values)])
    refused(yr.OptionError, "mpi_rank 0 for this one", [summand(yr, 2, 1, values), summand(yr, 2, 0, values)])
    refused(yr.OptionError, "mpi_rank", [summand(yr, 2, 0, values), summand(yr, 2, 1, values, rms_norm_eps=1e-5)])
    other = yr.PersistentKernel(world_size=2, mpi_rank=1, max_seq_length=8)
    refused(yr.OptionError, "test_mode of rank 1 is false", [summand(yr, 2, 0, values), other])
    first = summand(yr, 2, 0, values)
    refused(yr.KernelError, "rank 1 is that of rank 0", [first, first])
    tokens = np.arange(8, dtype=np.int64).reshape(1, 8)
    second = summand(yr, 2, 1, values, meta_tensors=[np.array([3], np.int32), tokens])
    refused(yr.ArrayError, "rank 1 has another", [first, second])
    with pytest.raises(yr.KernelError, match="finalized"):
        first.run_test_mode()
    longer = summand(yr, 2, 1, values)
    longer.identity_layer(
        longer.attach_input(np.ones((2, 3), np.float32), "y"), longer.new_tensor((2, 3), dtype="float32", name="z")
    )
    refused(yr.KernelError, "layer 2 of rank 1 is identity_layer", [summand(yr, 2, 0, values), longer])


def test_a_rank_alone_is_told_how_it_is_joined(yr):
    with pytest.raises(yr.Unsupported, match="rank 1 of 2.*PersistentKernel.ranks"):
        summand(yr, 2, 1, [0.5] * 6).run_test_mode()
    meta = metadata([[1, 2]], 16)
    alone_of_two = rank(yr, 0, 2, meta, 16)
    with pytest.raises(yr.Unsupported, match="rank 0 of 2"):
        alone_of_two.compile()
    # It is still what it was.
    kernel = yr.PersistentKernel.ranks([alone_of_two, rank(yr, 1, 2, meta, 16)])
    kernel.compile()
    assert kernel().finished
    with pytest.raises(yr.KernelError, match="finalized"):
        alone_of_two.compile()
    whole = joined(yr, 1, metadata([[1, 2]], 16), 16)
    whole.compile()
    with pytest.raises(yr.KernelError, match="compiled"):
        yr.PersistentKernel.ranks([whole])
