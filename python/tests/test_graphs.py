"""Kernel graphs: built, called, searched, shown. NumPy is the independent reference."""

import json
import math
import threading

import pytest

np = pytest.importorskip("numpy")


def build(yr, dims, op, dtype="float32"):
    """A graph of one operation on inputs of these sizes."""
    graph = yr.new_kernel_graph()
    made = op(graph, *[graph.new_input(list(d), dtype=dtype) for d in dims])
    graph.mark_output(made)
    return graph


def erf(x):
    return np.vectorize(math.erf)(x)


UNARY = {
    "exp": np.exp,
    "silu": lambda x: x / (1 + np.exp(-x)),
    "gelu": lambda x: x / 2 * (1 + erf(x / math.sqrt(2))),
    "relu": lambda x: np.where(np.isnan(x), x, np.maximum(x, 0)),
    "sqrt": np.sqrt,
    "square": np.square,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "log": np.log,
}
BINARY = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "pow": np.power}
SHAPES = [(1,), (7,), (3, 5), (1, 1), (2, 1, 9), (2, 3, 4, 5)]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("shape", SHAPES)
def test_unary_operations(yr, name, shape):
    rng = np.random.default_rng(1)
    graph = build(yr, [shape], lambda g, x: getattr(g, name)(x))
    for _ in range(2):
        x = rng.standard_normal(shape).astype(np.float32)
        x.flat[0] = rng.choice([np.nan, np.inf, -np.inf, 0.5])
        (y,) = graph(inputs=[x])
        wanted = UNARY[name](x.astype(np.float64))
        if name == "silu" and np.isneginf(x.flat[0]):
            wanted.flat[0] = y.flat[0]
        np.testing.assert_allclose(y, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("shapes", [((3, 5), (3, 5)), ((3, 1), (1, 5)), ((2, 1, 4), (2, 3, 4)), ((6,), (1,))])
def test_binary_operations_broadcast(yr, name, shapes):
    rng = np.random.default_rng(2)
    graph = build(yr, shapes, lambda g, a, b: getattr(g, name)(a, b))
    a, b = [rng.uniform(0.5, 2, s).astype(np.float32) for s in shapes]
    (y,) = graph(inputs=[a, b])
    np.testing.assert_allclose(y, BINARY[name](a.astype(np.float64), b.astype(np.float64)), rtol=1e-5)


@pytest.mark.parametrize(("m", "k", "n", "batch"), [(1, 1, 1, ()), (3, 7, 5, ()), (4, 16, 8, (3,)), (2, 33, 9, (2, 2))])
def test_products_sums_and_norms(yr, m, k, n, batch):
    rng = np.random.default_rng(3)
    a = rng.standard_normal((*batch, m, k)).astype(np.float32)
    b = rng.standard_normal((*batch, k, n)).astype(np.float32)
    wide = np.float64
    cases = [
        (build(yr, [a.shape, b.shape], lambda g, x, y: g.matmul(x, y)), [a, b], a.astype(wide) @ b.astype(wide)),
        (build(yr, [a.shape], lambda g, x: g.reduction(x, 0)), [a], a.astype(wide).sum(0, keepdims=True)),
        (
            build(yr, [a.shape], lambda g, x: g.rms_norm(x, [k])),
            [a],
            a / np.sqrt(np.mean(np.square(a.astype(wide)), -1, keepdims=True)),
        ),
        (build(yr, [a.shape], lambda g, x: g.clamp(x, -0.5, 0.25)), [a], np.clip(a, -0.5, 0.25)),
        (build(yr, [a.shape], lambda g, x: g.mul_scalar(x, 3.0)), [a], a * 3.0),
    ]
    for graph, inputs, wanted in cases:
        np.testing.assert_allclose(graph(inputs=inputs)[0], wanted, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float16", 2e-3)])
def test_half_precision(yr, dtype, tolerance):
    rng = np.random.default_rng(4)
    graph = yr.new_kernel_graph()
    x = graph.new_input([4, 32])
    assert x.dtype == dtype, "as Mirage has it"
    graph.mark_output(graph.silu(x))
    a = rng.standard_normal((4, 32)).astype(dtype)
    (y,) = graph(inputs=[a])
    wide = a.astype(np.float64)
    assert y.dtype == a.dtype
    np.testing.assert_allclose(y, wide / (1 + np.exp(-wide)), rtol=tolerance, atol=tolerance)


def test_values_tell_what_they_are(yr):
    graph = yr.new_kernel_graph()
    x = graph.new_input([4, 6], strides=[1, 4], dtype=yr.float32)
    assert x.dims == (4, 6) and x.shape == (4, 6) and x.strides == (1, 4)
    assert x.dtype == yr.float32 and x.num_dims == 2 and x.dim(1) == 6
    assert graph.matmul(x, graph.new_input([6, 3], dtype=np.float32)).dims == (4, 3)
    assert x.dim(-1) == 6 and x.dim(-2) == 4
    for dim in (2, -3):
        with pytest.raises(yr.GraphError):
            x.dim(dim)


def test_dimensions_are_counted_from_the_last_one_below_zero(yr):
    x = np.random.default_rng(7).standard_normal((2, 4, 6)).astype(np.float32)

    def softmax(dim):
        e = np.exp(x - x.max(dim, keepdims=True))
        return e / e.sum(dim, keepdims=True)

    for dim in (-1, -2, -3):
        half = x.shape[dim] // 2
        for op, wanted in [
            (lambda g, a: [g.softmax(a, dim)], [softmax(dim)]),
            (lambda g, a: [g.reduction(a, dim)], [x.sum(dim, keepdims=True)]),
            (lambda g, a: [g.max(a, dim=dim)], [x.max(dim, keepdims=True)]),
            (lambda g, a: [g.concat([a, g.exp(a)], dim)], [np.concatenate([x, np.exp(x)], dim)]),
            (lambda g, a: g.chunk(g.exp(a), 2, dim), np.split(np.exp(x), 2, dim)),
            (lambda g, a: g.split(g.exp(a), [half, half], dim), np.split(np.exp(x), 2, dim)),
            (lambda g, a: [g.fuse_tensors([a, g.exp(a)], dim, 1)], [np.concatenate([x, np.exp(x)], dim)]),
        ]:
            graph = yr.new_kernel_graph()
            for made in op(graph, graph.new_input(x.shape, dtype="float32")):
                graph.mark_output(made)
            for got, want in zip(graph(inputs=[x]), wanted, strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    turned = build(yr, [x.shape], lambda g, a: g.permute(g.exp(a), [-1, 0, -2]))
    np.testing.assert_allclose(turned(inputs=[x])[0], np.exp(x).transpose(2, 0, 1), rtol=1e-6)
    flat = build(yr, [x.shape], lambda g, a: g.reshape(g.exp(a), [-1, 6]))
    np.testing.assert_allclose(flat(inputs=[x])[0], np.exp(x).reshape(8, 6), rtol=1e-6)
    scheduler, node = yr.FusionScheduler(), yr.OpNode("softmax", ("a",), ("b",), {"dim": -2})
    named = scheduler.dispatch(yr.SubGraph((node,), ("a",), ("b",)), {"a": x})["b"]
    np.testing.assert_allclose(named, softmax(-2), rtol=1e-5)


def test_a_dimension_that_there_is_not_is_told_with_those_that_there_are(yr):
    graph = yr.new_kernel_graph()
    x = graph.new_input([4, 6], dtype="float32")
    for dim in (2, -3):
        for name, call in [
            ("softmax", lambda: graph.softmax(x, dim)),
            ("reduction", lambda: graph.reduction(x, dim)),
            ("max", lambda: graph.max(x, dim)),
            ("concat", lambda: graph.concat([x, x], dim)),
            ("chunk", lambda: graph.chunk(x, 2, dim)),
            ("split", lambda: graph.split(x, [2, 2], dim)),
            ("permute", lambda: graph.permute(x, [0, dim])),
        ]:
            wanted = rf"{name}: f32\[4, 6\] has no dimension {dim}; its rank is 2, so dimensions are 0 to 1, or -2 to -1"
            with pytest.raises(yr.GraphError, match=wanted):
                call()
    with pytest.raises(yr.GraphError, match="at most one -1"):
        graph.reshape(x, [-1, -1])


def test_what_cannot_be_built_is_refused_and_leaves_the_graph(yr):
    graph = yr.new_kernel_graph()
    x = graph.new_input([2, 3], dtype="float32")
    other = yr.new_kernel_graph().new_input([2, 3], dtype="float32")
    for refused in [
        lambda: graph.new_input([1] * 5),
        lambda: graph.new_input([2, 3], strides=[5, 1]),
        lambda: graph.new_input([2], dtype="complex64"),
        lambda: graph.new_input([2], dtype=yr.int8),
        lambda: graph.matmul(x, x),
        lambda: graph.add(x, other),
        lambda: graph.reduction(x, 2),
        lambda: graph.rms_norm(x, [2]),
        lambda: graph.clamp(x, float("nan"), 1.0),
    ]:
        with pytest.raises((yr.GraphError, yr.Unsupported)):
            refused()
    with pytest.raises(yr.GraphError):
        graph(inputs=[])
    with pytest.raises(TypeError):
        graph.new_input([2], colour="red")
    graph.mark_output(graph.exp(x))
    np.testing.assert_allclose(graph(inputs=[np.zeros((2, 3), np.float32)])[0], 1)


def test_results_come_in_order_in_memory_of_their_own(yr):
    graph = yr.new_kernel_graph()
    x = graph.new_input([3], dtype="float32")
    graph.mark_output(graph.square(x))
    graph.mark_output(graph.exp(x))
    a, b = np.arange(3, dtype=np.float32), np.ones(3, np.float32)
    first, second = graph(inputs=[a]), graph(inputs=[b])
    np.testing.assert_allclose(first[0], [0, 1, 4])
    np.testing.assert_allclose(first[1], np.exp(a), rtol=1e-6)
    np.testing.assert_allclose(second[0], 1)
    first[0][:] = 7
    np.testing.assert_allclose(second[0], 1)


def test_arrays_that_do_not_fit_are_errors(yr):
    graph = build(yr, [(4, 6)], lambda g, x: g.exp(x))
    right = np.zeros((4, 6), np.float32)
    for wrong in [right[:2], right.astype(np.float64), np.zeros((6, 4), np.float32).T, right[::-1], right.ravel(), 3.0, "x"]:
        with pytest.raises(yr.ArrayError):
            graph(inputs=[wrong])
    for count in [[], [right, right]]:
        with pytest.raises(yr.InputNotFoundError):
            graph(inputs=count)
    with pytest.raises(TypeError, match="colour"):
        graph(inputs=[right], colour=1)


def test_strided_and_read_only_arrays_are_read_where_they_lie(yr):
    graph = yr.new_kernel_graph()
    x = graph.new_input([4, 6], strides=[1, 4], dtype="float32")
    graph.mark_output(graph.exp(x))
    a = np.random.default_rng(5).standard_normal((6, 4)).astype(np.float32).T
    a.flags.writeable = False
    np.testing.assert_allclose(graph(inputs=[a])[0], np.exp(a), rtol=1e-5)


def test_tensors_are_shared_and_not_copied(yr):
    graph = build(yr, [(2, 3)], lambda g, x: g.exp(x))
    (tensor,) = graph(inputs=[memoryview(bytearray(24)).cast("f", [2, 3])])
    assert isinstance(tensor, yr.Tensor)
    assert tensor.shape == (2, 3) and tensor.strides == (3, 1) and tensor.dtype == "float32"
    assert tensor.nbytes == 24 and tensor.ndim == 2 and len(tensor) == 2
    assert tensor.tolist() == [[1.0] * 3] * 2
    seen = np.asarray(tensor)
    assert seen.ctypes.data == tensor.data_ptr() and tensor.data_ptr() % 64 == 0
    assert np.from_dlpack(tensor).ctypes.data == tensor.data_ptr()
    assert tensor.numpy().ctypes.data == tensor.data_ptr()
    assert tensor.__dlpack_device__() == (1, 0)
    copied = np.from_dlpack(tensor) if not hasattr(np, "__array_namespace_info__") else np.from_dlpack(tensor, copy=True)
    seen[0, 0] = 5
    assert tensor.tolist()[0][0] == 5.0
    assert copied[0, 0] in (1.0, 5.0)
    del tensor
    assert seen[0, 0] == 5, "whoever has it keeps it"
    with pytest.raises(BufferError):
        graph(inputs=[seen * 0])[0].__class__  # an array of NumPy
        graph(inputs=[memoryview(bytearray(24)).cast("f", [2, 3])])[0].__dlpack__(dl_device=(2, 0))


def test_bfloat16_of_ml_dtypes(yr):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    graph = build(yr, [(3, 4)], lambda g, x: g.relu(x), dtype=yr.bfloat16)
    a = np.random.default_rng(6).standard_normal((3, 4)).astype(ml_dtypes.bfloat16)
    (y,) = graph(inputs=[a])
    assert y.dtype == a.dtype
    np.testing.assert_array_equal(y.astype(np.float32), np.maximum(a.astype(np.float32), 0))


def test_a_block_graph_equals_the_plain_one(yr):
    rng = np.random.default_rng(7)
    plain = yr.new_kernel_graph()
    x = plain.new_input([8, 64], dtype="float32")
    w = plain.new_input([64, 32], dtype="float32")
    plain.mark_output(plain.silu(plain.matmul(x, w)))

    tiled = yr.new_kernel_graph()
    x = tiled.new_input([8, 64], dtype="float32")
    w = tiled.new_input([64, 32], dtype="float32")
    block = yr.new_threadblock_graph(grid_dim=(4, 1, 1), block_dim=(128, 1, 1), forloop_range=2, reduction_dimx=64)
    tx = block.new_input(dtensor=x, input_map=(-1, -1, -1), forloop_dim=1)
    tw = block.new_input(dtensor=w, input_map=(1, -1, -1), forloop_dim=0)
    sums = block.forloop_accum(block.matmul(tx, tw))
    block.new_output(stensor=block.silu(sums), output_map=(1, -1, -1))
    (made,) = tiled.customized([x, w], block)
    tiled.mark_output(made)
    assert block.grid_dim == (4, 1, 1) and block.forloop_range == 2
    assert block.operators == ["new_input", "new_input", "matmul", "forloop_accum", "silu", "new_output"]
    assert yr.equivalent(plain, tiled)
    a = rng.standard_normal((8, 64)).astype(np.float32)
    b = rng.standard_normal((64, 32)).astype(np.float32)
    np.testing.assert_allclose(tiled(inputs=[a, b])[0], plain(inputs=[a, b])[0], rtol=1e-5, atol=1e-5)
    with pytest.raises(yr.GraphError):
        block.forloop_accum(tx, "median")
    with pytest.raises(yr.Unsupported):
        block.new_output(sums, (1, -1, -1), epilogue="allreduce")


def mlp(yr):
    graph = yr.new_kernel_graph()
    x = graph.new_input([8, 64], dtype="float32")
    w1, w2 = graph.new_input([64, 32], dtype="float32"), graph.new_input([64, 32], dtype="float32")
    graph.mark_output(graph.mul(graph.silu(graph.matmul(x, w1)), graph.matmul(x, w2)))
    return graph


def test_superoptimize_gives_an_equal_graph_and_finds_it_again(yr, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    graph = mlp(yr)
    arguments = {"config": "mlp", "profile_iters": 20, "warmup_iters": 2, "budget": 2000, "use_cached_graphs": False}
    before = yr.search_counters()
    found = graph.superoptimize(**arguments)
    again = mlp(yr).superoptimize(**arguments)
    after = yr.search_counters()
    assert after["misses"] == before["misses"] + 1 and after["memory_hits"] == before["memory_hits"] + 1
    assert yr.equivalent(graph, found) and yr.equivalent(found, again)
    rng = np.random.default_rng(8)
    inputs = [rng.standard_normal(s).astype(np.float32) for s in [(8, 64), (64, 32), (64, 32)]]
    np.testing.assert_allclose(found(inputs=inputs)[0], graph(inputs=inputs)[0], rtol=1e-4, atol=1e-4)
    assert "search:" in found.why()
    with pytest.raises(yr.OptionError):
        graph.superoptimize(config="moe")
    with pytest.raises(yr.Unsupported, match="finished"):
        found.new_input([1])


def test_equivalence_tells_graphs_apart(yr):
    one = build(yr, [(4, 8)], lambda g, x: g.mul(x, x))
    same = build(yr, [(4, 8)], lambda g, x: g.square(x))
    other = build(yr, [(4, 8)], lambda g, x: g.add(x, x))
    assert yr.equivalent(one, same) and yr.equivalent(one, same).false_accept_log2 < -20
    found = yr.equivalent(one, other)
    assert not found and found.reason and found.certificate is None


def test_json_both_ways(yr, tmp_path):
    graph, file = mlp(yr), tmp_path / "graph.json"
    graph.to_json(str(file))
    again = yr.new_kernel_graph()
    again.from_json(file)
    assert again.get_owner_independent_hash() == graph.get_owner_independent_hash()
    inputs = [np.ones(s, np.float32) for s in [(8, 64), (64, 32), (64, 32)]]
    np.testing.assert_array_equal(again(inputs=inputs)[0], graph(inputs=inputs)[0])
    file.write_text("{")
    with pytest.raises(yr.GraphError, match="graph.json"):
        again.from_json(file)


def test_pictures_and_reasons(yr, tmp_path):
    graph = mlp(yr)
    graph.visualize(str(tmp_path / "picture"))
    assert (tmp_path / "picture.dot").read_text().startswith("digraph")
    assert (tmp_path / "picture.svg").read_text().startswith("<svg") and graph._repr_svg_().startswith("<svg")
    assert "kernels" in graph.why() and len(graph.why(decisions=True)) >= len(graph.why())
    assert graph.valid_kernels() and graph.get_error_message() == ""


def test_a_trace_has_the_tasks_of_the_calls(yr, tmp_path):
    graph = mlp(yr)
    graph.compile(profiling=True)
    inputs = [np.ones(s, np.float32) for s in [(8, 64), (64, 32), (64, 32)]]
    for _ in range(3):
        graph(inputs=inputs)
    graph.write_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert len({e["args"]["step"] for e in events if e.get("cat") == "step"}) == 3
    with pytest.raises(yr.GraphError):
        mlp(yr).write_trace(tmp_path / "none.json")


def test_compiling_elsewhere_and_arguments_of_cuda(yr, caplog):
    graph = mlp(yr)
    assert graph.compile(async_=True).wait() is None
    with caplog.at_level("INFO", logger="yirage"):
        graph.compile(target_cc=90, num_warp_groups=2)
        graph.compile(target_cc=80)
    said = [record.message for record in caplog.records]
    assert sum("target_cc" in line for line in said) == 1
    with pytest.raises(TypeError):
        graph.compile(colour=1)
    for refused in [graph.attach_cuda_tensor, graph.attach_nvshmem_tensor]:
        with pytest.raises(yr.Unsupported):
            refused(yr.new_kernel_graph().new_input([1]))


def test_attached_arrays_are_left_out_of_calls(yr):
    graph = yr.new_kernel_graph()
    x, w = graph.new_input([2, 3], dtype="float32"), graph.new_input([3, 4], dtype="float32")
    graph.mark_output(graph.matmul(x, w))
    weight = np.random.default_rng(9).standard_normal((3, 4)).astype(np.float32)
    graph.attach_torch_tensor(w, weight, "w")
    a = np.ones((2, 3), np.float32)
    np.testing.assert_allclose(graph(inputs=[a])[0], a @ weight, rtol=1e-5)
    with pytest.raises(yr.InputNotFoundError):
        graph(inputs=[a, a])
    with pytest.raises(yr.ArrayError):
        graph.attach_torch_tensor(x, weight)


def test_fused_tensors_stand_group_by_group(yr):
    graph = yr.new_kernel_graph()
    a, b = graph.new_input([4, 2], dtype="float32"), graph.new_input([2, 2], dtype="float32")
    graph.mark_output(graph.fuse_tensors([a, b], 0, 2, "ab"))
    x, y = np.arange(8, dtype=np.float32).reshape(4, 2), -np.arange(4, dtype=np.float32).reshape(2, 2)
    wanted = np.concatenate([x[:2], y[:1], x[2:], y[1:]])
    np.testing.assert_array_equal(graph(inputs=[x, y])[0], wanted)


def test_threads_share_a_graph(yr):
    graph = build(yr, [(16,)], lambda g, x: g.square(x))
    wrong = []

    def work(number):
        for i in range(50):
            x = np.full(16, number * 100 + i, np.float32)
            if not (graph(inputs=[x])[0] == x * x).all():
                wrong.append((number, i))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong


def test_cycles_of_building_calling_and_dropping_do_not_grow(yr):
    def resident():
        with open("/proc/self/statm") as text:
            return int(text.read().split()[1]) * 4096

    def cycle(count):
        x = np.zeros(64, np.float32)
        for _ in range(count):
            build(yr, [(64,)], lambda g, a: g.exp(a))(inputs=[x])

    cycle(300)
    before = resident()
    cycle(1000)
    assert resident() - before < 8 << 20


def test_a_fork_of_what_has_devices_is_an_error(python):
    code = """
import os, yirage as yr
g = yr.new_kernel_graph(); x = g.new_input([1], dtype="float32"); g.mark_output(g.exp(x))
data = memoryview(bytearray(4)).cast("f")
g(inputs=[data])
pid = os.fork()
if pid == 0:
    try: g(inputs=[data])
    except yr.ForkError as error: os._exit(7 if "spawn" in str(error) else 1)
    os._exit(2)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    assert python(code).stdout == "7\n"


def test_tensors_are_shuffled_group_by_group(yr):
    graph = yr.new_kernel_graph()
    a, b = graph.new_input([4, 3], dtype="float32"), graph.new_input([8, 3], dtype="float32")
    graph.mark_output(graph.shuffle_tensors([a, b], shuffled_dim=0, num_groups=4, name="ab"))
    x, y = np.arange(12, dtype=np.float32).reshape(4, 3), np.arange(24, dtype=np.float32).reshape(8, 3) + 100
    (got,) = graph(inputs=[x, y])
    groups = [part for pair in zip(np.split(x, 4), np.split(y, 4), strict=True) for part in pair]
    np.testing.assert_array_equal(got, np.concatenate(groups))
    with pytest.raises(yr.GraphError):
        graph.shuffle_tensors([a, b], 0, 3)


def test_a_graph_tells_its_tasks(yr):
    block = yr.new_threadblock_graph((2, 1, 1), (128, 1, 1), 1, 64)
    graph = yr.new_kernel_graph()
    x = graph.new_input([8, 16], dtype="float32")
    tile = block.new_input(x, (0, -1, -1), -1)
    block.new_output(block.forloop_accum(block.exp(tile), "sum"), (0, -1, -1))
    with pytest.raises(yr.GraphError, match="customized"):
        graph.register_task(block, "exp_task")
    (y,) = graph.customized([x], block)
    graph.register_task(block, "exp_task", [1, 2])
    graph.mark_output(graph.silu(y))
    made = graph.generate_task_graph(num_gpus=1, my_gpu_id=0)
    tasks = json.loads(made["json_file"])
    assert made["cuda_code"] == ""
    assert [(task["task_type"], task["params"]) for task in tasks["registered_tasks"]] == [("exp_task", [1, 2])]
    ids = [task["id"] for task in tasks["all_tasks"]]
    assert ids == list(range(len(ids))) and sorted(sum(tasks["workers"], [])) == ids
    events = {event["id"]: event["num_triggers"] for event in tasks["all_events"]}
    triggers = [task["trigger_event"] for task in tasks["all_tasks"]]
    assert all(triggers.count(event) == count for event, count in events.items())
    assert all(wait["event"] in events for task in tasks["all_tasks"] for wait in task["dependent_events"])
    with pytest.raises(yr.Unsupported, match="one device"):
        graph.generate_task_graph(2, 0)
