"""Each layer method of a persistent kernel alone, in test mode, against its formula in float64; the same over grids."""

import pytest

np = pytest.importorskip("numpy", reason="NumPy is not installed here")

from layer_bench import GRIDS, ROWS, Bench, close, norm, silu  # noqa: E402 - it needs NumPy


def products(b, launch):
    (x, xs), (n, ns) = b.given("x", ROWS, 24), b.given("norm", 24)
    (w, ws), (r, rs) = b.given("w", 16, 24), b.given("r", ROWS, 16)
    k = b.kernel
    return {
        "rmsnorm": lambda: (k.rmsnorm_layer(x, n, b.new("out", 24), *launch), norm(xs, ns)),
        "rmsnorm_linear": lambda: (k.rmsnorm_linear_layer(x, n, w, b.new("out", 16), *launch), norm(xs, ns) @ ws.T),
        "linear": lambda: (k.linear_layer(x, w, b.new("out", 16), *launch), xs @ ws.T),
        "splitk_linear": lambda: (k.splitk_linear_layer(x, w, b.new("out", 16), *launch), xs @ ws.T),
        "linear_with_residual": lambda: (
            k.linear_with_residual_layer(x, w, r, b.new("out", 16), *launch),
            rs + xs @ ws.T,
        ),
    }


def plain(b, launch):
    (x, xs), (y, ys), (gated, gs) = b.given("x", ROWS, 8), b.given("y", ROWS, 8), b.given("gated", ROWS, 16)
    (w, ws) = b.given("w", 6, 8)
    (r, rs) = b.given("r", ROWS, 6)
    k, act = b.kernel, silu(gs[:, :8]) * gs[:, 8:]
    buffer = k.new_tensor((1, ROWS, 8), dtype="float32", name="buffer")
    return {
        "elementwise_add": lambda: (k.elementwise_add_layer(x, y, b.new("out", 8), *launch), xs + ys),
        "identity": lambda: (k.identity_layer(x, b.new("out", 8), *launch, dependent_tensor=y), xs),
        "allreduce": lambda: (k.allreduce_layer(x, buffer, b.new("out", 8), *launch), xs),
        "silu_mul": lambda: (k.silu_mul_layer(gated, b.new("out", 8)), act),
        "silu_mul_linear_with_residual": lambda: (
            k.silu_mul_linear_with_residual_layer(gated, w, r, b.new("out", 6), *launch),
            rs + act @ ws.T,
        ),
    }


CASES = [(products, name) for name in ["rmsnorm", "rmsnorm_linear", "linear", "splitk_linear", "linear_with_residual"]]
CASES += [
    (plain, name)
    for name in ["elementwise_add", "identity", "allreduce", "silu_mul", "silu_mul_linear_with_residual"]
]


@pytest.mark.parametrize(("family", "name"), CASES, ids=[name for _, name in CASES])
def test_layer_methods_equal_their_formulas(yr, family, name):
    found = []
    for grid in GRIDS:
        b = Bench(yr)
        none, wanted = family(b, (grid, (128, 1, 1)))[name]()
        assert none is None
        found.append(b.out())
        close(found[-1], wanted, (name, grid))
    assert all((other == found[0]).all() for other in found[1:]), "the same bytes whatever the grid"


def test_gate_and_up_alternate_as_the_grid_or_their_weight_says(yr):
    b = Bench(yr)
    x, xs = b.given("x", ROWS, 16)
    b.kernel.silu_mul_layer(x, b.new("out", 8), grid_dim=(2, 1, 1))
    parts = xs.reshape(ROWS, 2, 2, 4)
    close(b.out(), (silu(parts[:, :, 0]) * parts[:, :, 1]).reshape(ROWS, 8), "two groups")
    b = Bench(yr)
    (x, xs), (g, gs), (u, us) = b.given("x", ROWS, 6), b.given("gate", 8, 6), b.given("up", 8, 6)
    fused = b.kernel.shuffle_tensors([g, u], 0, 4, "fused")
    assert fused.dims == (16, 6) and fused.num_dims == 2 and fused.dim(0) == 16
    wide = b.new("wide", 16)
    b.kernel.linear_layer(x, fused, wide)
    b.kernel.silu_mul_layer(wide, b.new("out", 8))
    close(b.out(), silu(xs @ gs.T) * (xs @ us.T), "a fused weight")


