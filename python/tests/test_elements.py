"""Elements that a backend stores, whether graphs compute with them or not: copied, shown and shared bit by bit."""

import pytest

np = pytest.importorskip("numpy", reason="NumPy is not installed here")

WHOLE = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
ALL = [*WHOLE, "float16", "float32", "float64", "bool"]


def values(name):
    """The ends of the type's range, and numbers between them."""
    if name == "bool":
        return np.array([[True, False, True], [False, False, True]])
    of = np.iinfo(name) if name in WHOLE else np.finfo(name)
    return np.array([[of.min, of.max, 0], [1, 2, 3]], name)


@pytest.mark.parametrize("name", ALL)
def test_arrays_of_every_type_are_copied_bit_by_bit(yr, name):
    backend, given = yr.get_backend("cpu"), values(name)
    there = backend.copy_to_device(given)
    back = backend.copy_to_host(there)
    for tensor in [there, back]:
        assert tensor.dtype == name and tensor.shape == given.shape and tensor.nbytes == given.nbytes
        assert tensor.tolist() == given.tolist()
        # NumPy reads truth values by DLPack since 1.25 alone.
        shared = [] if name == "bool" else [np.from_dlpack(tensor)]
        for taken in [tensor.numpy(), np.asarray(tensor), *shared]:
            assert taken.dtype == given.dtype and taken.tobytes() == given.tobytes()
    assert there.data_ptr() != back.data_ptr()
    given[...] = 0
    assert there.tolist() == back.tolist() != given.tolist(), "a copy"
    one = np.array([values(name)[1, 2]])
    assert backend.copy_to_device(one).item() == one.item()


@pytest.mark.parametrize("name", ALL)
def test_zeros_are_of_every_type(yr, name):
    zeros = yr.get_backend("cpu").allocate_tensor([2, 3], dtype=name)
    assert zeros.dtype == name and zeros.numpy().dtype == name and zeros.tolist() == np.zeros((2, 3), name).tolist()
    assert yr.get_backend("cpu").allocate_tensor([0, 3], dtype=np.dtype(name)).tolist() == []


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn"])
def test_types_of_ml_dtypes_are_copied(yr, name):
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed here")
    every = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn)
    given = every if name == "float8_e4m3fn" else every.astype(np.float32).astype(ml_dtypes.bfloat16)
    tensor = yr.get_backend("cpu").copy_to_device(given)
    assert tensor.dtype == name and tensor.numpy().tobytes() == given.tobytes()
    np.testing.assert_array_equal(tensor.tolist(), given.astype(np.float64))


def test_what_no_graph_computes_with_is_refused_where_it_is_given_to_one(yr):
    graph = yr.new_kernel_graph()
    x = graph.new_input([2, 3], dtype="float32")
    graph.mark_output(graph.relu(x))
    wide = yr.get_backend("cpu").copy_to_device(values("float64"))
    with pytest.raises(yr.ArrayError, match="elements of type float64, and float32, float16"):
        graph(inputs=[wide])
    kernel = yr.PersistentKernel(test_mode=True)
    ids = yr.get_backend("cpu").copy_to_device(values("int64"))
    assert kernel.attach_input(ids, "ids").dtype == "int64"
    with pytest.raises(yr.ArrayError, match="`wide` has elements of type float64"):
        kernel.attach_input(wide, "wide")


def test_what_is_not_stored_is_told(yr):
    backend = yr.get_backend("cpu")
    with pytest.raises(yr.ArrayError, match="complex64.*int64.*float64.*int8.*are stored"):
        backend.copy_to_device(np.zeros(2, np.complex64))
    with pytest.raises(yr.ArrayError, match="make it contiguous"):
        backend.copy_to_device(np.zeros((4, 4), np.int64)[:, ::2])
    with pytest.raises(yr.ArrayError, match="complex128"):
        backend.allocate_tensor([2], dtype="complex128")
    with pytest.raises(yr.DeviceError, match=r"allocate_tensor of \[4294967295, 4294967295, 8\] elements of float64"):
        backend.allocate_tensor([2**32 - 1, 2**32 - 1, 8], dtype="float64")
    with pytest.raises(yr.OptionError, match="-1 is given"):
        backend.allocate_tensor([-1])
