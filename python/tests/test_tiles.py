"""Tiles of thread blocks as objects, loops that cut nothing, and strides that are asked for."""

import pytest

np = pytest.importorskip("numpy", reason="NumPy is not installed here")


def block_of(yr, loops=4, dtype="float32", cut=-1):
    graph = yr.new_kernel_graph()
    x, w = graph.new_input([8, 64], dtype=dtype), graph.new_input([64, 32], dtype=dtype)
    block = yr.new_threadblock_graph((4, 1, 1), (128, 1, 1), loops, 64)
    tx = block.new_input(x, (-1, -1, -1), 1 if cut == 0 else -1)
    tw = block.new_input(w, (1, -1, -1), cut)
    return graph, block, [x, w], [tx, tw]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_tile_says_what_it_is(yr, dtype):
    _, block, _, (tx, tw) = block_of(yr, cut=0, dtype=dtype)
    assert tx.dims == tx.shape == (8, 16) and tw.dims == tw.shape == (16, 8)
    product = block.matmul(tx, tw)
    summed = block.forloop_accum(product)
    largest, grown = block.reduction_max(product, 1)
    for tile, dims in [(product, (8, 8)), (summed, (8, 8)), (block.reduction(summed, 1), (8, 1)), (largest, (8, 1)), (grown, (8, 1))]:
        assert tile.dims == tile.shape == dims and tile.dtype == dtype and tile.num_dims == 2
        assert tile.strides == (dims[1], 1) and [tile.dim(0), tile.dim(1), tile.dim(-1)] == [dims[0], dims[1], dims[1]]
        with pytest.raises(yr.GraphError, match=r"dim\(2\): the tensor has 2 dimensions"):
            tile.dim(2)
    assert repr(product) == f"yirage.STensor(dims=[8, 8], dtype={dtype})"


def test_a_tile_of_another_graph_is_named(yr):
    _, _, _, (tx, _) = block_of(yr)
    _, other, _, _ = block_of(yr)
    with pytest.raises(yr.GraphError, match=r"exp: yirage.STensor\(dims=\[8, 64\].*another graph"):
        other.exp(tx)


def arrays(dtype=np.float32):
    rng = np.random.default_rng(4)
    return [rng.standard_normal(sizes).astype(dtype) for sizes in [(8, 64), (64, 32)]]


ACCUMULATED = {
    None: lambda p, loops: loops * p,
    "sum": lambda p, loops: loops * p.reshape(8, 4, 8).sum(-1),
    "mean": lambda p, loops: p.reshape(8, 4, 8).mean(-1),
    "rms": lambda p, loops: np.sqrt((p.reshape(8, 4, 8) ** 2).mean(-1)),
}


@pytest.mark.parametrize("loops", [1, 2, 5])
@pytest.mark.parametrize("acc", ACCUMULATED)
def test_a_loop_that_cuts_nothing_reads_the_same_in_each_iteration(yr, loops, acc):
    graph, block, inputs, (tx, tw) = block_of(yr, loops)
    block.new_output(block.forloop_accum(block.matmul(tx, tw), acc), (1, -1, -1))
    (made,) = graph.customized(inputs, block)
    graph.mark_output(made)
    given = arrays()
    wanted = ACCUMULATED[acc](given[0].astype(np.float64) @ given[1], loops)
    assert len(block.operators) == 5, "what was asked for, and nothing else"
    np.testing.assert_allclose(graph(inputs=given)[0], wanted, rtol=1e-4, atol=1e-4)


