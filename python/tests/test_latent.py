"""Latent attention alone against its formula in float64, and in a whole DeepSeek-V3 whose tokens are those of transformers."""

import logging
import math

import pytest

np = pytest.importorskip("numpy", reason="NumPy is not installed here")

from deepseek_model import FORMS, attend, deepseek  # noqa: E402 - it needs NumPy
from layer_bench import GRIDS, ROWS, Bench, close  # noqa: E402
from layer_models import golden, metadata, state_dict  # noqa: E402

HEADS, RANK, ROPE = 3, 16, 8
LENGTHS = [4, 3]
SCALE_OF_MIRAGE = (0.1 * math.log(40) + 1) ** 2 / math.sqrt(192)


def two_requests():
    """Metadata of one pass: four new tokens of a request, three of another."""
    step, tokens = metadata([[1], [2]], 64)
    return [step, tokens, np.ones(2, np.int32), np.array(LENGTHS, np.int32)]


def bench(yr, **options):
    """A bench with queries, compressed rows, rotated keys and a cache, and what attention of them is by a factor."""
    b = Bench(yr, meta_tensors=two_requests(), **options)
    (nope, ns), (turned, ts) = b.given("q_nope", ROWS, HEADS * RANK), b.given("q_pe", ROWS, HEADS * ROPE)
    (latent, cs), (key, ks) = b.given("c_latent", ROWS, RANK), b.given("k_pe", ROWS, ROPE)
    cache = b.kernel.attach_input(np.zeros((2, 64, RANK + ROPE), np.float32), "paged_cache")

    def wanted(scale):
        q = np.concatenate([ns.reshape(ROWS, HEADS, RANK), ts.reshape(ROWS, HEADS, ROPE)], -1)
        scores = np.einsum("qhd,kd->hqk", q, np.concatenate([cs, ks], -1)) * scale
        places = np.repeat(np.arange(2), LENGTHS)
        seen = (places[:, None] == places) & np.tril(np.ones((ROWS, ROWS), bool))
        weights = np.exp(np.where(seen, scores, -np.inf) - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        return np.einsum("hqk,kd->qhd", weights, cs).reshape(ROWS, -1)

    return b, [nope, turned], [latent, key], cache, wanted


@pytest.mark.parametrize("scale", [0.21, None])
@pytest.mark.parametrize("form", FORMS)
def test_latent_attention_equals_its_formula_in_every_form(yr, form, scale):
    found = []
    for grid in GRIDS:
        b, queries, rows, cache, wanted = bench(yr)
        attend(b.kernel, form, queries, rows, cache, b.new("out", HEADS * RANK), (HEADS, RANK, ROPE), scale, (grid, (128, 1, 1)))
        found.append(b.out())
        close(found[-1], wanted(SCALE_OF_MIRAGE if scale is None else scale), (form, grid))
    assert all((other == found[0]).all() for other in found[1:]), "the same bytes whatever the grid"


@pytest.mark.parametrize(("ranks", "length"), [(2, "q_len"), (4, "q_len"), (8, "q_len_real")])
def test_the_forms_of_ranks_are_attention_over_their_heads(yr, ranks, length):
    b, queries, rows, cache, wanted = bench(yr)
    k = b.kernel
    kv = k.new_tensor((64, RANK + ROPE), dtype="float32", name="kv")
    k.mla_kv_gather_layer(*rows, cache, kv, (RANK + ROPE, RANK, 64))
    q = b.new("q", HEADS * (RANK + ROPE))
    k.assemble_q_decode_layer(*queries, q, HEADS)
    halves = [b.new("partial", HEADS * RANK), b.new("lse", HEADS)]
    decode, reduce = (getattr(k, f"mla_mtp_decode_tp{ranks}_{form}") for form in ["layer", "reduce_layer"])
    with pytest.raises(yr.KernelError, match=f"`q`.*{128 // ranks * 576} elements"):
        decode(q, kv, *halves, **{length: 2}, kv_len=64)
    decode(q, kv, *halves, 2, 64, num_heads=HEADS, d_k=RANK + ROPE, d_v=RANK, softmax_scale=0.3)
    reduce(*halves, b.new("out", HEADS * RANK), **{length: 2}, kv_len=64)
    close(b.out(), wanted(0.3), ranks)


def test_the_length_of_queries_may_be_the_last_number(yr):
    b, queries, rows, cache, wanted = bench(yr)
    k = b.kernel
    kv = k.new_tensor((64, RANK + ROPE), dtype="float32", name="kv")
    k.mla_kv_gather_layer(*rows, cache, kv, (RANK + ROPE, RANK, 64))
    q = b.new("q", HEADS * (RANK + ROPE))
    k.assemble_q_decode_layer(*queries, q, HEADS)
    halves = [b.new("partial", HEADS * RANK), b.new("lse", HEADS)]
    k.mla_decode_layer(q, kv, *halves, (HEADS, RANK + ROPE, RANK, 1, 64, 4), softmax_scale=0.3)
    k.mla_reduce_layer(*halves, b.new("out", HEADS * RANK), (HEADS, RANK, 1, 0, 2, 4))
    close(b.out(), wanted(0.3), "all columns, whichever a task of Mirage's has")


def test_what_decides_nothing_is_told_once(yr, caplog):
    caplog.set_level(logging.INFO, logger="yirage")
    b, queries, rows, cache, _ = bench(yr)
    attend(b.kernel, "decode", queries, rows, cache, b.new("out", HEADS * RANK), (HEADS, RANK, ROPE), 0.2)
    told = [record.getMessage() for record in caplog.records]
    assert sum("numbers of splits" in text for text in told) == 1, told


def test_heads_have_matrices_of_their_own_and_pairs_rotate(yr):
    b = Bench(yr)
    (x, xs), (w, ws), (y, ys) = b.given("x", ROWS, 3 * 4), b.given("w", 3, 6, 4), b.given("y", ROWS, 2 * 6)
    angles = np.arange(64)[:, None] * 0.4 ** np.arange(1, 4)
    tables = [b.kernel.attach_input(f(angles).astype(np.float32), n) for f, n in [(np.cos, "cos"), (np.sin, "sin")]]
    b.kernel.linear_bmm_layer(x, w, b.new("product", 18))
    b.kernel.mla_rope_layer(y, *tables, b.new("halves", 12), 6, interleaved=False)
    b.kernel.mla_rope_layer(y, *tables, b.new("neighbours", 12), 6)
    found = {name: tensor.numpy() for name, tensor in b.kernel.run_test_mode().items()}
    close(found["product"], np.einsum("rhk,hnk->rhn", xs.reshape(ROWS, 3, 4), ws).reshape(ROWS, 18), "product")
    cos, sin = np.cos(angles[:ROWS])[:, None], np.sin(angles[:ROWS])[:, None]

    def turned(first, second):
        return first * cos - second * sin, second * cos + first * sin

    heads = ys.reshape(ROWS, 2, 6)
    close(found["halves"], np.concatenate(turned(heads[..., :3], heads[..., 3:]), -1).reshape(ROWS, 12), "halves")
    pairs = np.stack(turned(heads[..., ::2], heads[..., 1::2]), -1)
    close(found["neighbours"], pairs.reshape(ROWS, 12), "neighbours")


def test_what_is_no_latent_attention_is_refused_with_names_and_numbers(yr):
    b, queries, rows, cache, _ = bench(yr)
    k = b.kernel
    kv = k.new_tensor((64, RANK + ROPE), dtype="float32", name="kv")
    q, out = b.new("q", HEADS * (RANK + ROPE)), b.new("out", HEADS * RANK)
    partial, lse = b.new("partial", HEADS * RANK), b.new("lse", HEADS)
    sizes, whole = (HEADS, RANK + ROPE, RANK, 4, 64), (HEADS, RANK, 4, 0, RANK)

    def refused(part, call):
        with pytest.raises(yr.KernelError, match=part):
            call()

    refused("mla_params has 2 numbers", lambda: k.mla_kv_gather_layer(*rows, cache, kv, (24, 16)))
    refused("d_v of mla_params is 8.*have 16", lambda: k.mla_kv_gather_layer(*rows, cache, kv, (24, 8, 64)))
    refused("d_k of mla_params is 25.*have 24", lambda: k.mla_kv_gather_layer(*rows, cache, kv, (25, 16, 64)))
    refused("page_size of mla_params is 32.*have 64", lambda: k.mla_kv_gather_layer(*rows, cache, kv, (24, 16, 32)))
    k.assemble_q_decode_layer(*queries, q, HEADS)
    refused("mla_kv_gather_layer wrote", lambda: k.mla_decode_layer(q, kv, partial, lse, sizes))
    k.mla_kv_gather_layer(*rows, cache, kv, (24, 16, 64))
    refused("d_k is 16 and d_v is 24", lambda: k.mla_decode_layer(q, kv, partial, lse, (HEADS, 16, 24, 4, 64)))
    refused("q_len is 0", lambda: k.mla_decode_layer(q, kv, partial, lse, sizes, q_len=0))
    refused("num_splits is 0", lambda: k.mla_decode_layer(q, kv, partial, lse, (HEADS, 24, 16, 0, 64)))
    refused("finite", lambda: k.mla_decode_layer(q, kv, partial, lse, sizes, softmax_scale=math.inf))
    refused("mla_mtp_decode_layer: `q`", lambda: k.mla_mtp_decode_layer(q, kv, partial, lse, 1, 64))
    refused("one mla_decode_layer wrote", lambda: k.mla_reduce_layer(partial, lse, out, whole))
    k.mla_decode_layer(q, kv, partial, lse, sizes, softmax_scale=0.2)
    refused("2 columns from 15 on", lambda: k.mla_reduce_layer(partial, lse, out, (HEADS, RANK, 4, 15, 2)))
    refused(r"num_heads \* d_v of mla_params is 32", lambda: k.mla_reduce_layer(partial, lse, out, (2, RANK, 4, 0, RANK)))
    refused("d_ckv is 16 and d_v is 8", lambda: k.mla_prefill_absorbed_layer(q, kv, out, (HEADS, 64, 16, 8, 8)))
    k.mla_reduce_layer(partial, lse, out, whole)
    with pytest.raises(TypeError):
        k.mla_decode_layer(q, kv, partial, lse, sizes, softmax_factor=0.2)


@pytest.mark.parametrize(("form", "number"), [("decode", 1), ("mtp_decode", 2), ("prefill", 1), ("absorbed", 2)])
def test_a_deepseek_of_layers_gives_the_tokens_of_transformers(yr, form, number):
    of = golden("deepseek-v3")
    case = of["cases"][number]
    prompt, wanted = case["ids"], case["greedy16"]
    positions = len(prompt) + len(wanted)
    step, tokens = metadata([prompt], positions)
    options = {"max_num_batched_tokens": 16, "rms_norm_eps": of["config"]["rms_norm_eps"]}
    kernel = yr.PersistentKernel(meta_tensors=[step, tokens], max_seq_length=positions, **options)
    deepseek(kernel, of["config"], state_dict(of), 16, positions, form)
    kernel.compile()
    assert kernel().finished and tokens[0].tolist() == prompt + wanted
