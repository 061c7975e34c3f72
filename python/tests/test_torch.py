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
    with pytest.raises(yr.ArrayError, match="float64"):
        graph(inputs=[torch.zeros(2, dtype=torch.float64)])


def test_results_are_torchs_own(yr):
    graph = yr.new_kernel_graph()
    graph.mark_output(graph.exp(graph.new_input([2], dtype="float32")))
    results = [graph(inputs=[torch.full((2,), float(i))])[0] for i in range(4)]
    results[0].add_(1)
    torch.testing.assert_close(torch.stack(results[1:]), torch.exp(torch.tensor([[1.0] * 2, [2.0] * 2, [3.0] * 2])))


def test_a_kernel_writes_into_tensors(yr):
    pytest.importorskip("numpy", reason="NumPy is not installed here")
    from layer_models import golden, made

    case = golden("llama")["cases"][1]
    prompt, wanted = case["ids"], case["greedy16"]
    positions = len(prompt) + len(wanted)
    step = torch.tensor([len(prompt) - 1], dtype=torch.int32)
    tokens = torch.zeros((1, positions), dtype=torch.long)
    tokens[0, : len(prompt)] = torch.tensor(prompt)
    before = tokens.data_ptr()
    kernel, _ = made(yr, "llama", [prompt], positions, meta=[step, tokens])
    assert kernel().finished
    assert tokens.tolist() == [prompt + wanted] and step.tolist() == [positions - 1] and tokens.data_ptr() == before
    kernel.load_new_request(0, torch.tensor(prompt))
    assert step.item() == len(prompt) - 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_layers_of_tensors_equal_those_of_torch(yr, dtype):
    torch.manual_seed(2)
    kernel = yr.PersistentKernel(test_mode=True, precision="exact")
    x, w, norm = torch.randn(4, 32), torch.randn(8, 32).to(dtype), torch.rand(32).to(dtype)
    out = torch.zeros(4, 8, dtype=dtype)
    tensors = [kernel.attach_input(t, name) for t, name in [(x, "x"), (norm, "norm"), (w, "w"), (out, "out")]]
    assert tensors[2].dtype == str(dtype).removeprefix("torch.")
    kernel.rmsnorm_linear_layer(*tensors)
    for _ in range(2):
        found = kernel.run_test_mode()["out"].torch()
        wanted = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * norm.float() @ w.float().T
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(out, wanted.to(dtype), rtol=1e-2, atol=1e-2)
        x.mul_(-2).add_(1)  # what is attached is read anew, where it lies


def test_columns_of_a_matrix_are_attached_as_they_lie(yr):
    kernel = yr.PersistentKernel(test_mode=True)
    x, w = torch.randn(4, 6), torch.randn(6, 5).t()
    assert not w.is_contiguous()
    y = kernel.new_tensor((4, 5), dtype=torch.float32, name="y")
    kernel.linear_layer(kernel.attach_input(x, "x"), kernel.attach_input(w, "w"), y, (1, 1, 1), (128, 1, 1))
    torch.testing.assert_close(kernel.run_test_mode()["y"].torch(), x @ w.t(), rtol=1e-5, atol=1e-5)
