"""Sub-graphs of named operations and their scheduler. What NumPy computes is the independent reference."""

import sys
import threading

import pytest

np = pytest.importorskip("numpy", reason="NumPy is not installed here")

from conftest import ROOT  # noqa: E402 - the cases need NumPy

COUNTS = ["cache_hits", "cache_misses", "recordings", "fusion_attempts", "fusion_successes", "fusion_fallbacks"]
OURS = ["python_ops", "op_fallbacks"]


def counted(scheduler, names=COUNTS):
    stats = scheduler.get_cache_stats()
    return [stats[name] for name in names]


def random(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def sigmoid(x):
    return 1 / (1 + np.exp(-x.astype(np.float64)))


def silu(x):
    return (x * sigmoid(x)).astype(x.dtype)


def swiglu_graph(yr):
    nodes = (yr.OpNode("silu", ("gate",), ("activated",)), yr.OpNode("mul", ("activated", "up"), ("output",)))
    return yr.SubGraph(nodes, ("gate", "up"), ("output",))


def given(*shape, dtype=np.float32):
    return {"gate": random(*shape, dtype=dtype), "up": random(*shape, seed=1, dtype=dtype)}


def one(yr, op, *operands, attrs=None):
    """What a single operation gives."""
    names = tuple(f"x{number}" for number in range(len(operands)))
    graph = yr.SubGraph((yr.OpNode(op, names, ("y",), attrs),), names, ("y",))
    return yr.FusionScheduler().dispatch(graph, dict(zip(names, operands, strict=True)))["y"]


def test_nodes_and_graphs_are_values(yr):
    node = yr.OpNode("softmax", "x", ["y"], {"dim": 1})
    assert node == yr.OpNode("softmax", ("x",), ("y",), (("dim", 1),))
    assert len({node, yr.OpNode("softmax", ("x",), ("y",), [("dim", 1)]), yr.OpNode("silu", ("x",), ("y",))}) == 2
    assert yr.OpNode("silu", ("x",), ("y",)).attrs is None
    shaped = yr.OpNode("reshape", ("x",), ("y",), {"dims": [2, 3]})
    assert hash(shaped) == hash(yr.OpNode("reshape", ("x",), ("y",), {"dims": (2, 3)}))
    graph = yr.SubGraph([node], "x", "y")
    assert len(graph) == 1 and graph == yr.SubGraph((node,), ("x",), ("y",)) and len({graph}) == 1


def test_a_scripted_sequence_gives_exact_counters(yr):
    scheduler, graph = yr.FusionScheduler(), swiglu_graph(yr)
    assert counted(scheduler, [*COUNTS, *OURS]) == [0] * 8
    assert scheduler.get_cache_stats()["size"] == 0 and scheduler.get_cache_stats()["keys"] == []
    inputs = given(32, 64)
    wanted = silu(inputs["gate"]) * inputs["up"]
    first = scheduler.dispatch(graph, inputs)
    assert list(first) == ["output"] and isinstance(first["output"], np.ndarray)
    np.testing.assert_allclose(first["output"], wanted, rtol=1e-5, atol=1e-6)
    assert counted(scheduler) == [0, 1, 1, 1, 1, 0]
    # A replay reads every input anew.
    again = scheduler.dispatch(graph, {"gate": inputs["up"], "up": inputs["gate"]})["output"]
    np.testing.assert_allclose(again, silu(inputs["up"]) * inputs["gate"], rtol=1e-5, atol=1e-6)
    assert counted(scheduler) == [1, 1, 1, 1, 1, 0]
    scheduler.dispatch(graph, given(16, 64))
    half = scheduler.dispatch(graph, given(32, 64, dtype=np.float16))["output"]
    assert half.dtype == np.float16 and counted(scheduler) == [1, 3, 3, 3, 3, 0]
    stats = scheduler.get_cache_stats()
    assert stats["size"] == 3 == len(stats["keys"]) and set(stats["fusion_modes"].values()) == {"fusion"}
    assert stats["keys"] == stats["cached_shapes"] and stats["size"] == stats["cache_size"]
    scheduler.clear_cache()
    assert scheduler.get_cache_stats()["size"] == 0 and counted(scheduler) == [1, 3, 3, 3, 3, 0]
    assert scheduler.dispatch(graph, inputs)["output"].tobytes() == first["output"].tobytes()
    assert counted(scheduler) == [1, 4, 4, 4, 4, 0]


@pytest.mark.parametrize(
    ("config", "counts", "modes"),
    [
        ({}, [1, 1, 1, 1, 1, 0], ["fusion"]),
        ({"enable_fusion": False}, [0] * 6, []),
        ({"enable_cache": False}, [0, 2, 2, 2, 2, 0], []),
        ({"max_graph_size": 1}, [1, 1, 1, 0, 0, 0], ["graph_replay"]),
        ({"min_tensor_elements": 10**9}, [1, 1, 1, 0, 0, 0], ["graph_replay"]),
        ({"min_nodes_for_fusion": 3}, [1, 1, 1, 0, 0, 0], ["graph_replay"]),
        ({"cache_bytes": 1}, [0, 2, 2, 2, 2, 0], []),
    ],
)
def test_each_setting_of_fusion_changes_something(yr, config, counts, modes):
    scheduler = yr.FusionScheduler(yr.FusionConfig(**config))
    assert scheduler.config == yr.FusionConfig(**config)
    made = [scheduler.dispatch(swiglu_graph(yr), given(32, 64))["output"].tobytes() for _ in range(2)]
    assert made == [yr.FusionScheduler().dispatch(swiglu_graph(yr), given(32, 64))["output"].tobytes()] * 2
    assert counted(scheduler) == counts
    assert list(scheduler.get_cache_stats()["fusion_modes"].values()) == modes


def test_what_happens_beside_a_result_is_logged(yr, caplog):
    for debug, level in [(True, "INFO"), (False, "DEBUG")]:
        caplog.clear()
        with caplog.at_level("DEBUG", "yirage"):
            scheduler = yr.FusionScheduler(yr.FusionConfig(max_graph_size=1, debug_mode=debug))
            scheduler.dispatch(swiglu_graph(yr), given(32, 64))
        told = [record for record in caplog.records if "the graph is not fused" in record.getMessage()]
        assert told and told[0].levelname == level


def test_operations_of_graphs_have_their_names(yr):
    a, b, q = random(4, 6), random(4, 6, seed=1), random(2, 3, 5, 8)
    weight, bias = random(6, seed=2), random(6, seed=3)
    mean, variance = a.mean(1, keepdims=True), a.var(1, keepdims=True)
    rms = np.sqrt((a.astype(np.float64) ** 2).mean(1, keepdims=True) + 1e-5)
    scores = q @ q.swapaxes(2, 3) * 0.25 + np.triu(np.full((5, 5), -np.inf), 1)
    soft = np.exp(scores - scores.max(-1, keepdims=True))
    exp = np.exp(a - a.max(0))
    for got, wanted in [
        (one(yr, "silu", a), silu(a)),
        (one(yr, "clamp", a, attrs={"min_val": -0.5, "max_val": 1}), a.clip(-0.5, 1)),
        (one(yr, "mul_scalar", a, attrs={"scalar": 3}), a * 3),
        (one(yr, "add", a, b), a + b),
        (one(yr, "sub", a, b), a - b),
        (one(yr, "div", a, b), a / b),
        (one(yr, "matmul", a, b.T.copy()), a @ b.T),
        (one(yr, "matmul", a, b.T), a @ b.T),
        (one(yr, "reduction", a, attrs={"dim": 1}), a.sum(1, keepdims=True)),
        (one(yr, "max", a, attrs={"dim": 0}), a.max(0, keepdims=True)),
        (one(yr, "softmax", a, attrs={"dim": 0}), exp / exp.sum(0)),
        (one(yr, "rms_norm", a), a / rms),
        (one(yr, "rms_norm", a, weight), a / rms * weight),
        (one(yr, "rms_norm", a, weight, attrs={"eps": 0.5}), a / np.sqrt(rms**2 - 1e-5 + 0.5) * weight),
        (one(yr, "layer_norm", a, weight, bias), (a - mean) / np.sqrt(variance + 1e-5) * weight + bias),
        (one(yr, "attention", q, q, q, attrs={"causal": True, "scale": 0.25}), soft / soft.sum(-1, keepdims=True) @ q),
        (one(yr, "concat", a, b, attrs={"dim": 0}), np.concatenate([a, b])),
        (one(yr, "reshape", a, attrs={"dims": [2, 12]}), a.reshape(2, 12)),
        (one(yr, "permute", a, attrs={"dims": [1, 0]}), a.T),
    ]:
        np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=2e-6)
    graph = yr.SubGraph((yr.OpNode("split", "x", ("l", "r"), {"sizes": [2, 4], "dim": 1}),), "x", ("r", "l", "x"))
    parts = yr.FusionScheduler().dispatch(graph, {"x": a})
    assert list(parts) == ["r", "l", "x"] and parts["x"] is a
    assert np.array_equal(parts["l"], a[:, :2]) and np.array_equal(parts["r"], a[:, 2:])
    # A view of the same shape computes nothing: the value is given back as it is.
    assert one(yr, "reshape", a, attrs={"dims": [4, 6]}) is a
    assert np.array_equal(one(yr, "reshape", one(yr, "exp", a.T), attrs={"dims": [6, 4]}), one(yr, "exp", a.T))
    np.testing.assert_allclose(one(yr, "exp", a.T), np.exp(a.T), rtol=2e-5)


