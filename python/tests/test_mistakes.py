"""What users get wrong at first: each is an error of a class that can be caught, whose text says what is wrong, with which
numbers, and what is wanted. Python's note names the argument."""

import pytest

np = pytest.importorskip("numpy")

WHOLE = "a whole number from 0 to 4294967295 is wanted"


@pytest.fixture(scope="module")
def llm(bedtime):
    import yirage

    with yirage.LLM(bedtime) as model:
        yield model


def told(call, kind, *words, note=None):
    """Checks an error's class, what its text has, and the argument that its note names."""
    with pytest.raises(kind) as caught:
        call()
    for word in words:
        assert word in str(caught.value), str(caught.value)
    notes = getattr(caught.value, "__notes__", [])
    if note is not None:
        assert any(f"'{note}'" in line for line in notes), notes
    assert "panic" not in str(caught.value)


def graph_of(yr):
    graph = yr.new_kernel_graph()
    x = graph.new_input([8, 64], dtype=yr.float32)
    graph.mark_output(graph.silu(x))
    return graph, x


def test_sizes_out_of_their_range_name_number_range_and_argument(yr):
    graph, x = graph_of(yr)
    for call, number, argument in [
        (lambda: graph.new_input([-1, 4]), -1, "dims"),
        (lambda: graph.new_input([2**40]), 2**40, "dims"),
        (lambda: graph.new_input([2, 3], strides=[-3, 1]), -3, "strides"),
        (lambda: graph.chunk(x, -2, 0), -2, "chunks"),
        (lambda: graph.split(x, [-1, 9], 0), -1, "sizes"),
        (lambda: graph.rms_norm(x, [-1]), -1, "normalized_shape"),
        (lambda: graph.fuse_tensors([x, x], 0, -2), -2, "num_groups"),
        (lambda: graph.superoptimize(warmup_iters=-1), -1, "warmup_iters"),
        (lambda: yr.new_threadblock_graph((1, -1, 1), (128, 1, 1), 1), -1, "grid_dim"),
        (lambda: yr.new_threadblock_graph((1, 1, 1), (128, 1, 1), -4), -4, "forloop_range"),
        (lambda: yr.PersistentKernel().new_tensor((-1, 2), name="x"), -1, "dims"),
    ]:
        told(call, yr.OptionError, f"{number} is given", WHOLE, note=argument)
    told(lambda: yr.new_threadblock_graph((1, 1), (128, 1, 1), 1), yr.OptionError, "[1, 1]", "3 axes", note="grid_dim")


def test_things_that_are_no_lists_say_so(yr):
    graph, x = graph_of(yr)
    array = np.ones((8, 64), np.float32)
    told(lambda: graph.new_input(4), TypeError, "a `int` is given: a list of whole numbers", note="dims")
    told(lambda: graph.new_input("ab"), TypeError, "a `str` is given: a list of whole numbers", note="dims")
    told(lambda: graph.rms_norm(x, 64), TypeError, "a `int` is given: a list", note="normalized_shape")
    told(lambda: graph(inputs="a"), TypeError, "a `str` is given: a list of arrays, one for each input", note="inputs")
    # Rows of an array are arrays as well.
    told(lambda: graph(array), yr.InputNotFoundError, "8 inputs are given", "takes 1: in0 f32[8, 64]")


def test_types_of_elements_have_numpys_names(yr):
    graph, _ = graph_of(yr)
    for dtype in ("float64", "int8", "int16", "uint16", "complex64", "complex128", "object"):
        told(lambda dtype=dtype: graph(inputs=[np.ones((8, 64), dtype)]), yr.ArrayError, f"of type {dtype},", "convert it")


def test_a_file_that_is_no_graph_says_what_writes_one(yr, tmp_path):
    path = tmp_path / "graph.json"
    path.write_text("import yirage")
    told(lambda: yr.new_kernel_graph().from_json(str(path)), yr.GraphError, str(path), "no JSON", "to_json", "line 1")


@pytest.mark.parametrize("name", ["n", "max_tokens", "min_tokens", "logprobs", "prompt_logprobs", "seed"])
def test_counts_of_a_request_out_of_their_range_name_number_and_argument(yr, name):
    for number in (-1, 2**70):
        wanted = "a whole number from 0 to"
        told(lambda number=number: yr.SamplingParams(**{name: number}), yr.RequestError, f"{number} is", wanted, note=name)