def test_accumulators_of_every_kind_take_a_loop_that_cuts_nothing(yr):
    loops = 3
    graph, block, inputs, (tx, tw) = block_of(yr, loops)
    product = block.matmul(tx, tw)
    largest, grown = block.reduction_max(product, 1)
    block.new_output(block.forloop_accum(block.mul_scalar(block.square(product), 0.5)), (1, -1, -1))
    block.new_output(block.forloop_accum_max(product), (1, -1, -1))
    shifted = block.exp(block.sub(product, largest))
    block.new_output(block.forloop_accum_rescale(shifted, block.exp(grown)), (1, -1, -1))
    for value in graph.customized(inputs, block):
        graph.mark_output(value)
    given = arrays()
    p = given[0].astype(np.float64) @ given[1]
    tiles = p.reshape(8, 4, 8)
    exponentials = np.exp(tiles - tiles.max(-1, keepdims=True)).reshape(8, 32)
    for found, wanted in zip(graph(inputs=given), [loops * 0.5 * p**2, p, loops * exponentials], strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_a_loop_that_cuts_nothing_equals_the_graph_without_it(yr, tmp_path):
    graph, block, inputs, (tx, tw) = block_of(yr, 2)
    block.new_output(block.forloop_accum(block.matmul(tx, tw)), (1, -1, -1))
    graph.mark_output(graph.customized(inputs, block)[0])
    plain = yr.new_kernel_graph()
    x, w = plain.new_input([8, 64], dtype="float32"), plain.new_input([64, 32], dtype="float32")
    plain.mark_output(plain.mul_scalar(plain.matmul(x, w), 2.0))
    assert yr.equivalent(plain, graph)
    graph.to_json(tmp_path / "graph.json")
    again = yr.new_kernel_graph()
    again.from_json(tmp_path / "graph.json")
    np.testing.assert_array_equal(again(inputs=arrays())[0], graph(inputs=arrays())[0])


def test_a_loop_without_an_accumulator_is_still_refused(yr):
    graph, block, inputs, (tx, tw) = block_of(yr)
    with pytest.raises(yr.GraphError, match="accumulated"):
        block.new_output(block.matmul(tx, tw), (1, -1, -1))
        graph.customized(inputs, block)


def output(yr):
    graph = yr.new_kernel_graph()
    return graph, graph.relu(graph.new_input([4, 6], dtype="float32"))


def test_strides_of_an_output_that_are_those_of_the_result_are_taken(yr):
    graph, y = output(yr)
    graph.mark_output(y, strides=(6, 1))
    assert graph(inputs=[np.ones((4, 6), np.float32)])[0].shape == (4, 6)


@pytest.mark.parametrize("strides", [(1, 4), (8, 1), (0, 1), (2**32 - 1, 1)], ids=str)
def test_other_strides_of_an_output_are_unsupported_and_say_what_is_possible(yr, strides):
    graph, y = output(yr)
    with pytest.raises(yr.Unsupported) as told:
        graph.mark_output(y, strides=strides)
    for part in [f"strides {list(strides)}", "strides [6, 1] are possible", "permute"]:
        assert part in str(told.value), str(told.value)


@pytest.mark.parametrize("number", [-1, -(2**70), 2**32, 2**70])
def test_strides_out_of_range_are_errors_of_values_that_name_them(yr, number):
    graph, y = output(yr)
    calls = [
        lambda: graph.mark_output(y, strides=(number, 1)),
        lambda: graph.new_input([4, 6], strides=[number, 1]),
        lambda: yr.PersistentKernel().new_tensor((4, 6), strides=(number, 1), name="x"),
    ]
    for call in calls:
        with pytest.raises(ValueError) as told:
            call()
        assert isinstance(told.value, yr.OptionError)
        assert "strides" in str(told.value) and f"{number} is given" in str(told.value), str(told.value)


def test_strides_for_other_dimensions_are_refused(yr):
    graph, y = output(yr)
    with pytest.raises(yr.GraphError, match=r"mark_output: strides is \[1\] for 2 dimensions"):
        graph.mark_output(y, strides=[1])
    for call in [lambda: graph.mark_output(y, strides=4), lambda: graph.mark_output(y, strides=["a", 1])]:
        with pytest.raises(TypeError):
            call()
