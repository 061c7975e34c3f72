"""Models that read pictures: what transformers makes of prompts, in each form that a picture and a prompt may have."""

import asyncio
import base64
import io

import pytest

np = pytest.importorskip("numpy")

from model_files import golden_vision, vision_folder  # noqa: E402 - it needs NumPy


@pytest.fixture(scope="module")
def llava():
    return golden_vision("llava")


@pytest.fixture(scope="module")
def model(llava, tmp_path_factory):
    """The model's folder, with its pictures as files beside it."""
    files = tmp_path_factory.mktemp("pictures")
    for name, data in llava["pictures"].items():
        (files / f"{name}.png").write_bytes(data)
    return vision_folder(files / "llava", llava)


@pytest.fixture(scope="module")
def llm(model):
    import yirage

    with yirage.LLM(model, precision="exact", max_num_seqs=4) as loaded:
        yield loaded


@pytest.fixture
def greedy(yr):
    return yr.SamplingParams(temperature=0, max_tokens=12, ignore_eos=True)


def data_url(data):
    return "data:image/png;base64," + base64.b64encode(data).decode()


def content(llava, case, part):
    """The content of a case's message, with ``part(file)`` for each picture."""
    pictures = [part(llava["pictures"][name]) for name in case["pictures"]]
    return [*pictures, {"type": "text", "text": case["text"]}]


def is_as_wanted(request, case):
    assert request.prompt_token_ids == case["ids"], case["text"]
    assert request.outputs[0].token_ids == case["greedy"], case["text"]


def test_prompts_with_pictures_are_those_of_transformers(llm, llava, greedy):
    prompts = [
        {"prompt": case["prompt"], "multi_modal_data": {"image": [llava["pictures"][name] for name in case["pictures"]]}}
        for case in llava["cases"]
    ]
    for request, case in zip(llm.generate(prompts, greedy), llava["cases"], strict=True):
        is_as_wanted(request, case)
        assert request.prompt == case["prompt"]


def test_a_picture_may_have_any_of_its_forms(llm, llava, greedy, model):
    image = pytest.importorskip("PIL.Image")
    case, data = llava["cases"][0], llava["pictures"]["first"]
    opened = image.open(io.BytesIO(data))
    file = model.parent / "first.png"
    for given in (data, bytearray(data), str(file), file, opened, np.asarray(opened), (opened,), [data]):
        (request,) = llm.generate({"prompt": case["prompt"], "multi_modal_data": {"image": given}}, greedy)
        is_as_wanted(request, case)
    # One token stands for the picture, as in text.
    ids = llm.get_tokenizer().encode(case["prompt"])
    (request,) = llm.generate({"prompt_token_ids": ids, "multi_modal_data": {"image": opened}}, greedy)
    is_as_wanted(request, case)
    # With opacity, and in a mode that has neither three colours nor four.
    case, opened = llava["cases"][2], image.open(io.BytesIO(llava["pictures"]["second"]))
    for given in (opened, np.asarray(opened)):
        (request,) = llm.generate({"prompt": case["prompt"], "multi_modal_data": {"image": given}}, greedy)
        is_as_wanted(request, case)
    grey = opened.convert("L")
    prompts = [{"prompt": case["prompt"], "multi_modal_data": {"image": one}} for one in (grey, np.asarray(grey))]
    first, second = llm.generate(prompts, greedy)
    assert first.outputs[0].token_ids == second.outputs[0].token_ids


def test_conversations_have_pictures_in_each_of_their_forms(llm, llava, greedy):
    parts = [
        lambda data: {"type": "image_url", "image_url": {"url": data_url(data), "detail": "high"}},
        lambda data: {"type": "image_url", "image_url": data_url(data)},
        lambda data: {"type": "image_pil", "image_pil": data},
        lambda data: {"type": "image", "image": data},
    ]
    for part in parts:
        talks = [[{"role": "user", "content": content(llava, case, part)}] for case in llava["cases"]]
        for request, case in zip(llm.chat(talks, greedy), llava["cases"], strict=True):
            is_as_wanted(request, case)
    # Where pictures stand is all that a template sees.
    tokenizer = llm.get_tokenizer()
    for case in llava["cases"]:
        talk = [{"role": "user", "content": content(llava, case, lambda _: {"type": "image"})}]
        assert tokenizer.apply_chat_template(talk) == tokenizer.encode(case["prompt"]), case["prompt"]


