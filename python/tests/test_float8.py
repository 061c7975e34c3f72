"""Layers of 8-bit floats beside PyTorch's numbers, which ``tools/oracle/float8_cases.py`` made, and arrays of such floats."""

import ctypes
import json

import pytest

np = pytest.importorskip("numpy", reason="NumPy is not installed here")

from layer_bench import Bench, silu  # noqa: E402 - it needs NumPy
from layer_models import ROOT  # noqa: E402
from counter_rng import at  # noqa: E402 - `layer_models` says where it lies

ROWS, N, K = 3, 130, 260
CASE = json.loads((ROOT / "crates/yirage-persistent/tests/fixtures/float8.json").read_text())


def numbers(seed, *sizes):
    """Numbers of -0.5 to 0.5, float32."""
    return ((at(seed, range(int(np.prod(sizes)))) >> np.uint64(40)) / 2**24 - 0.5).astype(np.float32).reshape(sizes)


def codes(seed, *sizes):
    """Bytes of E4M3 that are numbers."""
    return ((at(seed, range(int(np.prod(sizes)))) >> np.uint64(56)) & np.uint64(0xF7)).astype(np.uint8).reshape(sizes)


def by_block():
    """A scale for each block of 128 rows and columns."""
    return numbers(3, 2, 3) + np.float32(1)


def by_row():
    """A word of four exponents for each row."""
    return (120 + (at(4, range(N * 4)) >> np.uint64(61))).astype(np.uint8).view(np.int32).reshape(N, 1)


def quantised(b, name, values, ue8m0=True):
    """Rows that were quantised, with their scales."""
    dims = values.shape
    rows = b.kernel.new_tensor(dims, dtype="float8_e4m3fn", name=f"{name}.fp8")
    scale = b.kernel.new_tensor(dims[:1] + (1,), dtype="int32" if ue8m0 else "float32", name=f"{name}.scale")
    b.kernel.quantize_fp8_layer(b.kernel.attach_input(values, name), rows, scale, scale_ue8m0=ue8m0)
    return [rows, scale]


def product(yr, weight, scale, residual=None, **how):
    """A layer of 8-bit floats with this weight, which ``attach_input`` takes as it is."""
    b = Bench(yr)
    k, x = b.kernel, quantised(b, "x", numbers(2, ROWS, K))
    w = k.attach_input(weight, "w", **how)
    assert w.dtype == "float8_e4m3fn" and w.dims == (N, K)
    out = k.new_tensor((ROWS, N), dtype="float32", name="out")
    scale = k.attach_input(scale, "w.scale")
    if residual is None:
        k.linear_fp8_layer(*x, w, scale, out)
    else:
        k.linear_fp8_with_residual_layer(*x, w, scale, k.attach_input(residual, "residual"), out)
    return b.out()


def near(got, wanted, tolerance=1e-5):
    wanted = np.asarray(wanted).reshape(got.shape)
    np.testing.assert_allclose(got, wanted, rtol=0, atol=tolerance * np.abs(wanted).max())


@pytest.mark.parametrize(("key", "scale"), [("by_block", by_block()), ("by_row", by_row())], ids=["blocks", "rows"])
def test_products_of_8_bit_weights_are_those_of_pytorch(yr, key, scale):
    how = {"dtype": "float8_e4m3fn"}
    near(product(yr, codes(1, N, K), scale, **how), CASE[key])
    residual = numbers(5, ROWS, N)
    wanted = np.asarray(CASE[key]).reshape(ROWS, N) + residual
    near(product(yr, codes(1, N, K), scale, residual, **how), wanted)


def test_scales_of_rows_are_those_of_blocks_with_equal_rows(yr):
    blocks = by_block()
    rows = np.repeat(blocks, 128, axis=0)[:N]
    how = {"dtype": "float8_e4m3fn"}
    whole = product(yr, codes(1, N, K), blocks, **how)
    assert (product(yr, codes(1, N, K), rows, **how) == whole).all()
    columns = np.asfortranarray(rows)
    assert columns.strides[0] < columns.strides[1]
    assert (product(yr, codes(1, N, K), columns, **how) == whole).all(), "as they lie in Mirage: column by column"


