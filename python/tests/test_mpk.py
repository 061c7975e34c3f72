"""Models as persistent kernels by their files: ``MPK``, ``SimplePersistentKernel``, and the settings around them."""

import pytest

np = pytest.importorskip("numpy", reason="NumPy is not installed here")

from layer_models import golden  # noqa: E402 - it needs NumPy
from model_files import folder  # noqa: E402


@pytest.mark.parametrize("name", ["llama", "qwen3", "qwen3moe"])
def test_kernels_of_files_give_the_tokens_of_transformers(yr, tmp_path, name):
    path = folder(tmp_path / name, name)
    for case in golden(name)["cases"][:2]:
        positions = len(case["ids"]) + 16
        kernel = yr.PersistentKernel(max_seq_length=positions)
        kernel.build_model(path)
        kernel.compile()
        kernel.load_new_request(0, case["ids"])
        assert kernel().finished
        assert kernel.meta_tensors["tokens"].tolist()[0] == case["ids"] + case["greedy16"]


def test_an_mpk_answers_as_llm_does(yr, tmp_path):
    path = folder(tmp_path / "llama", "llama")
    prompts = ["Once upon a time", "two"]
    with yr.LLM(path, precision="exact") as llm:
        params = yr.SamplingParams(temperature=0.0, max_tokens=64, ignore_eos=True)
        wanted = [of.outputs[0].token_ids for of in llm.generate(prompts, params, use_tqdm=False)]
    meta = yr.MPKMetadata(model_path=path, total_num_requests=2, max_seq_length=48, eos_token_id=-1)
    with yr.MPK(meta) as mpk:
        assert not mpk.is_built and not mpk.is_compiled
        texts = mpk.run(prompts, use_template=False)
        assert mpk.is_built and mpk.is_compiled
        for prompt, row, ids, text in zip(prompts, mpk.tokens.tolist(), wanted, texts):
            given = mpk.tokenizer.encode(prompt)
            assert row == given + list(ids)[: 48 - len(given)]
            assert text == mpk.decode(row) and text.startswith(prompt)
        assert mpk.run("two", use_template=False) == [texts[1]] * 2
        mpk.clear_buffers()
        assert mpk.step.tolist() == [0, 0]
        with pytest.raises(yr.RequestError, match="3 prompts for 2 rows"):
            mpk.load_new_request(["a"] * 3)
        with pytest.raises(yr.YirageError):
            mpk.load_new_request("hello")  # the files have no template of conversations


def test_metadata_of_an_mpk_is_checked_and_told(yr, tmp_path, capsys):
    for changes, class_, part in [
        ({}, yr.OptionError, "model_name and model_path"),
        ({"model_name": "x", "weight_from_model": False}, yr.Unsupported, "attach_input"),
        ({"model_name": "x", "step": np.zeros(1, np.int32)}, yr.OptionError, "one of step and tokens"),
        ({"model_name": "x", "world_size": 2}, yr.Unsupported, "rank 0 of 2"),
        ({"model_name": "x", "page_size": 1}, yr.OptionError, "page_size"),
    ]:
        with pytest.raises(class_, match=part):
            yr.MPK(yr.MPKMetadata(**changes))
    meta = yr.MPKMetadata(model_name="x", step=np.zeros(3, np.int32))
    meta.write_to_file(tmp_path / "meta.txt")
    meta.print_info()
    told = (tmp_path / "meta.txt").read_text()
    assert told == capsys.readouterr().out and "model_name: x" in told and "step: (3,)" in told


def test_a_simple_kernel_is_one_request_of_a_model(yr, tmp_path, caplog):
    caplog.set_level("INFO", logger="yirage")
    path = folder(tmp_path / "qwen3", "qwen3")
    with yr.SimplePersistentKernel(str(path), max_num_tokens=32, max_context_len=40, eos_token_id=-1, backend="cpu") as kernel:
        (text,) = kernel.run("Hi", use_template=False)
        assert text.startswith("Hi") and kernel.step.tolist() == [39]
        assert kernel.persistent_kernel.backend == "cpu"
    assert any("vocab_size=32000" in record.getMessage() for record in caplog.records)


def test_what_layer_methods_do_not_have_is_refused(yr, tmp_path, bedtime):
    kernel = yr.PersistentKernel()
    with pytest.raises(yr.Unsupported, match="GGUF"):
        kernel.build_model(bedtime)
    for number, (changes, part) in enumerate(
        [({"attention_bias": True}, "no bias"), ({"hidden_act": "gelu"}, "gelu"), ({"model_type": "qwen2"}, "qwen2")]
    ):
        with pytest.raises(yr.Unsupported, match=part):
            yr.PersistentKernel().build_model(folder(tmp_path / str(number), "llama", **changes))
    with pytest.raises(yr.ModelNotFoundError):
        yr.PersistentKernel().build_model(tmp_path / "nowhere")


def test_workers_by_mirages_and_yirages_rules(yr):
    workers, schedulers = yr.get_configurations_from_cpu()
    config = yr.auto_configure_backend("cpu")
    assert (workers, schedulers) == (config["num_workers"], config["num_local_schedulers"])
    if not yr.is_backend_available("cuda"):
        with pytest.raises(yr.BackendUnavailableError):
            yr.get_configurations_from_gpu(0)
    with pytest.raises(yr.BackendUnavailableError, match="cpu 7"):
        yr.get_configurations_from_gpu(7, backend="cpu")