def test_a_callable_stands_between_two_plans(yr):
    scheduler = yr.FusionScheduler()
    nodes = (
        yr.OpNode("silu", "x", "a"),
        yr.OpNode("scale_and_shift", ("a", "x"), ("b", "c"), {"by": 2.0}),
        yr.OpNode("mul", ("b", "c"), "d"),
        yr.OpNode("exp", "d", "y"),
    )
    graph = yr.SubGraph(nodes, "x", ("y", "b"))
    with pytest.raises(yr.GraphError, match="`scale_and_shift` is no operation: register_op"):
        scheduler.dispatch(graph, {"x": random(8, 200)})
    seen = []

    def scale_and_shift(a, x, by):
        seen.append((type(a), x))
        return a * by, x - a

    scheduler.register_op("scale_and_shift", scale_and_shift)
    x = random(8, 200)
    for _ in range(2):
        made = scheduler.dispatch(graph, {"x": x})
    a = silu(x)
    np.testing.assert_allclose(made["b"], a * 2, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(made["y"], np.exp(a * 2 * (x - a)), rtol=1e-4, atol=1e-5)
    assert all(kind is np.ndarray and given is x for kind, given in seen)
    # Two plans, each made once and replayed once.
    assert counted(scheduler)[:3] == [2, 2, 2] and counted(scheduler, OURS) == [2, 0]
    scheduler.register_op("scale_and_shift", lambda a, x, by: (a, x, by))
    with pytest.raises(yr.GraphError, match="gives 3 values, and 2 outputs are named"):
        scheduler.dispatch(graph, {"x": x})

    def broken(a, x, by):
        raise KeyError("of the program")

    scheduler.register_op("scale_and_shift", broken)
    with pytest.raises(KeyError, match="of the program"):
        scheduler.dispatch(graph, {"x": x})


def test_what_nobody_reads_is_no_trouble(yr):
    scheduler, x = yr.FusionScheduler(), random(8, 200)
    nodes = (yr.OpNode("exp", "x", "unread"), yr.OpNode("silu", "x", "y"))
    for _ in range(2):
        made = scheduler.dispatch(yr.SubGraph(nodes, ("x", "other"), "y"), {"x": x, "other": "no array"})
    np.testing.assert_allclose(made["y"], silu(x), rtol=1e-5, atol=1e-6)
    assert list(made) == ["y"] and counted(scheduler)[:2] == [1, 1]
    # A value may be given back under the name of an input, and twice.
    twice = scheduler.dispatch(yr.SubGraph(nodes, ("x",), ("y", "x", "y")), {"x": x})
    assert list(twice) == ["y", "x"] and twice["x"] is x


def test_a_callable_may_dispatch(yr):
    scheduler, x = yr.FusionScheduler(), random(8, 200)
    inner = yr.SubGraph((yr.OpNode("square", "x", "y"),), "x", "y")
    scheduler.register_op("squared", lambda x: scheduler.dispatch(inner, {"x": x})["y"])
    nodes = (yr.OpNode("exp", "x", "e"), yr.OpNode("squared", "e", "s"), yr.OpNode("log", "s", "y"))
    made = scheduler.dispatch(yr.SubGraph(nodes, "x", "y"), {"x": x})["y"]
    np.testing.assert_allclose(made, 2 * x, rtol=1e-4, atol=1e-5)
    assert counted(scheduler, OURS) == [1, 0] and scheduler.get_cache_stats()["size"] == 3


def test_graphs_stand_for_operations(yr):
    scheduler = yr.FusionScheduler()
    scheduler.register_op("swiglu", swiglu_graph(yr))
    kernel = yr.new_kernel_graph()
    kernel.mark_output(kernel.square(kernel.new_input([8, 64], dtype=yr.float32)))
    scheduler.register_op("squared", kernel)
    nodes = (
        yr.OpNode("swiglu", ("a", "b"), "activated"),
        yr.OpNode("swiglu", ("activated", "b"), "twice"),
        yr.OpNode("squared", "twice", "y"),
    )
    graph = yr.SubGraph(nodes, ("a", "b"), "y")
    a, b = random(8, 64), random(8, 64, seed=1)
    made = scheduler.dispatch(graph, {"a": a, "b": b})["y"]
    np.testing.assert_allclose(made, (silu(silu(a) * b) * b) ** 2, rtol=1e-4, atol=1e-6)
    # Both sub-graphs are one plan, and the kernel graph another.
    assert scheduler.get_cache_stats()["size"] == 2 and counted(scheduler, OURS) == [0, 0]
    with pytest.raises(yr.ArrayError):
        scheduler.dispatch(graph, {"a": a[:4], "b": b[:4]})
    with pytest.raises(yr.GraphError, match="2 inputs, and 1 are named"):
        scheduler.dispatch(yr.SubGraph((yr.OpNode("swiglu", "a", "y"),), "a", "y"), {"a": a})
    with pytest.raises(yr.GraphError, match="has none"):
        scheduler.dispatch(yr.SubGraph((yr.OpNode("swiglu", ("a", "a"), "y", {"by": 1}),), "a", "y"), {"a": a})
    scheduler.register_op("one", yr.SubGraph((yr.OpNode("two", "x", "y"),), "x", "y"))
    scheduler.register_op("two", yr.SubGraph((yr.OpNode("one", "x", "y"),), "x", "y"))
    with pytest.raises(yr.GraphError, match="holds itself"):
        scheduler.dispatch(yr.SubGraph((yr.OpNode("one", "a", "y"),), "a", "y"), {"a": a})
    # What doubles at each level ends at a bound.
    for level in range(1, 20):
        below = f"level{level - 1}" if level > 1 else "exp"
        nodes = (yr.OpNode(below, "x", "h"), yr.OpNode(below, "h", "y"))
        scheduler.register_op(f"level{level}", yr.SubGraph(nodes, "x", "y"))
    with pytest.raises(yr.GraphError, match="more than 4096 operations"):
        scheduler.dispatch(yr.SubGraph((yr.OpNode("level19", "a", "y"),), "a", "y"), {"a": a})
    # So do those that stand within each other, long before the thread's stack does.
    for level in range(1, 20_000):
        below = f"within{level - 1}" if level > 1 else "exp"
        scheduler.register_op(f"within{level}", yr.SubGraph((yr.OpNode(below, "x", "y"),), "x", "y"))
    deepest = yr.SubGraph((yr.OpNode("within64", "a", "y"),), "a", "y")
    np.testing.assert_allclose(scheduler.dispatch(deepest, {"a": a})["y"], np.exp(a), rtol=1e-5)
    for level in (65, 19_999):
        with pytest.raises(yr.GraphError, match="within 64 others"):
            scheduler.dispatch(yr.SubGraph((yr.OpNode(f"within{level}", "a", "y"),), "a", "y"), {"a": a})


def test_what_has_no_plan_falls_back_to_callables_and_is_told(yr, caplog):
    inputs = given(8, 64, dtype=np.float64)
    for fallback in (False, True):
        scheduler = yr.FusionScheduler(yr.FusionConfig(fallback_on_error=fallback))
        with caplog.at_level("INFO", "yirage"):
            scheduler.register_op("silu", silu)
        assert "`silu` is an operation of graphs: the callable runs where no plan can be made" in caplog.text
        with pytest.raises(yr.ArrayError) as refused:
            scheduler.dispatch(swiglu_graph(yr), inputs)
        assert ("no callable is registered for mul" in str(refused.value)) == fallback
        scheduler.register_op("mul", np.multiply)
        if not fallback:
            with pytest.raises(yr.ArrayError):
                scheduler.dispatch(swiglu_graph(yr), inputs)
            continue
        caplog.clear()
        with caplog.at_level("WARNING", "yirage"):
            made = scheduler.dispatch(swiglu_graph(yr), inputs)["output"]
        assert "no plan can be made and callables run operation by operation" in caplog.text
        assert made.dtype == np.float64 and np.array_equal(made, silu(inputs["gate"]) * inputs["up"])
        assert counted(scheduler, OURS) == [2, 1] and counted(scheduler) == [0] * 6
        # What a plan takes has one, whatever is registered.
        scheduler.dispatch(swiglu_graph(yr), given(32, 64))
        assert counted(scheduler, OURS) == [2, 1] and counted(scheduler) == [0, 1, 1, 1, 1, 0]


def test_what_is_wrong_is_named(yr):
    scheduler, graph, x = yr.FusionScheduler(), swiglu_graph(yr), random(8, 64)

    def dispatch(nodes, inputs=("x",), outputs=("y",)):
        return scheduler.dispatch(yr.SubGraph(nodes, inputs, outputs), {"x": x})

    with pytest.raises(yr.InputNotFoundError, match="`up` is missing; inputs are gate, up"):
        scheduler.dispatch(graph, {"gate": x})
    with pytest.raises(yr.InputNotFoundError, match="no input `down`"):
        scheduler.dispatch(graph, {"gate": x, "up": x, "down": x})
    for nodes, outputs, words in [
        ([yr.OpNode("silu", "z", "y")], "y", "reads `z`"),
        ([yr.OpNode("silu", "x", ())], "x", "silu has no output"),
        ([yr.OpNode("silu", "x", "x")], "x", "makes `x`, which is there already"),
        ([yr.OpNode("silu", "x", "y")], (), "output_names"),
        ([yr.OpNode("silu", "x", "y")], "z", "gives `z` back"),
        ([yr.OpNode("frobnicate", "x", "y")], "y", "`frobnicate` is no operation.*add, attention"),
        ([yr.OpNode("silu", ("x", "x"), "y")], "y", "2 operands are given; wanted are A"),
        ([yr.OpNode("rms_norm", ("x", "x", "x"), "y")], "y", "3 operands are given"),
        ([yr.OpNode("silu", "x", "y", {"eps": 1})], "y", "`eps`: no such attribute: it has none"),
        ([yr.OpNode("softmax", "x", "y")], "y", "`dim`: it is missing"),
        ([yr.OpNode("softmax", "x", "y", {"dim": 0.5})], "y", "a whole number"),
        ([yr.OpNode("softmax", "x", "y", {"dim": True})], "y", "a number wanted"),
        ([yr.OpNode("softmax", "x", "y", {"dim": "rows"})], "y", "a number, a bool or sizes wanted"),
        ([yr.OpNode("softmax", "x", "y", {"dim": 2})], "y", "no dimension 2"),
        ([yr.OpNode("silu", "x", ("y", "z"))], "y", "gives 1 values, and 2 outputs are named"),
    ]:
        with pytest.raises(yr.GraphError, match=words):
            dispatch(nodes, outputs=outputs)
    with pytest.raises(yr.GraphError, match="two inputs called `x`"):
        dispatch([yr.OpNode("silu", "x", "y")], inputs=("x", "x"))
    with pytest.raises(yr.OptionError, match="a callable, a SubGraph or a KNGraph"):
        scheduler.register_op("three", 3)
    with pytest.raises(yr.OptionError, match="take another name"):
        scheduler.register_op("silu", graph)
    with pytest.raises(yr.GraphError, match="which it was given or gives back already"):
        scheduler.register_op("same", yr.SubGraph((), "x", "x"))
    with pytest.raises((TypeError, AttributeError)):
        scheduler.dispatch("graph", {"x": x})
    with pytest.raises(yr.UnknownBackendError):
        yr.FusionScheduler(device="nonsense")
    assert counted(scheduler) == [0] * 6


def test_torch_gets_torch(yr):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed here")
    scheduler = yr.FusionScheduler(device="cpu")
    gate, up = torch.randn(32, 64), torch.randn(32, 64)
    made = scheduler.dispatch(swiglu_graph(yr), {"gate": gate, "up": up})["output"]
    assert isinstance(made, torch.Tensor)
    torch.testing.assert_close(made, torch.nn.functional.silu(gate) * up)


def test_threads_share_a_scheduler(yr):
    scheduler, graph, wrong = yr.FusionScheduler(), swiglu_graph(yr), []
    scheduler.register_op("silu", silu)

    def work(rows):
        inputs = given(rows, 128)
        for _ in range(20):
            made = scheduler.dispatch(graph, inputs)["output"]
            if not np.allclose(made, silu(inputs["gate"]) * inputs["up"], rtol=1e-4, atol=1e-5):
                wrong.append(rows)

    threads = [threading.Thread(target=work, args=(8 + number % 3,)) for number in range(6)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert wrong == [] and sum(counted(scheduler)[:2]) == 120 and counted(scheduler)[1] == 3


def test_the_names_of_infinicore_lead_here(yr, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "python/compat"))
    for name in [name for name in sys.modules if name.split(".")[0] == "infinicore"]:
        monkeypatch.delitem(sys.modules, name)
    from infinicore.fusion import FusionConfig, FusionScheduler, OpNode, SubGraph
    from infinicore.fusion.fusion_config import FusionConfig as Config
    from infinicore.fusion.fusion_scheduler import FusionScheduler as Scheduler
    from infinicore.fusion.patterns.llm_patterns import create_add_rms_norm_pattern, create_swiglu_pattern
    from infinicore.fusion.subgraph import OpNode as Node

    assert (FusionConfig, FusionScheduler, OpNode, SubGraph) == (Config, Scheduler, Node, yr.SubGraph)
    assert FusionScheduler is yr.FusionScheduler
    scheduler, x, weight = FusionScheduler(FusionConfig(debug_mode=True)), random(16, 128), random(128, seed=2)
    made = scheduler.dispatch(create_swiglu_pattern(), {"gate": x, "up": x})["output"]
    np.testing.assert_allclose(made, silu(x) * x, rtol=1e-5, atol=1e-6)
    inputs = {"x": x, "residual": x, "weight": weight}
    made = scheduler.dispatch(create_add_rms_norm_pattern(), inputs)["output"]
    rms = np.sqrt((4 * x.astype(np.float64) ** 2).mean(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(made, 2 * x / rms * weight, rtol=1e-5, atol=1e-6)
    assert set(scheduler.get_cache_stats()["fusion_modes"].values()) == {"fusion"}