class _Tensor(ctypes.Structure):
    """``DLManagedTensor`` of ``dlpack.h``."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]


NAME = b"dltensor"
capsule = ctypes.pythonapi.PyCapsule_New
capsule.restype, capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Shared:
    """Bytes of a NumPy array as DLPack has elements of a code."""

    def __init__(self, array, code):
        self.array, self.shape = array, (ctypes.c_int64 * array.ndim)(*array.shape)
        self.tensor = _Tensor(array.ctypes.data, 1, 0, array.ndim, code, 8, 1, self.shape)

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **_):
        return capsule(ctypes.addressof(self.tensor), NAME, None)


def test_arrays_of_8_bit_floats_are_taken_by_every_protocol(yr):
    wanted = product(yr, codes(1, N, K), by_block(), dtype="float8_e4m3fn")
    shared = Shared(codes(1, N, K), 10)
    assert (product(yr, shared, by_block()) == wanted).all()
    assert (product(yr, shared, by_block(), dtype="float8_e4m3fn") == wanted).all()
    wide = np.zeros((N, 2 * K), np.uint8)
    wide[:, ::2] = codes(1, N, K)
    assert (product(yr, wide[:, ::2], by_block(), dtype=yr.fp8_e4m3) == wanted).all()
    other = Shared(codes(1, N, K), 12)
    with pytest.raises(yr.ArrayError, match="code 12, 8 bits"):
        product(yr, other, by_block())


def test_arrays_of_ml_dtypes_are_read_where_they_lie(yr):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    weight = codes(1, N, K).view(ml_dtypes.float8_e4m3fn)
    near(product(yr, weight, by_block(), dtype=ml_dtypes.float8_e4m3fn), CASE["by_block"])
    near(product(yr, weight, by_block()), CASE["by_block"])


def test_tensors_of_pytorch_are_read_where_they_lie(yr):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed here")
    if not hasattr(torch, "float8_e4m3fn"):
        pytest.skip(f"PyTorch {torch.__version__} has no 8-bit floats")
    weight = torch.from_numpy(codes(1, N, K)).view(torch.float8_e4m3fn)
    near(product(yr, weight, torch.from_numpy(by_block())), CASE["by_block"])
    near(product(yr, weight, by_block(), dtype=torch.float8_e4m3fn), CASE["by_block"])


def test_bytes_stand_for_8_bit_floats_alone(yr):
    k = Bench(yr).kernel
    for array, dtype, class_, part in [
        (np.zeros((2, 2), np.uint8), None, yr.Unsupported, "uint8"),
        (np.zeros((2, 2), np.uint8), "float32", yr.Unsupported, "uint8"),
        (np.zeros((2, 2), np.float32), "float8_e4m3fn", yr.KernelError, "`w` is float32, and only uint8"),
        (np.zeros((2, 2), np.float32), "float8_e5m2", yr.Unsupported, "float8_e5m2"),
        (np.zeros((2, 2), np.int8), "float8_e4m3fn", yr.ArrayError, "elements of type int8"),
    ]:
        with pytest.raises(class_, match=part):
            k.attach_input(array, "w", dtype=dtype)
    assert k.attach_input(np.zeros((2, 2), np.float32), "w", dtype="float32").dtype == "float32"


@pytest.mark.parametrize("of_rows", [False, True])
def test_experts_of_8_bit_weights_equal_their_formula(yr, of_rows):
    experts, top_k, inner, width = 4, 2, 136, 16
    w13, w2 = codes(7, experts, 2 * inner, width), codes(8, experts, width, inner)
    s13, s2 = (numbers(9, experts, 3, 1) + 1) / 512, (numbers(10, experts, 1, 2) + 1) / 512
    every = np.array([np.nan if value is None else value for value in CASE["e4m3"]])

    def widened(weight, scale):
        scale = np.repeat(np.repeat(scale, 128, axis=1), 128, axis=2)[:, : weight.shape[1], : weight.shape[2]]
        return every[weight] * scale.astype(np.float64)

    ups, downs = widened(w13, s13), widened(w2, s2)
    if of_rows:
        s13, s2 = (np.repeat(s, 128, axis=1)[:, :n] for s, n in [(s13, 2 * inner), (s2, width)])
    b = Bench(yr)
    k, scores, xs = b.kernel, numbers(11, ROWS, experts), numbers(12, ROWS, width)

    def new(name, *sizes):
        return k.new_tensor((ROWS, *sizes), dtype="float32", name=name)

    chosen = [new("weights", top_k), new("indices", top_k)]
    how = {"num_groups": 1, "topk_group": 1, "routed_scaling_factor": 1.0}
    k.moe_topk_sigmoid_routing_layer(k.attach_input(scores, "scores"), None, chosen, **how)
    mask = k.new_tensor((experts + 1,), dtype="int32", name="mask")
    eight = {"dtype": "float8_e4m3fn"}
    wide, act, back = new("wide", top_k, 2 * inner), new("act", top_k, inner), new("out", top_k, width)
    gates = [k.attach_input(w13, "w13", **eight), k.attach_input(s13, "s13")]
    k.moe_w13_fp8_layer(*quantised(b, "x", xs, ue8m0=False), *gates, chosen[1], mask, wide)
    k.moe_silu_mul_layer(wide, act)
    rows = k.new_tensor((ROWS, top_k, inner), dtype="float8_e4m3fn", name="act.fp8")
    scale = k.new_tensor((ROWS, top_k, 2), dtype="float32", name="act.scale")
    k.quantize_fp8_layer(act, rows, scale, scale_ue8m0=False)
    k.moe_w2_fp8_layer(rows, scale, k.attach_input(w2, "w2", **eight), k.attach_input(s2, "s2"), chosen[1], None, back)
    found = {name: tensor.numpy() for name, tensor in k.run_test_mode().items()}
    wanted = np.zeros((ROWS, top_k, width))
    for row in range(ROWS):
        assert set(found["indices"][row]) == set(np.argsort(-scores[row])[:top_k])
        for place, expert in enumerate(found["indices"][row]):
            both = ups[expert] @ xs[row].astype(np.float64)
            wanted[row, place] = downs[expert] @ (silu(both[:inner]) * both[inner:])
    near(found["out"], wanted, 1e-4)


def test_what_means_something_else_is_told_once(yr, caplog):
    caplog.set_level("INFO", logger="yirage")
    b = Bench(yr)
    for name in ["x", "y"]:
        quantised(b, name, numbers(2, ROWS, K), ue8m0=False)
    told = [record.getMessage() for record in caplog.records]
    for part in ["scale_ue8m0 changes nothing", "widened to float32"]:
        assert sum(part in text for text in told) == 1, (part, told)


def test_what_is_wrong_with_scales_and_rows_is_told(yr):
    for scale, class_, part in [
        (np.ones((3, 2), np.float32), yr.ArrayError, r"`w.scale` are \[3, 2\].*\[2, 3\] or \[130, 3\]"),
        (np.full((2, 3), np.inf, np.float32), yr.ArrayError, "no finite number"),
    ]:
        with pytest.raises(class_, match=part):
            product(yr, codes(1, N, K), scale, dtype="float8_e4m3fn")
    spoilt = codes(1, N, K)
    spoilt[1, 7] = 0x7F
    with pytest.raises(yr.ArrayError, match="row 1, column 7 of matrix 0 is 0x7f"):
        product(yr, spoilt, by_block(), dtype="float8_e4m3fn")
    b = Bench(yr)
    k, x = b.kernel, quantised(b, "x", numbers(2, ROWS, K))
    w, scale = k.attach_input(codes(1, N, K), "w", dtype="float8_e4m3fn"), k.attach_input(by_block(), "w.scale")
    out = k.new_tensor((ROWS, N), dtype="float32", name="out")
    with pytest.raises(yr.KernelError, match="one quantize_fp8_layer wrote"):
        k.linear_fp8_layer(x[0], scale, w, scale, out)
    floats = k.attach_input(numbers(1, N, K), "floats")
    with pytest.raises(yr.KernelError, match="`floats` is float32, float8_e4m3fn is wanted"):
        k.linear_fp8_layer(*x, floats, scale, out)
    k.linear_fp8_layer(*x, w, scale, out)
    other = k.attach_input(by_row(), "other")
    with pytest.raises(yr.ArrayError, match="`w.scale` in one layer and `other` in another"):
        k.linear_fp8_layer(*x, w, other, out)
