"""Failures on order: each is an error of a class, and nothing is answered with what was not computed."""

import pytest

np = pytest.importorskip("numpy")


def gated(yr, backend="sim"):
    graph = yr.new_kernel_graph(backend=backend)
    x, gate, up = (graph.new_input(dims, dtype="float32") for dims in ([8, 64], [64, 32], [64, 32]))
    graph.mark_output(graph.mul(graph.silu(graph.matmul(x, gate)), graph.matmul(x, up)))
    return graph


def arrays():
    rng = np.random.default_rng(3)
    return [rng.standard_normal(dims).astype(np.float32) for dims in [(8, 64), (64, 32), (64, 32)]]


@pytest.mark.parametrize("fault", ["alloc", "submit", "kernel", "lost"])
def test_a_fault_is_an_error_and_what_follows_is_right_again(yr, fault):
    inputs = arrays()
    (right,) = gated(yr, "cpu")(inputs=inputs)
    with yr.inject_faults(**{fault: 0}):
        graph = gated(yr)
        with pytest.raises(yr.DeviceError) as caught:
            graph(inputs=inputs)
        assert str(caught.value)
        if fault != "lost":
            np.testing.assert_allclose(graph(inputs=inputs)[0], right, rtol=1e-4, atol=1e-4)
        else:
            with pytest.raises(yr.DeviceError):
                graph(inputs=inputs)
    (y,) = gated(yr)(inputs=inputs)
    np.testing.assert_allclose(y, right, rtol=1e-4, atol=1e-4)


def test_as_much_goes_well_as_was_said(yr):
    inputs = arrays()
    with yr.inject_faults(kernel=10**6):
        gated(yr)(inputs=inputs)
    with yr.inject_faults(kernel=1):
        one = yr.new_kernel_graph(backend="sim")
        one.mark_output(one.exp(one.new_input([4], dtype="float32")))
        one(inputs=[np.zeros(4, np.float32)])
        with pytest.raises(yr.DeviceError):
            one(inputs=[np.zeros(4, np.float32)])
        one(inputs=[np.zeros(4, np.float32)])


def test_a_device_of_little_memory_says_how_much_it_has(yr):
    with yr.inject_faults(memory=4096):
        graph = yr.new_kernel_graph(backend="sim")
        graph.mark_output(graph.exp(graph.new_input([64, 64], dtype="float32")))
        with pytest.raises(yr.DeviceError):
            graph(inputs=[np.zeros((64, 64), np.float32)])


def test_a_fused_plan_that_fails_gives_way_with_the_same_result(yr):
    names = ("x", "gate", "up")
    nodes = (
        yr.OpNode("matmul", ("x", "gate"), "a"),
        yr.OpNode("silu", "a", "b"),
        yr.OpNode("matmul", ("x", "up"), "c"),
        yr.OpNode("mul", ("b", "c"), "y"),
    )
    graph, inputs = yr.SubGraph(nodes, names, "y"), dict(zip(names, arrays()))
    right = yr.FusionScheduler(device="cpu").dispatch(graph, inputs)["y"]
    config = yr.FusionConfig(min_tensor_elements=0)
    with yr.inject_faults(kernel=0):
        scheduler = yr.FusionScheduler(config, device="sim")
        np.testing.assert_allclose(scheduler.dispatch(graph, inputs)["y"], right, rtol=1e-4, atol=1e-4)
        assert scheduler.get_cache_stats()["fusion_fallbacks"] == 1
    with yr.inject_faults(kernel=0):
        strict = yr.FusionScheduler(yr.FusionConfig(min_tensor_elements=0, fallback_on_error=False), device="sim")
        with pytest.raises(yr.DeviceError):
            strict.dispatch(graph, inputs)


def test_devices_that_were_open_before_and_other_backends_work_as_ever(yr):
    inputs, before = arrays(), gated(yr)
    (right,) = before(inputs=inputs)
    with yr.inject_faults(kernel=0, alloc=0, submit=0):
        np.testing.assert_array_equal(before(inputs=inputs)[0], right)
        gated(yr, "cpu")(inputs=inputs)


def test_wrong_orders_are_refused(yr):
    def inject(**faults):
        with yr.inject_faults(**faults):
            pass

    with pytest.raises(yr.OptionError, match="at least"):
        inject()
    for number in (-1, 2**70):
        with pytest.raises(yr.OptionError, match=f"{number} is given"):
            inject(kernel=number)
    with yr.inject_faults(kernel=0):
        with pytest.raises(yr.OptionError, match="injected already"):
            inject(alloc=0)
    inject(alloc=0)
    with pytest.raises(ValueError, match="of the program"):
        with yr.inject_faults(kernel=0):
            raise ValueError("of the program")
    gated(yr)(inputs=arrays())
