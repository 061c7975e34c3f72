"""5,000 calls of graphs of one operation each, of random sizes, strides, types and values, beside NumPy in float64.

What is not a number and what is infinite is among the values, wrong arrays are among the calls, and each graph is called
again with other values. Tensors of PyTorch take bfloat16, which NumPy has not.
"""

import importlib.util
import math

import pytest

np = pytest.importorskip("numpy")
torch = importlib.util.find_spec("torch") and pytest.importorskip("torch")

CALLS_OF_AN_OPERATION = 240
CALLS_OF_A_GRAPH = 3
# One unit in the last place of each type, and a few more for the steps between.
TOLERANCES = {"float32": 1e-5, "float16": 2e-3, "bfloat16": 1.6e-2}
TYPES = ["float32", "float16", *(["bfloat16"] if torch else [])]


def erf(x):
    return np.vectorize(math.erf, otypes=[np.float64])(x)


def softmax(x, dim):
    powers = np.exp(x - x.max(dim, keepdims=True))
    return powers / powers.sum(dim, keepdims=True)


def rms(x):
    return x / np.sqrt(np.mean(np.square(x), -1, keepdims=True))


class Case:
    """Inputs of one operation, which differ from call to call, and what NumPy makes of them."""

    def __init__(self, rng, name):
        self.rng, self.name = rng, name
        self.dtype = str(rng.choice(TYPES))
        rank = int(rng.integers(2 if name == "matmul" else 1, 5))
        self.dims = [tuple(int(n) for n in rng.integers(1, 10, rank))]
        self.dim = int(rng.integers(rank))
        self.special = True
        getattr(self, f"of_{KINDS[name]}")()
        # The first axis or the last is the outermost in memory, as Mirage has it.
        self.orders = [np.arange(len(dims))[:: rng.choice([1, -1])] for dims in self.dims]

    def of_unary(self):
        pass

    def of_binary(self):
        other = [n if self.rng.random() < 0.6 else 1 for n in self.dims[0]]
        first = [n if self.rng.random() < 0.8 else 1 for n in self.dims[0]]
        self.dims = [tuple(first), tuple(other)]

    def of_product(self):
        *batch, m, k = self.dims[0]
        k *= int(self.rng.integers(1, 12))
        self.dims = [(*batch, m, k), (*batch, k, int(self.rng.integers(1, 40)))]

    def of_sum(self):
        pass

    def of_norm(self):
        self.special = False

    def of_pieces(self):
        more = list(self.dims[0])
        more[self.dim] = int(self.rng.integers(1, 6))
        self.dims.append(tuple(more))

    def build(self, yr):
        graph = yr.new_kernel_graph()
        inputs = []
        for dims, order in zip(self.dims, self.orders):
            strides, step = [0] * len(dims), 1
            for axis in reversed(order):
                strides[axis], step = step, step * dims[axis]
            inputs.append(graph.new_input(list(dims), strides=strides, dtype=self.dtype))
        graph.mark_output(self.apply(graph, inputs))
        return graph

    def apply(self, graph, inputs):
        one = inputs[0]
        match self.name:
            case "clamp":
                return graph.clamp(one, -0.75, 0.5)
            case "mul_scalar":
                return graph.mul_scalar(one, -1.5)
            case "reduction" | "max" | "softmax":
                return getattr(graph, self.name)(one, self.dim)
            case "rms_norm":
                return graph.rms_norm(one, [self.dims[0][-1]])
            case "concat":
                return graph.concat(inputs, self.dim)
            case _:
                return getattr(graph, self.name)(*inputs)

    def values(self):
        """Numbers of the type, as float64."""
        made = []
        for dims in self.dims:
            x = self.rng.standard_normal(dims)
            if self.name in ("sqrt", "log", "pow"):
                x = np.abs(x) + 0.1
            if self.special and self.rng.random() < 0.3:
                kinds = [np.nan, np.inf, 0.0]
                # What is nothing times infinity is told nowhere.
                if self.name not in ("silu", "gelu"):
                    kinds.append(-np.inf)
                x.flat[int(self.rng.integers(x.size))] = self.rng.choice(kinds)
            made.append(self.rounded(x))
        return made

    def rounded(self, x):
        if self.dtype == "bfloat16":
            return torch.from_numpy(x).to(torch.bfloat16).double().numpy()
        return x.astype(self.dtype).astype(np.float64)

    def arrays(self, values):
        """Those numbers in memory as the graph was told."""
        made = []
        for x, order in zip(values, self.orders):
            straight = np.ascontiguousarray(x.transpose(order))
            back = np.argsort(order)
            if self.dtype == "bfloat16":
                made.append(torch.from_numpy(straight).to(torch.bfloat16).permute(*back.tolist()))
            else:
                made.append(straight.astype(self.dtype).transpose(back))
        return made

    def wanted(self, values):
        x = values[0]
        with np.errstate(all="ignore"):
            return FORMULAS[self.name](self, x, *values[1:])

    def tolerance(self, values):
        """How far a result may be, relative and absolute."""
        unit = TOLERANCES[self.dtype]
        finite = [np.where(np.isfinite(x), np.abs(x), 0) for x in values]
        if self.name == "matmul":
            return unit, 2e-6 + 1e-6 * float((finite[0] @ finite[1]).max())
        if self.name == "reduction":
            return unit, 2e-6 + 1e-6 * float(finite[0].sum(self.dim).max())
        return unit, unit * (0.02 if self.dtype != "float32" else 0.2)


