"""`layer_norm` of kernel graphs and of graphs of a thread block, against NumPy in float64 and PyTorch."""

import pytest

np = pytest.importorskip("numpy")


def expected(x, axes, weight=None, bias=None, eps=1e-5):
    x = x.astype(np.float64)
    centred = x - x.mean(axes, keepdims=True)
    y = centred / np.sqrt((centred**2).mean(axes, keepdims=True) + eps)
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize(("dims", "normalized"), [((6, 32), (32,)), ((2, 3, 8), (3, 8)), ((5,), (5,)), ((2, 2, 3, 16), (16,))])
@pytest.mark.parametrize(("weighted", "biased"), [(False, False), (True, False), (False, True), (True, True)])
def test_it_gives_what_numpy_gives(yr, dtype, dims, normalized, weighted, biased):
    rng = np.random.default_rng(1)
    graph = yr.new_kernel_graph()
    arrays = [(3 * rng.standard_normal(dims) + 1).astype(dtype)]
    x = graph.new_input(list(dims), dtype=dtype)
    vectors = {}
    for name, given in [("weight", weighted), ("bias", biased)]:
        if given:
            vectors[name] = graph.new_input(list(normalized), dtype=dtype)
            arrays.append(rng.standard_normal(normalized).astype(dtype))
    y = graph.layer_norm(x, list(normalized), **vectors)
    assert y.dims == dims and y.dtype == dtype
    graph.mark_output(y)
    given = dict(zip(vectors, (array.astype(np.float64) for array in arrays[1:])))
    axes = tuple(range(len(dims) - len(normalized), len(dims)))
    within = 1e-5 if dtype == "float32" else 1e-2
    np.testing.assert_allclose(graph(inputs=arrays)[0], expected(arrays[0], axes, **given), rtol=within, atol=within)


@pytest.mark.parametrize("eps", [0.0, 1e-5, 1.0])
def test_it_is_pytorchs(yr, eps):
    torch = pytest.importorskip("torch")
    graph = yr.new_kernel_graph()
    x, w, b = (graph.new_input(dims, dtype=torch.float32) for dims in ([8, 64], [64], [64]))
    graph.mark_output(graph.layer_norm(x, [64], w, b, eps))
    torch.manual_seed(1)
    arrays = [torch.randn(8, 64), torch.randn(64), torch.randn(64)]
    (y,) = graph(inputs=arrays)
    torch.testing.assert_close(y, torch.nn.functional.layer_norm(arrays[0], (64,), *arrays[1:], eps), rtol=1e-5, atol=1e-5)


def test_what_is_wrong_is_named(yr):
    graph = yr.new_kernel_graph()
    x, w = graph.new_input([4, 8], dtype="float32"), graph.new_input([4], dtype="float32")
    for call, words in [
        (lambda: graph.layer_norm(x, [4]), ["layer_norm", "normalized_shape", "[4]"]),
        (lambda: graph.layer_norm(x, []), ["layer_norm", "normalized_shape"]),
        (lambda: graph.layer_norm(x, [8], w), ["layer_norm", "weight or bias of shape [8]"]),
        (lambda: graph.layer_norm(x, [8], bias=w), ["layer_norm", "weight or bias of shape [8]"]),
        (lambda: graph.layer_norm(x, [8], eps=-1.0), ["layer_norm", "eps", "-1"]),
        (lambda: graph.layer_norm(x, [8], eps=float("nan")), ["layer_norm", "eps", "NaN"]),
    ]:
        with pytest.raises(yr.GraphError) as caught:
            call()
        assert all(word in str(caught.value) for word in words), str(caught.value)
    with pytest.raises(yr.OptionError):
        graph.layer_norm(x, [-8])


def test_a_block_normalises_rows_as_a_kernel_graph_does(yr):
    plain, tiled = yr.new_kernel_graph(), yr.new_kernel_graph()
    x = plain.new_input([8, 32], dtype="float32")
    plain.mark_output(plain.layer_norm(plain.silu(x), [32], eps=1e-3))
    x = tiled.new_input([8, 32], dtype="float32")
    block = yr.new_threadblock_graph(grid_dim=(4, 1, 1), block_dim=(128, 1, 1), forloop_range=1)
    rows = block.new_input(dtensor=x, input_map=(0, -1, -1), forloop_dim=-1)
    block.new_output(stensor=block.layer_norm(block.silu(rows), eps=1e-3), output_map=(0, -1, -1))
    (made,) = tiled.customized([x], block)
    tiled.mark_output(made)
    assert "layer_norm" in block.operators and yr.equivalent(plain, tiled)
    a = np.random.default_rng(2).standard_normal((8, 32)).astype(np.float32)
    np.testing.assert_allclose(tiled(inputs=[a])[0], plain(inputs=[a])[0], rtol=1e-5, atol=1e-5)
    with pytest.raises(yr.GraphError, match="eps"):
        block.layer_norm(rows, eps=-1.0)


def test_it_goes_to_json_and_through_a_search(yr, tmp_path):
    graph = yr.new_kernel_graph()
    x, w, m = (graph.new_input(dims, dtype="float32") for dims in ([4, 16], [16], [16, 8]))
    graph.mark_output(graph.matmul(graph.layer_norm(x, [16], w), m))
    graph.to_json(tmp_path / "graph.json")
    again = yr.new_kernel_graph()
    again.from_json(tmp_path / "graph.json")
    found = graph.superoptimize(profile_iters=15, budget=300, use_cached_graphs=False)
    assert yr.equivalent(graph, again) and yr.equivalent(graph, found)