def test_embedding_reads_the_tokens_of_the_pass(yr):
    tokens = np.zeros((1, 64), np.int64)
    b = Bench(yr, meta_tensors=[np.zeros(1, np.int32), tokens])
    table, values = b.given("table", 20, 12)
    b.kernel.embed_layer(b.kernel.attach_input(tokens, "ids"), table, b.new("out", 12))
    for first in [1, 9]:
        tokens[0, :ROWS] = np.arange(first, first + ROWS)
        np.testing.assert_array_equal(b.out(), values[first : first + ROWS].astype(np.float32))


@pytest.mark.parametrize("method", ["attention_layer", "single_batch_extend_attention_layer", "paged_attention_layer"])
@pytest.mark.parametrize("normed", [False, True])
def test_attention_equals_its_formula(yr, method, normed):
    kv_heads, group, d = 2, 2, 8
    b = Bench(yr)
    x, xs = b.given("qkv", ROWS, kv_heads * (group + 2) * d)
    (q_norm, qn), (k_norm, kn) = b.given("q_norm", d), b.given("k_norm", d)
    angles = np.arange(64)[:, None] * 0.3 ** (np.arange(d) % (d // 2) + 1)
    cos, sin = (b.kernel.attach_input(f(angles).astype(np.float32), n) for f, n in [(np.cos, "cos"), (np.sin, "sin")])
    caches = [b.kernel.attach_input(np.zeros((1, 64, kv_heads, d), np.float32), name) for name in "kv"]
    norms = [q_norm, k_norm] if normed else [None, None]
    getattr(b.kernel, method)(x, *caches, *norms, cos, sin, b.new("out", kv_heads * group * d))
    heads = xs.reshape(ROWS, kv_heads, group + 2, d)

    def turned(values, weight):
        values = norm(values, weight) if normed else values
        half = np.concatenate([-values[..., d // 2 :], values[..., : d // 2]], -1)
        shape = (ROWS,) + (1,) * (values.ndim - 2) + (d,)
        return values * np.cos(angles[:ROWS]).reshape(shape) + half * np.sin(angles[:ROWS]).reshape(shape)

    q, k, v = turned(heads[:, :, :group], qn), turned(heads[:, :, group], kn), heads[:, :, group + 1]
    scores = np.einsum("qhgd,khd->hgqk", q, k) / np.sqrt(d)
    scores = np.where(np.tril(np.ones((ROWS, ROWS), bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    close(b.out(), np.einsum("hgqk,khd->qhgd", weights, v).reshape(ROWS, -1), method)


@pytest.mark.parametrize("routing", ["softmax", "sigmoid"])
def test_experts_equal_their_formula(yr, routing):
    experts, top_k, inner, width = 6, 2, 5, 8
    b = Bench(yr)
    (x, xs), (scores, ss), (r, rs) = b.given("x", ROWS, width), b.given("scores", ROWS, experts), b.given("r", ROWS, width)
    (w13, ups), (w2, downs) = b.given("w13", experts, 2 * inner, width), b.given("w2", experts, width, inner)
    k, chosen = b.kernel, (b.new("weights", top_k), b.new("indices", top_k))
    mask = k.new_tensor((experts + 1,), dtype="int32", name="mask")
    if routing == "softmax":
        k.moe_topk_softmax_routing_layer(scores, (*chosen, mask))
    else:
        k.moe_topk_sigmoid_routing_layer(scores, None, chosen, num_groups=1, topk_group=1, routed_scaling_factor=2.5)
    wide, act = b.new("wide", top_k, 2 * inner), b.new("act", top_k, inner)
    back, out = b.new("back", top_k, width), b.new("out", width)
    k.moe_w13_linear_layer(x, w13, chosen[1], mask, wide)
    k.moe_silu_mul_layer(wide, act)
    k.moe_w2_linear_layer(act, w2, chosen[1], None, back)
    k.moe_mul_sum_add_layer(back, chosen[0], r, out)
    wanted = rs.copy()
    for row in range(ROWS):
        best = np.argsort(-ss[row])[:top_k]
        parts = np.exp(ss[row, best]) if routing == "softmax" else 2.5 / (1 + np.exp(-ss[row, best]))
        parts = parts / parts.sum() * (1 if routing == "softmax" else 2.5)
        for part, expert in zip(parts, best, strict=True):
            both = ups[expert] @ xs[row]
            wanted[row] += part * downs[expert] @ (silu(both[:inner]) * both[inner:])
    close(b.out(), wanted, routing)


def test_the_largest_logit_is_chosen_whole_and_in_halves(yr):
    for halves in [False, True]:
        b = Bench(yr)
        x, xs = b.given("x", ROWS, 50)
        out = b.new("out", 1, dtype="int64")
        if halves:
            parts = (b.new("value", 4), b.new("index", 4, dtype="int64"))
            b.kernel.argmax_partial_layer(x, parts)
            b.kernel.argmax_reduce_layer(parts, out)
        else:
            b.kernel.argmax_layer(x, out)
        assert b.out()[:, 0].tolist() == xs.argmax(1).tolist()
    draws = []
    for seed in [5, 5, 6]:
        b = Bench(yr, sampling_params=yr.SamplingParams(temperature=2.0))
        b.kernel.sampling_sm100_layer(b.given("x", ROWS, 50)[0], b.new("out", 1, dtype="int64"), seed=seed)
        draws.append(b.out()[:, 0].tolist())
    assert draws[0] == draws[1] != draws[2]


def test_guesses_and_what_of_them_is_right(yr):
    prompts = [[5, 6, 7, 5, 6], [1, 2, 3], [9, 9, 9, 9]]
    tokens = np.zeros((3, 64), np.int64)
    for row, prompt in enumerate(prompts):
        tokens[row, : len(prompt)] = prompt
    step = np.array([len(prompt) - 1 for prompt in prompts], np.int32)
    b = Bench(yr, meta_tensors=[step, tokens])
    k, config = b.kernel, yr.PromptLookupConfig(ngram_size=2, spec_length=3)
    guesses = k.prompt_lookup_spec_handler(config, k.attach_input(tokens, "tokens"), (96, 1, 1), (128, 1, 1))
    targets = k.attach_input(np.array([[7, 5, 8, 8], [4, 4, 4, 4], [9, 3, 3, 3]]), "targets")
    assert k.verify_layer_dispatcher(config, guesses, targets).dims == (3, 2)
    found = k.run_test_mode()
    # By hand, from the rule: the first earlier place of the last two tokens, -1 where there is none.
    assert found["spec_tokens"].tolist() == [[6, 7, 5, 6], [3, -1, -1, -1], [9, 9, 9, -1]]
    assert found["verify_out"].tolist() == [[2, 8], [0, 4], [1, 3]]


def test_layers_write_into_attached_arrays_where_they_lie(yr):
    b = Bench(yr)
    x, xs = b.given("x", ROWS, 8)
    for dtype, tolerance in [(np.float32, 0), (np.float16, 1e-3)]:
        wide = np.full((ROWS, 16), -7, dtype)
        out = b.kernel.attach_input(wide[:, ::2], f"out_{np.dtype(dtype)}")
        b.kernel.identity_layer(x, out)
        b.kernel.run_test_mode()
        np.testing.assert_allclose(wide[:, ::2], xs, rtol=tolerance)
        assert (wide[:, 1::2] == -7).all()
    locked = np.zeros((ROWS, 8), np.float32)
    locked.flags.writeable = False
    b.kernel.identity_layer(x, b.kernel.attach_input(locked, "locked"))
    with pytest.raises(yr.ArrayError, match="did not take"):
        b.kernel.run_test_mode()


def test_what_does_not_fit_is_refused_with_names_and_sizes(yr):
    b = Bench(yr)
    k, (x, _), (w, _) = b.kernel, b.given("x", ROWS, 8), b.given("w", 4, 6)
    out, new, fewer = b.new("out", 4), b.new("new", 8), k.new_tensor((3, 8), dtype="float32", name="fewer")
    one = b.new("one", 1, dtype="int64")
    for call, part in [
        (lambda: k.linear_layer(x, w, out), "linear_layer: `x`.*6 elements"),
        (lambda: k.rmsnorm_layer(x, w, out), "rmsnorm_layer: `w`.*8 elements"),
        (lambda: k.identity_layer(new, x), "`new` is read before a layer writes it"),
        (lambda: k.identity_layer(x, fewer), "same rows"),
        (lambda: k.identity_layer(x, new, (0, 1, 1)), "grid_dim is"),
        (lambda: k.identity_layer(x, new, (1, 1, 1), (1024, 2, 1)), "block_dim is"),
        (lambda: k.argmax_layer(x, new), "rows of 1 elements"),
        (lambda: k.argmax_reduce_layer((x, x), one), "argmax_partial_layer"),
        (lambda: k.argmax_partial_layer(x, [out]), "1 tensors are given, two are wanted"),
        (lambda: k.embed_layer(x, w, out, input_source=2), "input_source is 2"),
    ]:
        with pytest.raises(yr.KernelError, match=part):
            call()
    with pytest.raises(yr.KernelError, match="world_size is 1"):
        k.allreduce_layer(x, k.new_tensor((2, ROWS, 8), dtype="float32", name="buffer"), new)
    with pytest.raises(TypeError):
        k.linear_layer(x, np.zeros((4, 8), np.float32), out)