FORMULAS = {
    "exp": lambda case, x: np.exp(x),
    "silu": lambda case, x: x / (1 + np.exp(-x)),
    "gelu": lambda case, x: x / 2 * (1 + erf(x / math.sqrt(2))),
    "relu": lambda case, x: np.where(np.isnan(x), x, np.maximum(x, 0)),
    "sqrt": lambda case, x: np.sqrt(x),
    "square": lambda case, x: np.square(x),
    "sigmoid": lambda case, x: 1 / (1 + np.exp(-x)),
    "log": lambda case, x: np.log(x),
    "clamp": lambda case, x: np.clip(x, -0.75, 0.5),
    "mul_scalar": lambda case, x: x * -1.5,
    "add": lambda case, x, y: x + y,
    "sub": lambda case, x, y: x - y,
    "mul": lambda case, x, y: x * y,
    "div": lambda case, x, y: x / y,
    "pow": lambda case, x, y: np.power(x, y),
    "matmul": lambda case, x, y: x @ y,
    "reduction": lambda case, x: x.sum(case.dim, keepdims=True),
    "max": lambda case, x: x.max(case.dim, keepdims=True),
    "softmax": lambda case, x: softmax(x, case.dim),
    "rms_norm": lambda case, x: rms(x),
    "concat": lambda case, x, y: np.concatenate([x, y], case.dim),
}
KINDS = dict.fromkeys(FORMULAS, "unary") | {
    **dict.fromkeys(["add", "sub", "mul", "div", "pow"], "binary"),
    "matmul": "product",
    **dict.fromkeys(["reduction", "max"], "sum"),
    **dict.fromkeys(["softmax", "rms_norm"], "norm"),
    "concat": "pieces",
}


def wrong(rng, arrays):
    """Arrays of which one has another shape, type or order in memory, or of which there is one more."""
    at = int(rng.integers(len(arrays)))
    one = arrays[at]
    kind = int(rng.integers(4))
    if kind == 0:
        return [*arrays, one]
    if kind == 1:
        other = one.reshape(*one.shape, 1)
    elif kind == 2:
        other = one.double() if torch and isinstance(one, torch.Tensor) else one.astype(np.float64)
    else:
        # Each second element of an array twice as long.
        pair = torch.cat if torch and isinstance(one, torch.Tensor) else np.concatenate
        other = pair([one, one], -1)[..., ::2] if math.prod(one.shape) > 1 else one.reshape(-1)[:0]
    return [*arrays[:at], other, *arrays[at + 1 :]]


def numbers(array):
    return array.double().numpy() if torch and isinstance(array, torch.Tensor) else array.astype(np.float64)


@pytest.mark.parametrize("name", FORMULAS)
def test_random_calls_equal_formulas_in_float64(yr, name):
    rng = np.random.default_rng(list(FORMULAS).index(name))
    for round in range(CALLS_OF_AN_OPERATION // CALLS_OF_A_GRAPH):
        case = Case(rng, name)
        graph = case.build(yr)
        for call in range(CALLS_OF_A_GRAPH):
            values = case.values()
            arrays = case.arrays(values)
            if rng.random() < 0.3:
                with pytest.raises((yr.ArrayError, yr.InputNotFoundError)):
                    graph(inputs=wrong(rng, arrays))
            (found,) = graph(inputs=arrays)
            told = f"{name} {case.dtype} {case.dims} in memory {case.orders}, round {round}, call {call}"
            relative, absolute = case.tolerance(values)
            wanted = case.rounded(case.wanted(values))
            np.testing.assert_allclose(numbers(found), wanted, rtol=relative, atol=absolute, err_msg=told)
            for array, value in zip(arrays, values):
                np.testing.assert_array_equal(numbers(array), value, err_msg=f"{told}: an input was written")
