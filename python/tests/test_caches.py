"""Caches that are attached, in test mode: earlier positions are read from them, and those of the pass are written."""

import logging

import pytest

np = pytest.importorskip("numpy", reason="NumPy is not installed here")

from layer_bench import ROWS, close  # noqa: E402 - it needs NumPy
from layer_models import golden, made  # noqa: E402

KV, GROUP, D = 2, 2, 8
WIDTH = KV * (GROUP + 2) * D
ANGLES = np.arange(64)[:, None] * 0.3 ** (np.arange(D) % (D // 2) + 1)
METHODS = ["attention_layer", "single_batch_extend_attention_layer", "paged_attention_layer"]


def turned(values, positions):
    half = np.concatenate([-values[..., D // 2 :], values[..., : D // 2]], -1)
    shape = (len(positions),) + (1,) * (values.ndim - 2) + (D,)
    return values * np.cos(ANGLES[positions]).reshape(shape) + half * np.sin(ANGLES[positions]).reshape(shape)


def parts(xs, positions):
    """Rotated queries, rotated keys and values of rows at these positions."""
    heads = xs.reshape(len(xs), KV, GROUP + 2, D)
    return turned(heads[:, :, :GROUP], positions), turned(heads[:, :, GROUP], positions), heads[:, :, GROUP + 1]


def attended(q, k, v, first):
    """Causal attention of queries from position `first` on over all keys, in float64."""
    scores = np.einsum("qhgd,khd->hgqk", q, k) / np.sqrt(D)
    seen = np.arange(len(k))[None, :] <= first + np.arange(len(q))[:, None]
    scores = np.where(seen, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return np.einsum("hgqk,khd->qhgd", weights, v).reshape(len(q), -1)


def attention(yr, method, rows, caches, meta):
    """A kernel with one layer of attention over these caches, and the array of its input."""
    kernel = yr.PersistentKernel(test_mode=True, precision="exact", max_seq_length=64, meta_tensors=meta)
    x = np.zeros((rows, WIDTH), np.float32)
    cos, sin = (kernel.attach_input(f(ANGLES).astype(np.float32), name) for f, name in [(np.cos, "cos"), (np.sin, "sin")])
    k_cache, v_cache = (kernel.attach_input(cache, f"{name}_cache") for cache, name in zip(caches, "kv", strict=True))
    out = kernel.new_tensor((rows, KV * GROUP * D), dtype="float32", name="out")
    getattr(kernel, method)(kernel.attach_input(x, "qkv"), k_cache, v_cache, None, None, cos, sin, out)
    return kernel, x


def ran(kernel):
    return kernel.run_test_mode()["out"].numpy()


def inputs(rows, seed=5):
    return np.random.default_rng(seed).standard_normal((rows, WIDTH)).astype(np.float32)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-6), (np.float16, 2e-3)])
def test_what_a_pass_appends_lies_in_the_caches(yr, method, dtype, tolerance):
    caches = [np.full((2, 32, KV, D), -7, dtype) for _ in "kv"]
    kernel, x = attention(yr, method, ROWS, caches, [np.zeros(1, np.int32), np.zeros((1, 64), np.int64)])
    x[:] = inputs(ROWS)
    ran(kernel)
    _, k, v = parts(x.astype(np.float64), np.arange(ROWS))
    for cache, wanted in zip(caches, [k, v], strict=True):
        np.testing.assert_allclose(cache[0, :ROWS], wanted, rtol=tolerance, atol=tolerance)
        assert (cache[0, ROWS:] == -7).all() and (cache[1] == -7).all(), "nothing else is written"


@pytest.mark.parametrize("method", METHODS)
def test_earlier_positions_are_read_from_the_caches(yr, method):
    earlier, xs = 5, inputs(5 + ROWS)
    q, k, v = parts(xs.astype(np.float64), np.arange(5 + ROWS))
    caches = [np.zeros((1, 64, KV, D), np.float32) for _ in "kv"]
    for cache, values in zip(caches, [k, v], strict=True):
        cache[0, :earlier] = values[:earlier]
    # The last token of the pass stands at `step`.
    kernel, x = attention(yr, method, ROWS, caches, [np.array([earlier + ROWS - 1], np.int32), np.zeros((1, 64), np.int64)])
    x[:] = xs[earlier:]
    close(ran(kernel), attended(q[earlier:], k, v, earlier), method)
    np.testing.assert_allclose(caches[0][0, : earlier + ROWS], k, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("strided", [False, True])
def test_token_by_token_is_the_whole_pass(yr, strided):
    xs = inputs(ROWS)
    whole, x = attention(yr, METHODS[2], ROWS, [np.zeros((1, 64, KV, D), np.float32) for _ in "kv"], None)
    x[:] = xs
    wanted = ran(whole)
    if strided:
        caches = [np.zeros((1, 64, KV, 2 * D), np.float32)[..., ::2] for _ in "kv"]
    else:
        caches = [np.zeros((1, 64, KV, D), np.float32) for _ in "kv"]
    step = np.zeros(1, np.int32)
    kernel, x = attention(yr, METHODS[2], 1, caches, [step, np.zeros((1, 64), np.int64)])
    for row in range(ROWS):
        step[0], x[0] = row, xs[row]
        np.testing.assert_allclose(ran(kernel)[0], wanted[row], rtol=1e-5, atol=1e-5, err_msg=str(row))


def test_requests_have_pages_one_behind_the_other(yr):
    firsts, lengths = [5, 0, 9], [2, 4, 1]
    pages = [0, 2, 3]  # of 4 positions: two pages, one, three
    rng = np.random.default_rng(8)
    caches = [np.full((6, 4, KV, D), 0.5, np.float32) for _ in "kv"]
    new, wanted, kept = [], [], []
    for request, (first, length, page) in enumerate(zip(firsts, lengths, pages, strict=True)):
        xs = rng.standard_normal((first + length, WIDTH)).astype(np.float32)
        q, k, v = parts(xs.astype(np.float64), np.arange(first + length))
        for cache, values in zip(caches, [k, v], strict=True):
            cache.reshape(-1, KV, D)[page * 4 : page * 4 + first] = values[:first]
        new.append(xs[first:])
        wanted.append(attended(q[first:], k, v, first))
        kept.append((page * 4, k, v))
    step = np.array([first + length - 1 for first, length in zip(firsts, lengths, strict=True)], np.int32)
    meta = [step, np.zeros((3, 64), np.int64), np.ones(3, np.int32), np.array(lengths, np.int32)]
    kernel, x = attention(yr, METHODS[2], sum(lengths), caches, meta)
    x[:] = np.concatenate(new)
    close(ran(kernel), np.concatenate(wanted), "three requests")
    for at, k, v in kept:
        for cache, values in zip(caches, [k, v], strict=True):
            np.testing.assert_allclose(cache.reshape(-1, KV, D)[at : at + len(k)], values, rtol=1e-6, atol=1e-6)


def test_latent_caches_are_read_and_written_as_well(yr):
    heads, rank, rope = 3, 16, 8
    rng = np.random.default_rng(2)
    given = {"nope": heads * rank, "pe": heads * rope, "row": rank, "key": rope}
    given = {name: rng.standard_normal((ROWS, width)).astype(np.float32) for name, width in given.items()}

    def made_of(rows, cache, meta):
        kernel = yr.PersistentKernel(test_mode=True, precision="exact", max_seq_length=64, meta_tensors=meta)
        arrays = {name: np.zeros((rows, values.shape[1]), np.float32) for name, values in given.items()}
        of = {name: kernel.attach_input(array, name) for name, array in arrays.items()}
        kv, q = (kernel.new_tensor(dims, dtype="float32", name=name) for name, dims in [
            ("kv", (64, rank + rope)), ("q", (rows, heads * (rank + rope))),
        ])  # fmt: skip
        out = kernel.new_tensor((rows, heads * rank), dtype="float32", name="out")
        kernel.mla_kv_gather_layer(of["row"], of["key"], kernel.attach_input(cache, "cache"), kv, (rank + rope, rank, 64))
        kernel.assemble_q_decode_layer(of["nope"], of["pe"], q, heads)
        kernel.mla_prefill_absorbed_layer(q, kv, out, (heads, 64, rank, rope, rank), softmax_scale=0.2)
        return kernel, arrays

    kernel, arrays = made_of(ROWS, np.zeros((1, 64, rank + rope), np.float32), None)
    for name, array in arrays.items():
        array[:] = given[name]
    wanted = ran(kernel)
    cache, step = np.zeros((1, 64, rank + rope), np.float32), np.zeros(1, np.int32)
    kernel, arrays = made_of(1, cache, [step, np.zeros((1, 64), np.int64)])
    for row in range(ROWS):
        step[0] = row
        for name, array in arrays.items():
            array[0] = given[name][row]
        np.testing.assert_allclose(ran(kernel)[0], wanted[row], rtol=1e-5, atol=1e-5, err_msg=str(row))
    np.testing.assert_array_equal(cache[0, :ROWS], np.concatenate([given["row"], given["key"]], 1))


def test_caches_that_do_not_serve_are_refused_with_names_and_numbers(yr):
    small = [np.zeros((1, 4, KV, D), np.float32) for _ in "kv"]
    kernel, _ = attention(yr, METHODS[2], ROWS, small, None)
    with pytest.raises(yr.ArrayError, match="`k_cache`: it has 1 pages of 4 positions, and the requests of the pass take 2"):
        kernel.run_test_mode()
    locked = [np.zeros((1, 64, KV, D), np.float32) for _ in "kv"]
    locked[1].flags.writeable = False
    kernel, _ = attention(yr, METHODS[2], ROWS, locked, None)
    with pytest.raises(yr.ArrayError, match="`v_cache` is float32 .*must not be written"):
        kernel.run_test_mode()
    kernel = yr.PersistentKernel(test_mode=True, meta_tensors=[np.array([9], np.int32), np.zeros((1, 64), np.int64)], max_seq_length=64)
    k_cache, v_cache = (kernel.new_tensor((1, 64, KV, D), dtype="float32", name=name) for name in "kv")
    x, out = kernel.attach_input(inputs(ROWS), "x"), kernel.new_tensor((ROWS, KV * GROUP * D), dtype="float32", name="out")
    kernel.attention_layer(x, k_cache, v_cache, None, None, None, None, out)
    with pytest.raises(yr.ArrayError, match="`k`: `step` says that the pass begins behind position 0"):
        kernel.run_test_mode()
    another = kernel.new_tensor((1, 64, KV, D), dtype="float32", name="another")
    with pytest.raises(yr.KernelError, match="`v` is the cache of layer 0 already"):
        kernel.attention_layer(x, another, v_cache, None, None, None, None, out)


def test_a_table_of_pages_that_is_not_read_is_told(yr, caplog):
    caplog.set_level(logging.INFO, logger="yirage")
    meta = {"step": np.zeros(1, np.int32), "tokens": np.zeros((1, 64), np.int64)}
    for pages in [None, np.array([1], np.int32)]:
        caches = [np.zeros((2, 64, KV, D), np.float32) for _ in "kv"]
        kernel, _ = attention(yr, METHODS[2], ROWS, caches, meta | {"paged_kv_indices_buffer": pages})
        ran(kernel)
        ran(kernel)
        told = [record for record in caplog.records if "paged_kv_indices_buffer is not read" in record.getMessage()]
        assert len(told) == (pages is not None)


def test_a_compiled_kernel_warns_that_its_caches_are_its_own(yr, caplog):
    caplog.set_level(logging.WARNING, logger="yirage")
    made(yr, "llama", [golden("llama")["cases"][0]["ids"]], 12, max_num_batched_tokens=16)
    told = [record.getMessage() for record in caplog.records if "caches" in record.getMessage()]
    assert len(told) == 1 and "neither read nor written" in told[0], told
