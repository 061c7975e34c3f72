"""Tensors of PyTorch, in and out without a copy."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed here")


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float16, 2e-3), (torch.bfloat16, 1e-2)]
)
def test_operations_equal_those_of_torch(yr, dtype, tolerance):
    torch.manual_seed(1)
    graph = yr.new_kernel_graph()
    x, w = graph.new_input([4, 32], dtype=dtype), graph.new_input([32, 8], dtype=dtype)
    graph.mark_output(graph.matmul(graph.silu(x), w))
    a, b = torch.randn(4, 32, dtype=dtype), torch.randn(32, 8, dtype=dtype) / 8
    (y,) = graph(inputs=[a, b])
    assert isinstance(y, torch.Tensor) and y.dtype == dtype
    wanted = torch.nn.functional.silu(a.float()).to(dtype).float() @ b.float()
    torch.testing.assert_close(y.float(), wanted, rtol=tolerance, atol=tolerance * 2)


def test_tensors_are_taken_and_given_where_they_lie(yr):
    graph = yr.new_kernel_graph()
    x = graph.new_input([3, 4], strides=[1, 3], dtype=torch.float32)
    graph.mark_output(graph.exp(x))
    a = torch.randn(4, 3).t()
    (y,) = graph(inputs=[a])
    torch.testing.assert_close(y, torch.exp(a))
    tensor = yr.get_backend("cpu").allocate_tensor([2, 2])
    shared = torch.from_dlpack(tensor)
    assert shared.data_ptr() == tensor.data_ptr()
    shared[0, 0] = 3
    assert tensor.tolist() == [[3.0, 0.0], [0.0, 0.0]]
    assert tensor.torch().data_ptr() == tensor.data_ptr()


def test_what_torch_does_not_share_is_told(yr):
    graph = yr.new_kernel_graph()
    graph.mark_output(graph.exp(graph.new_input([2], dtype="float32")))
    with pytest.raises(yr.ArrayError, match="detach"):
        graph(inputs=[torch.zeros(2, requires_grad=True)])
    with pytest.raises(yr.ArrayError, match="code 2, 64 bits"):
        graph(inputs=[torch.zeros(2, dtype=torch.float64)])


def test_results_are_torchs_own(yr):
    graph = yr.new_kernel_graph()
    graph.mark_output(graph.exp(graph.new_input([2], dtype="float32")))
    results = [graph(inputs=[torch.full((2,), float(i))])[0] for i in range(4)]
    results[0].add_(1)
    torch.testing.assert_close(torch.stack(results[1:]), torch.exp(torch.tensor([[1.0] * 2, [2.0] * 2, [3.0] * 2])))
