"""What a search takes, says and refuses, and what `equivalent` says whichever graph is named first."""

import pytest

np = pytest.importorskip("numpy")


def graph_of(yr, shapes, op, dtype="float32"):
    graph = yr.new_kernel_graph()
    graph.mark_output(op(graph, *[graph.new_input(list(shape), dtype=dtype) for shape in shapes]))
    return graph


SQUARE = (384, 384)


def products(yr):
    """A row by a product of matrices, which takes hundreds of times as long as two products of a row."""
    return graph_of(yr, [(1, 384), SQUARE, SQUARE], lambda g, x, a, b: g.matmul(x, g.matmul(a, b)))


QUICK = {"profile_iters": 15, "warmup_iters": 1, "budget": 500, "use_cached_graphs": False}


@pytest.mark.parametrize(
    ("name", "values", "wanted"),
    [
        ("budget", [0, -1, 10**12, 10**30], "whole number from "),
        ("profile_iters", [0, -5, 10**7, 2**40], "whole number from "),
        ("warmup_iters", [-1, 10**7, 2**40], "whole number from "),
        ("time_limit", [0, 0.0, -1.0, float("nan"), float("inf"), 1e9, 1e300], "wanted"),
        ("franges", [[0], [-1], [2, 10**8]], "whole number from "),
        ("griddims", [[(0, 1, 1)], [(1, 1, 10**8)], [(-1, 1, 1)], [(1, 1)], [(2**70, 1, 1)]], "wanted"),
        ("blockdims", [[(128, 0, 1)], [(10**8, 1, 1)], [(128, -1, 1)]], "wanted"),
        ("imaps", [[(-2, 0, 0)], [(9, 0, 0)], [(2**40, 0, 0)], [(0, 0)]], "wanted"),
        ("omaps", [[(0, -7, 0)], [(0, 9, 0)]], "wanted"),
        ("fmaps", [[-2], [9], [2**40]], "wanted"),
    ],
)
def test_limits_that_no_search_can_follow_are_refused_by_name(yr, name, values, wanted):
    graph = products(yr)
    for value in values:
        with pytest.raises(yr.OptionError) as caught:
            graph.superoptimize(**{**QUICK, name: value})
        told = str(caught.value) + " ".join(getattr(caught.value, "__notes__", []))
        assert name in told and wanted in told, told


def test_a_kind_of_graph_that_is_none_is_refused_by_name(yr):
    for config in ("", "moe", "Attention", "mlp "):
        with pytest.raises(yr.OptionError, match="config=.*'attention', 'lora' or 'mlp' is wanted"):
            products(yr).superoptimize(**{**QUICK, "config": config})


def test_limits_at_their_ends_are_taken(yr):
    graph = graph_of(yr, [(2, 8)], lambda g, x: g.exp(x))
    kept = graph.superoptimize(warmup_iters=0, profile_iters=1, budget=1, time_limit=604800, use_cached_graphs=False)
    assert yr.equivalent(graph, kept)


def test_why_tells_of_the_certificate_and_of_the_measurement(yr):
    graph = products(yr)
    found = graph.superoptimize(**QUICK)
    told = found.why()
    assert "chosen: the candidate by" in told, told
    for word in ["certificate: ", "proved equal to the input graph", "method: ", "finite fields", "domain: sizes fixed"]:
        assert word in told, f"{word}: {told}"
    for word in ["elements of outputs were compared", "probability of at most 2^-", "in floats: ", "assumed: "]:
        assert word in told, f"{word}: {told}"
    # Measured on what, beside what, how often, and once more.
    for word in ["measured on cpu", "in turns with the input graph", "of 15 pairs", "shortest steps", "looked at again: "]:
        assert word in told, f"{word}: {told}"
    # A result that the process has says the same.
    again = products(yr).superoptimize(**QUICK).why()
    assert again.split("search:")[1] == told.split("search:")[1]


def test_why_of_a_graph_that_stays_says_so(yr):
    graph = graph_of(yr, [(2, 8)], lambda g, x: g.exp(x))
    # No tiling has such a grid.
    told = graph.superoptimize(**QUICK, griddims=[(7, 1, 1)]).why()
    assert "the input graph stays" in told and "certificate: " not in told, told