def test_streams_and_engines_read_pictures(yr, llm, llava, greedy, model):
    case = llava["cases"][1]
    prompt = {"prompt": case["prompt"], "multi_modal_data": {"image": [llava["pictures"][n] for n in case["pictures"]]}}
    is_as_wanted(list(llm.stream(prompt, greedy))[-1], case)
    talk = [{"role": "user", "content": content(llava, case, lambda data: {"type": "image_pil", "image_pil": data})}]
    is_as_wanted(list(llm.chat_stream(talk, greedy))[-1], case)

    async def answered():
        engine = yr.AsyncLLMEngine(model, precision="exact")
        async for output in engine.generate(prompt, greedy):
            last = output
        engine.shutdown()
        return last

    is_as_wanted(asyncio.run(answered()), case)


def test_equal_pictures_share_what_was_computed(llm, llava, greedy):
    case = llava["cases"][1]
    llm.reset_prefix_cache()
    prompt = {"prompt": case["prompt"], "multi_modal_data": {"image": [llava["pictures"][n] for n in case["pictures"]]}}
    cached = [llm.generate(prompt, greedy)[0].num_cached_tokens for _ in range(2)]
    assert cached[0] == 0 < cached[1]


def test_what_is_no_picture_is_told(yr, llm, llava, bedtime):
    data = llava["pictures"]["first"]

    def of(given, prompt="<image>?", **further):
        return lambda: llm.generate({"prompt": prompt, "multi_modal_data": given} | further)

    def talk(part, role="user"):
        return lambda: llm.chat([{"role": role, "content": [part, {"type": "text", "text": "?"}]}])

    wrong = np.zeros((4, 4, 2), np.uint8)
    cases = [
        (of({"image": 3}), yr.RequestError, "the picture is a `int`"),
        (of({"image": "no/such.png"}), yr.RequestError, "no/such.png"),
        (of({"image": b"GIF89a"}), yr.RequestError, "PNG, JPEG or WebP"),
        (of({"image": np.zeros((4, 4, 3), np.float32)}), yr.RequestError, "array of float32"),
        (of({"image": wrong}), yr.RequestError, "[4, 4, 2]"),
        (of({"image": np.zeros((0, 4, 3), np.uint8)}), yr.RequestError, "4 x 0 pixels"),
        (of({"image": data}, prompt="no place"), yr.RequestError, "0 places for 1 pictures"),
        (of({"image": [data, data]}), yr.RequestError, "1 places for 2 pictures"),
        (of([data]), yr.RequestError, "multi_modal_data of prompt 0 is no dict"),
        (of({"audio": data}), yr.Unsupported, "multi_modal_data[\"audio\"]"),
        (of({"image": data}, mm_processor_kwargs={"size": 3}), yr.Unsupported, "mm_processor_kwargs"),
        (talk({"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}), yr.RequestError, "nothing is fetched"),
        (talk({"type": "image_url", "image_url": "data:image/png;base64,%"}), yr.RequestError, "no base64"),
        (talk({"type": "image"}), yr.RequestError, "1 parts are pictures, and 0 have one"),
        (talk({"type": "image_url"}), yr.RequestError, "'image_url'"),
        (talk({"type": "image_pil", "image_pil": data}, "assistant"), yr.RequestError, "`role` 'user'"),
    ]
    for call, kind, words in cases:
        with pytest.raises(kind) as caught:
            call()
        assert words in str(caught.value), str(caught.value)
    with yr.LLM(bedtime) as blind:
        for call in (
            lambda: blind.generate({"prompt": "a", "multi_modal_data": {"image": data}}),
            lambda: blind.chat([{"role": "user", "content": [{"type": "image_pil", "image_pil": data}]}]),
        ):
            with pytest.raises(yr.RequestError, match="reads no pictures"):
                call()