def test_lists_of_a_request_say_what_they_hold(yr):
    params = yr.SamplingParams
    told(lambda: params(stop=3), TypeError, "a `int` is given: a text, or a list of texts", note="stop")
    told(lambda: params(bad_words=3), TypeError, "a `int` is given: a text, or a list of texts", note="bad_words")
    told(lambda: params(stop_token_ids=[5, -1]), yr.RequestError, "-1 is given", note="stop_token_ids")
    told(lambda: params(allowed_token_ids=[]), yr.RequestError, "allowed_token_ids=[]", "None")
    told(lambda: params(logit_bias={-1: 1.0}), yr.RequestError, "token -1", note="logit_bias")
    assert params(stop="a").stop == ["a"] and params(stop=("a", "b")).stop == ["a", "b"] and params().stop == []


def test_prompts_and_parameters_of_other_kinds_are_named(yr, llm):
    told(lambda: llm.generate({"prompt_token_ids": [1, -1]}), yr.RequestError, "prompt_token_ids of prompt 0", "-1")
    told(lambda: llm.generate("a", "hot"), TypeError, "sampling_params is a `str`", "SamplingParams")
    told(lambda: llm.generate("a", {"max_tokens": 2}), TypeError, "sampling_params is a `dict`", "SamplingParams")
    told(lambda: llm.embed("a"), yr.RequestError, "task='embed'")


@pytest.mark.parametrize(
    ("messages", "kind", "words"),
    [
        ("hi", TypeError, ["the conversation is a `str`", "'role': 'user'"]),
        ({"role": "user", "content": "x"}, TypeError, ["the conversation is a `dict`"]),
        ([], ValueError, ["there is none; give one at least"]),
        (["hi"], ValueError, ['message 0: "hi" is no dict']),
        ([{"content": "x"}], ValueError, ["message 0: its `role` is missing"]),
        ([{"role": "user", "content": "x"}, {"role": "user"}], ValueError, ["message 1: its `content` is missing"]),
        ([{"role": "user", "content": 3}], ValueError, ["message 0: its `content` is 3"]),
        ([{"role": "user", "content": [{"type": "image_url"}]}], ValueError, ["image_url", "'type': 'text'"]),
    ],
)
def test_messages_that_are_none_are_told_by_their_place(yr, llm, messages, kind, words):
    for call in (llm.chat, llm.chat_stream):
        told(lambda call=call: call(messages), kind, *words)


def test_an_engines_arguments_are_named(yr, bedtime):
    told(lambda: yr.FusedInferEngine(bedtime, fusion_config=3), TypeError, "fusion_config is a `int`", "FusionConfig")
    told(lambda: yr.FusionScheduler({"debug_mode": True}), TypeError, "a `dict` is given: a FusionConfig")
    for field, value in [("max_graph_size", -1), ("min_tensor_elements", "a"), ("cache_bytes", -5)]:
        config = yr.FusionConfig(**{field: value})
        told(lambda config=config: yr.FusionScheduler(config), yr.OptionError, f"FusionConfig.{field}: ")
    told(lambda: yr.FusedInferEngine(bedtime, warmup_iterations=-1), yr.OptionError, WHOLE, note="warmup_iterations")
    with yr.InferEngine(bedtime) as engine:
        for wrong in (np.array([[3, -1]]), [[3, -1]], [3, -1]):
            told(lambda wrong=wrong: engine.forward(wrong), yr.RequestError, "input_ids is a", "-1 is given")
        told(lambda: engine.forward(np.array([[1.5]])), yr.RequestError, "1.5 is given")


@pytest.mark.parametrize(
    ("option", "note"),
    [({"threads": -1}, "threads"), ({"max_model_len": -1}, "max_model_len"), ({"max_num_seqs": -1}, "max_num_seqs")],
)
def test_options_of_a_model_name_number_and_argument(yr, bedtime, option, note):
    told(lambda: yr.LLM(bedtime, **option), yr.OptionError, "-1 is given: a whole number from 0 to", note=note)