def softmax(graph, x):
    """A softmax that no maximum keeps from overflow."""
    powers = graph.exp(x)
    return graph.div(powers, graph.reduction(powers, 1))



# Graphs of one input, and whether they compute the same. Of the first four one rounds more than the other, or overflows.
PAIRS = {
    "a softmax without its maximum": (softmax, lambda g, x: g.softmax(x, 1), True),
    "a variance that cancels": (
        lambda g, x: g.sub(mean(g, g.square(x)), g.square(mean(g, x))),
        lambda g, x: mean(g, g.square(g.sub(x, mean(g, x)))),
        True,
    ),
    "exponentials of a sum": (lambda g, x: g.mul(g.exp(x), g.exp(x)), lambda g, x: g.exp(g.add(x, x)), True),
    "a difference of squares": (
        lambda g, x: g.sub(g.square(x), g.square(mean(g, x))),
        lambda g, x: g.mul(g.sub(x, mean(g, x)), g.add(x, mean(g, x))),
        True,
    ),
    "a square": (lambda g, x: g.mul(x, x), lambda g, x: g.square(x), True),
    "a square and twice": (lambda g, x: g.mul(x, x), lambda g, x: g.add(x, x), False),
    "relu and itself": (lambda g, x: g.relu(x), lambda g, x: g.mul_scalar(x, 1.0), False),
}


def mean(graph, x):
    return graph.mul_scalar(graph.reduction(x, 1), 1 / 16)


@pytest.mark.parametrize("name", PAIRS)
def test_equivalence_does_not_depend_on_which_is_named_first(yr, name):
    one, other, equal = PAIRS[name]
    a, b = (graph_of(yr, [(4, 16)], op) for op in (one, other))
    there, back = yr.equivalent(a, b), yr.equivalent(b, a)
    assert bool(there) == bool(back) == equal, (there, back)
    assert (there.b_for_a, there.a_for_b) == (back.a_for_b, back.b_for_a)
    assert there.equal == (there.b_for_a or there.a_for_b)
    assert (there.certificate is None) == (not equal) and (there.false_accept_log2 is None) == (not equal)
    if equal and not (there.b_for_a and there.a_for_b):
        assert "may not stand for" in there.reason, there


def test_a_softmax_that_overflows_may_not_stand_for_one_that_does_not(yr):
    bare, shifted = (graph_of(yr, [(4, 16)], op) for op in (softmax, lambda g, x: g.softmax(x, 1)))
    found = yr.equivalent(shifted, bare)
    assert found and found.a_for_b and not found.b_for_a
    assert "b may not stand for a" in found.reason and "large_logits" in found.reason


def test_an_input_that_nobody_reads_makes_no_difference_in_either_order(yr):
    one = graph_of(yr, [(4, 8)], lambda g, x: g.add(x, x))
    two = graph_of(yr, [(4, 8), (4, 8)], lambda g, x, _: g.mul_scalar(x, 2.0))
    read = graph_of(yr, [(4, 8), (4, 8)], lambda g, x, z: g.add(x, z))
    assert yr.equivalent(one, two) and yr.equivalent(two, one)
    assert not yr.equivalent(one, read) and not yr.equivalent(read, one)


def test_graphs_of_other_shapes_types_and_numbers_of_results_differ_in_both_orders(yr):
    one = graph_of(yr, [(4, 8)], lambda g, x: g.exp(x))
    both = yr.new_kernel_graph()
    x = both.new_input([4, 8], dtype="float32")
    both.mark_output(both.exp(x))
    both.mark_output(both.exp(x))
    others = [both, graph_of(yr, [(8, 4)], lambda g, x: g.exp(x)), graph_of(yr, [(4, 8)], lambda g, x: g.exp(x), "float16")]
    for other in others:
        there, back = yr.equivalent(one, other), yr.equivalent(other, one)
        assert not there and not back and "called alike" in there.reason and "called alike" in back.reason
