"""Persistent kernels in Python: what transformers computes with the same weights is the independent reference."""

import array
import gc
import json
import logging
import threading
import time

import pytest

np = pytest.importorskip("numpy", reason="NumPy is not installed here")

from layer_models import alone, golden, made, metadata  # noqa: E402 - it needs NumPy


def prompts(count, seed=3):
    """Prompts of many lengths, some with a common beginning."""
    rng = np.random.default_rng(seed)
    found = []
    for row in range(count):
        prompt = rng.integers(3, 250, size=int(rng.integers(1, 25 if row % 7 == 0 else 12))).tolist()
        found.append([*range(5, 38), *prompt] if row % 3 == 0 else prompt)
    return found


@pytest.mark.parametrize("name", ["llama", "qwen3"])
def test_models_of_layers_give_the_tokens_of_transformers(yr, name):
    for number, case in enumerate(golden(name)["cases"]):
        prompt, wanted = case["ids"], case["greedy16"]
        positions = len(prompt) + len(wanted)
        meta = metadata([prompt], positions)
        end = "halves" if number % 2 else "argmax"
        kernel, (step, tokens) = made(yr, name, [prompt], positions, meta=meta, end=end)
        report = kernel()
        assert step is meta[0] and tokens is meta[1]
        assert tokens[0].tolist() == prompt + wanted and step.tolist() == [positions - 1]
        assert report.finished and report.new_tokens == len(wanted)
        (ended,) = report.ended
        assert (ended.request, ended.reason, ended.new_tokens) == (0, "length", len(wanted))
        assert kernel().steps == 0, "what has ended is not run again"
        kernel.finalize()


def test_the_end_and_the_length_end_requests(yr):
    case = golden("llama")["cases"][0]
    prompt, wanted = case["ids"], case["greedy16"]
    end = wanted[5]
    until = wanted[: wanted.index(end) + 1]
    kernel, (step, tokens) = made(yr, "llama", [prompt], 40, eos_token_id=end)
    report = kernel()
    assert report.ended[0].reason == "eos"
    assert tokens[0, len(prompt) : step[0] + 1].tolist() == until
    assert not tokens[0, step[0] + 1 :].any(), "nothing behind the end is written"
    kernel, (step, tokens) = made(yr, "llama", [prompt], 40, eos_token_id=end, compiled=False)
    kernel.compile(eos_token_id=-1)
    assert kernel().ended[0].reason == "length" and step.tolist() == [39]


def test_the_list_and_the_named_form_are_one(yr):
    prompt = golden("llama")["cases"][1]["ids"]
    wanted = alone(yr, "llama", prompt, 40)
    _, tokens = metadata([prompt], 40)
    lengths = np.array([len(prompt)], np.int32)
    named = {
        "tokens": tokens.copy(),
        "step": np.zeros(1, np.int32),
        "prompt_lengths": lengths,
        "num_new_tokens": np.ones(1, np.int32),
        "input_tokens": np.zeros((8, 1), np.int64),
        "qo_indptr_buffer": np.zeros(2, np.int32),
        "paged_kv_indices_buffer": None,
    }
    listed = [np.zeros(1, np.int32), tokens.copy(), lengths]
    for meta in [named, listed, tuple(listed)]:
        kernel, _ = made(yr, "llama", [prompt], 40, meta=meta)
        kernel()
        values = list(meta.values()) if isinstance(meta, dict) else meta
        tokens_now = meta["tokens"] if isinstance(meta, dict) else meta[1]
        assert tokens_now[0, len(prompt) :].tolist() == wanted
        assert kernel.meta_tensors["tokens"] is tokens_now and len(values) >= 3


def test_metadata_of_any_library_is_written_where_it_lies(yr):
    prompt = golden("llama")["cases"][1]["ids"]
    wanted = prompt + alone(yr, "llama", prompt, 40)
    # Strided arrays: every second column of a wider one, and every second element.
    wide, steps = np.full((1, 80), -7, np.int64), np.full(2, -7, np.int32)
    step, tokens = steps[::2], wide[:, ::2]
    tokens[:] = metadata([prompt], 40)[1]
    step[:] = len(prompt) - 1
    kernel, _ = made(yr, "llama", [prompt], 40, meta=[step, tokens])
    kernel()
    assert wide[0, ::2].tolist() == wanted and (wide[0, 1::2] == -7).all() and steps.tolist() == [39, -7]
    # Buffers of Python's own.
    step, flat = array.array("i", [len(prompt) - 1]), array.array("q", prompt + [0] * (40 - len(prompt)))
    kernel, _ = made(yr, "llama", [prompt], 40, meta=[step, memoryview(flat).cast("B").cast("q", (1, 40))])
    kernel()
    assert flat.tolist() == wanted and step[0] == 39
    # None at all: one request that begins with token 0.
    fresh = yr.PersistentKernel(max_seq_length=12)
    held = fresh.meta_tensors
    assert np.asarray(held["tokens"]).shape == (1, 12) and np.asarray(held["step"]).tolist() == [0]


def bad_metadata():
    step, tokens = np.zeros(1, np.int32), np.zeros((1, 8), np.int64)
    locked = tokens.copy()
    locked.flags.writeable = False
    return [
        ([step.astype(np.int64), tokens], "`step`: it is int64"),
        ([step, tokens.astype(np.int32)], "`tokens`: it is int32"),
        ([step.astype(np.float32), tokens], "`step`: it is float32"),
        ([step, tokens.astype(np.float64)], "elements of type float64"),
        ([step, tokens[0]], r"of shape \[8\]"),
        ([np.zeros(2, np.int32), tokens], r"int64 \[2, max_seq_length\]"),
        ([step + 8, tokens], "request 0 has 8"),
        ([step - 1, tokens], "request 0 has -1"),
        ([step, tokens, np.zeros(1, np.int32)], "`prompt_lengths`"),
        ([step, tokens, step, step, step], "5 tensors are given"),
        ([step], "`tokens`: it is missing"),
        ([step, locked], "must not be written"),
        ({"step": step, "tokens": tokens, "steps": step}, "`steps`: it has no meaning"),
        ("step", "a `str`"),
        ([step, [0, 1]], "`list`"),
    ]


@pytest.mark.parametrize(("meta", "part"), bad_metadata(), ids=[part for _, part in bad_metadata()])
def test_wrong_metadata_is_refused_by_name(yr, meta, part):
    with pytest.raises(yr.ArrayError, match=part):
        yr.PersistentKernel(meta_tensors=meta, max_seq_length=8)


def test_arguments_come_in_both_orders_and_have_defaults(yr):
    assert yr.PersistentKernel().backend == yr.get_backend().value
    meta = metadata([[1]], 64)
    by_world = yr.PersistentKernel(1, 0, 8, 4, 0, 64, 2, meta, None, None, "cpu")
    by_mode = yr.PersistentKernel(
        "offline", 1, 0, 8, 4, 0, 64, 1, 8, 16, 64, -1, {"step": meta[0], "tokens": meta[1]}, None, None, None, False, True
    )
    assert by_world.backend == by_mode.backend == "cpu"
    assert by_world.meta_tensors["tokens"] is by_mode.meta_tensors["tokens"] is meta[1]
    again = yr.PersistentKernel(**yr.PersistentKernel.get_default_init_parameters())
    assert not again.is_compiled
    for arguments, named, part in [
        ((1,), {"world_size": 1}, "multiple values for argument 'world_size'"),
        ((1,) * 13, {}, "takes 12 positional arguments, and 13"),
        ((), {"max_seq_lenght": 8}, "unexpected keyword argument 'max_seq_lenght'"),
    ]:
        with pytest.raises(TypeError, match=part):
            yr.PersistentKernel(*arguments, **named)


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"max_seq_length": 0}, "max_seq_length"),
        ({"max_num_batched_requests": 9, "max_num_batched_tokens": 8}, "max_num_batched_tokens"),
        ({"page_size": 48}, "page_size"),
        ({"max_num_pages": 0}, "max_num_pages"),
        ({"num_workers": 0}, "num_workers"),
        ({"num_workers": "8"}, "num_workers='8'"),
        ({"mode": "eager"}, "online_multi_turn"),
        ({"eos_token_id": -2}, "eos_token_id=-2"),
        ({"precision": "best"}, "precision='best'"),
        ({"executor": "replays"}, "executor='replays'"),
        ({"test_mode": "yes"}, "test_mode='yes'"),
    ],
    ids=str,
)
def test_options_out_of_range_are_refused_by_name(yr, options, part):
    with pytest.raises(yr.OptionError, match=part):
        yr.PersistentKernel(**options)


def test_what_does_not_exist_is_told(yr):
    for config in [object(), yr.LookaheadConfig(spec_length=3)]:
        with pytest.raises(yr.Unsupported, match="PromptLookupConfig"):
            yr.PersistentKernel(spec_decode_config=config)
    with pytest.raises(yr.UnknownBackendError):
        yr.PersistentKernel(backend="abacus")
    kernel = yr.PersistentKernel()
    for name, part in [
        ("mla_prefill_tp8_layer", "use mla_decode_layer or mla_prefill_layer"),
        ("mtp_verify_strict_layer", "draft heads"),
        ("linear_fp8_sm100_layer", "use linear_fp8_layer"),
    ]:
        with pytest.raises(yr.Unsupported, match=part):
            getattr(kernel, name)(1, output=2)
    assert not hasattr(kernel, "linera_layer")
    with pytest.raises(yr.Unsupported, match="choose no token"):
        kernel.compile()
    kernel.finalize()
    with pytest.raises(yr.KernelError, match="finalized"):
        kernel.compile()


def test_what_means_nothing_here_is_told_once(yr, caplog):
    caplog.set_level(logging.INFO, logger="yirage")
    prompt = golden("llama")["cases"][0]["ids"]
    options = {"num_workers": 4096, "num_local_schedulers": 48, "use_cutlass_kernel": True, "mode": "online"}
    kernel, _ = made(yr, "llama", [prompt], 12, max_num_batched_tokens=16, **options)
    kernel(stream=object())
    told = [record.getMessage() for record in caplog.records]
    for part in ["num_workers is 4096", "num_local_schedulers", "grid_dim", "`online`", "caches", "use_cutlass", "stream"]:
        assert sum(part in text for text in told) == 1, (part, told)


def test_workers_of_a_processor_are_its_threads(yr):
    one = yr.PersistentKernel(num_workers=1, backend="cpu")
    assert one.num_workers == 1
    assert yr.PersistentKernel(num_workers=100_000, backend="cpu").num_workers == yr.PersistentKernel(backend="cpu").num_workers


def test_every_key_that_settings_have_is_an_argument(yr):
    config = yr.auto_configure_backend("cpu")
    kernel = yr.PersistentKernel(**config, max_seq_length=2048)
    assert kernel.backend == "cpu" and np.asarray(kernel.meta_tensors["tokens"]).shape == (1, 2048)
    for name in yr.list_templates():
        settings = yr.get_template(name)
        settings["backend"] = "cpu"
        kernel = yr.PersistentKernel(**settings)
        assert np.asarray(kernel.meta_tensors["tokens"]).shape == (1, settings["max_seq_length"]), name


@pytest.mark.parametrize(("tokens", "pages"), [(16, None), (8, 9)])
def test_many_requests_on_few_slots_each_give_what_they_give_alone(yr, tokens, pages):
    given = prompts(14)
    kernel, (step, rows) = made(
        yr, "qwen3", given, 80, max_num_batched_requests=8, max_num_batched_tokens=tokens, max_num_pages=pages, eos_token_id=84
    )
    if pages is not None:
        assert kernel.cache_stats()["total"] == 2 * pages, "pages of 64 positions are two blocks"
    ended, finished = [], False
    while not finished:
        report = kernel(max_steps=1)
        assert report.steps <= 1 and report.tokens_run <= tokens, "the budget of tokens"
        ended += [of.request for of in report.ended]
        finished = report.finished
    stats = kernel.cache_stats()
    assert stats["in_use"] == 0 and stats["free"] + stats["cached"] == stats["total"], "every page came back"
    assert sorted(ended) == list(range(14)), "each ended once"
    for row in [3, 7, 13]:
        assert rows[row, len(given[row]) : step[row] + 1].tolist() == alone(
            yr, "qwen3", given[row], 80, eos_token_id=84
        ), row


def test_one_pass_is_one_step_a_call(yr):
    given = prompts(3)
    whole, (_, wanted) = made(yr, "llama", given, 70)
    whole()
    kernel, (_, tokens) = made(yr, "llama", given, 70, mode="onepass")
    calls = 1
    while not (report := kernel()).finished:
        assert report.steps == 1
        calls += 1
    assert calls > 20 and (tokens == wanted).all()


def test_rows_that_the_program_writes_are_new_requests(yr):
    first, second = [[7, 8, 9], [40, 41]], [90, 91, 92, 93]
    kernel, (step, tokens) = made(yr, "llama", first, 30)
    kernel()
    before = tokens[0].tolist()
    tokens[1, :4], step[1] = second, 3
    assert not kernel(max_steps=2).finished
    tokens[1, 0] = 5
    with pytest.raises(yr.RequestError, match="request 1: it runs"):
        kernel()
    tokens[1, 0] = 90
    assert kernel().finished and tokens[0].tolist() == before
    assert tokens[1, 4:].tolist() == alone(yr, "llama", second, 30)
    kernel.load_new_request(0, np.array(second))
    assert tokens[0, :4].tolist() == second and step[0] == 3
    kernel()
    assert tokens[0, 4:].tolist() == tokens[1, 4:].tolist()
    for row, prompt, part in [(2, [1], "one of 2 rows"), (0, [], "a prompt of 0 tokens"), (0, [1] * 31, "31 tokens")]:
        with pytest.raises(yr.RequestError, match=part):
            kernel.load_new_request(row, prompt)
    kernel.load_new_request(0, [5, 256])
    with pytest.raises(yr.RequestError, match="token 256 at position 1"):
        kernel()


def test_prompt_lookup_spares_steps_and_changes_no_token(yr):
    repetitive = [1, *[41, 49, 16, 43, 68] * 8]
    given = [repetitive, [1], [1, 96, 93], [60 + i * i % 150 for i in range(40)]]
    runs = {}
    for config in [None, yr.PromptLookupConfig(), yr.PromptLookupConfig(ngram_size=2, spec_length=3)]:
        kernel, (_, tokens) = made(yr, "llama", given, 72, spec_decode_config=config, max_num_batched_requests=4)
        runs[config] = (kernel(), tokens)
    plain = runs[None]
    assert (plain[0].drafted, plain[0].accepted) == (0, 0)
    for config, (report, tokens) in runs.items():
        assert (tokens == plain[1]).all(), config
        assert config is None or report.accepted > 0, (config, report)
    steps = []
    for config in [None, yr.PromptLookupConfig(ngram_size=2)]:
        kernel, _ = made(yr, "llama", [repetitive], 72, spec_decode_config=config)
        steps.append(kernel().steps)
    assert steps[1] < steps[0], steps
    with pytest.raises(yr.OptionError, match="ngram_size"):
        yr.PersistentKernel(spec_decode_config=yr.PromptLookupConfig(ngram_size=1))


def test_layers_of_prompt_lookup_are_the_option(yr):
    given = [[1, *[41, 49, 16, 43, 68] * 8], [1, 2]]
    kernel, (_, wanted) = made(yr, "llama", given, 72, spec_decode_config=yr.PromptLookupConfig(2, 3))
    by_option = kernel()
    config = yr.PromptLookupConfig(2, 3)
    kernel, meta = made(yr, "llama", given, 72, compiled=False)
    tokens = kernel.attach_input(meta[1], "tokens")
    guesses = kernel.draft_forward_layer_dispatcher(config, tokens, (96, 1, 1), (128, 1, 1))
    assert guesses.dims == (2, 4) and guesses.dtype == "int64"
    chosen = kernel.new_tensor((64, 1), dtype=yr.int64, name="again")
    with pytest.raises(yr.KernelError):
        kernel.argmax_layer(guesses, chosen)
    by_layers = kernel
    by_layers.compile()
    report = by_layers()
    assert (meta[1] == wanted).all()
    assert (report.drafted, report.accepted, report.steps) == (by_option.drafted, by_option.accepted, by_option.steps)


def test_draws_follow_the_seed_alone(yr):
    given = prompts(4, 11)
    hot = yr.SamplingParams(temperature=0.8, top_k=40, top_p=0.95)

    def run(params, seed, requests):
        kernel, (_, tokens) = made(
            yr, "llama", given, 64, end=seed, sampling_params=params, max_num_batched_requests=requests
        )
        kernel()
        return tokens.tolist()

    assert run(hot, 42, 1) == run(hot, 42, 4) != run(hot, 43, 4)
    greedy, (_, tokens) = made(yr, "llama", given, 64)
    greedy()
    assert run(yr.SamplingParams(temperature=0.0), 1, 4) == tokens.tolist()


def test_times_of_tasks_are_an_array_and_a_trace(yr, tmp_path):
    room = np.zeros(1 << 16, np.uint64)
    name = tmp_path / "run"
    kernel, _ = made(
        yr, "qwen3", [[3, 4, 5]], 40, profiler_tensor=room, trace_name=str(name), backend="cpu", num_workers=2
    )
    kernel()
    spans = room.reshape(-1, 4).astype(np.int64)
    spans = spans[spans[:, 3] > 0]
    assert len(spans) > 40 and set(spans[:, 0]) <= {0, 1}
    for worker in range(2):
        of = spans[spans[:, 0] == worker]
        assert (of[:, 2] <= of[:, 3]).all() and (of[:-1, 3] <= of[1:, 2]).all(), "no two of a worker overlap"
    kernel.write_trace(tmp_path / "again.json")
    for path in [tmp_path / "run.perfetto-trace", tmp_path / "again.json"]:
        assert len(json.loads(path.read_text())["traceEvents"]) > len(spans)
    plain, _ = made(yr, "qwen3", [[3]], 20)
    with pytest.raises(yr.KernelError, match="nothing was kept"):
        plain.write_trace(tmp_path / "none.json")
    for wrong in [np.zeros(8, np.int32), np.zeros(3, np.uint64), np.zeros(8, np.float32)]:
        with pytest.raises(yr.ArrayError, match="profiler_tensor"):
            yr.PersistentKernel(profiler_tensor=wrong)


SAVED = """
import sys
sys.path.insert(0, {tests!r})
import yirage as yr
from layer_models import made
kernel, (step, tokens) = made(yr, "qwen3", [[3, 4, 5], [9] * 12], 48, layers=False, compiled=False)
kernel.load_mpk_kernel({folder!r})
kernel()
print(kernel.plan_counts()["compiled"], tokens.tolist())
"""


def test_a_saved_kernel_runs_in_another_process_and_compiles_nothing(yr, python, tmp_path, request):
    kernel, (_, tokens) = made(yr, "qwen3", [[3, 4, 5], [9] * 12], 48, compiled=False)
    kernel.compile(output_dir=tmp_path)
    kernel()
    assert kernel.plan_counts()["compiled"] > 0
    ran = python(SAVED.format(tests=str(request.path.parent), folder=str(tmp_path)))
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == f"0 {tokens.tolist()}"
    for options, part in [
        ({"page_size": 32}, "page_size"),
        ({"precision": "exact"}, "precision"),
        ({"max_num_batched_tokens": 32}, "max_num_batched_tokens"),
    ]:
        other, _ = made(yr, "qwen3", [[3, 4, 5], [9] * 12], 48, layers=False, compiled=False, **options)
        with pytest.raises(yr.KernelError, match=part):
            other.load_mpk_kernel(tmp_path)
        other.load_mpk_kernel(tmp_path, skip_validation=True)
        assert other.is_compiled
    wrong, _ = made(yr, "llama", [[3]], 48, layers=False, compiled=False)
    with pytest.raises(yr.YirageError):
        wrong.load_mpk_kernel(tmp_path)
    with pytest.raises(yr.KernelError, match="nowhere"):
        wrong.load_mpk_kernel(tmp_path / "nowhere")
    (tmp_path / "kernel.yirage").write_bytes((tmp_path / "kernel.yirage").read_bytes()[:-40])
    other, _ = made(yr, "qwen3", [[3, 4, 5], [9] * 12], 48, layers=False, compiled=False)
    with pytest.raises(yr.KernelError):
        other.load_mpk_kernel(tmp_path, skip_validation=True)


def test_a_call_can_be_cancelled_and_goes_on(yr):
    case = prompts(4)
    _, (_, wanted) = whole = made(yr, "qwen3", case, 120)
    whole[0]()
    kernel, (step, tokens) = made(yr, "qwen3", case, 120)
    first = step.copy()
    reports = []
    thread = threading.Thread(target=lambda: reports.append(kernel()))
    thread.start()
    while not (step > first).any() and thread.is_alive():
        time.sleep(0.001)  # tokens are seen while the kernel runs, so that somebody else can
    kernel.cancel()
    thread.join()
    while not reports[-1].finished:
        reports.append(kernel())
    assert (tokens == wanted).all()


def test_ctrl_c_ends_a_call_behind_a_step(python, request):
    code = f"""
import sys, signal, threading, os
sys.path.insert(0, {str(request.path.parent)!r})
import yirage as yr
from layer_models import made
kernel, (step, tokens) = made(yr, "qwen3", [[1, 2]] * 64, 500, max_num_batched_requests=1, max_num_batched_tokens=1)
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    while True:
        kernel.load_new_request(0, [1, 2]) if kernel().finished else None
except KeyboardInterrupt:
    print("interrupted")
"""
    ran = python(code)
    assert ran.stdout.strip() == "interrupted" and ran.returncode == 0, ran.stderr


def test_dropped_and_finalized_while_they_run(yr):
    for how in ["drop", "finalize"]:
        kernel, (step, _) = made(yr, "qwen3", prompts(2), 120)
        first, done = step.copy(), []
        thread = threading.Thread(target=lambda run=kernel: done.append(run()))
        thread.start()
        while not (step > first).any() and thread.is_alive():
            time.sleep(0.001)
        if how == "finalize":
            kernel.finalize()
            with pytest.raises(yr.KernelError, match="finalized"):
                kernel()
        del kernel
        gc.collect()
        thread.join()
        assert done and (done[0].finished or how == "finalize")


def test_an_exit_during_a_run_is_an_exit(python, request):
    code = f"""
import sys, threading, time
sys.path.insert(0, {str(request.path.parent)!r})
import yirage as yr
from layer_models import made
kernel, _ = made(yr, "qwen3", [[1, 2]] * 64, 500, max_num_batched_requests=1, max_num_batched_tokens=1)
threading.Thread(target=kernel, daemon=True).start()
time.sleep(0.1)
print("over")
"""
    ran = python(code)
    assert ran.stdout.strip() == "over" and ran.returncode == 0, (ran.returncode, ran.stderr)


def test_threads_share_a_kernel_one_after_the_other(yr):
    kernel, (_, tokens) = made(yr, "llama", prompts(4), 80)
    _, (_, wanted) = whole = made(yr, "llama", prompts(4), 80)
    whole[0]()
    threads = [threading.Thread(target=lambda: kernel(max_steps=25)) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert kernel().finished and (tokens == wanted).all()


def test_a_compiled_kernel_and_a_foreign_tensor_are_refused(yr):
    kernel, _ = made(yr, "llama", [[1]], 20)
    with pytest.raises(yr.KernelError, match="compiled"):
        kernel.compile()
    with pytest.raises(yr.KernelError, match="compiled"):
        kernel.attach_input(np.zeros((2, 2), np.float32), "late")
    a, b = yr.PersistentKernel(test_mode=True), yr.PersistentKernel(test_mode=True)
    x = a.attach_input(np.zeros((2, 2), np.float32), "x")
    with pytest.raises(yr.KernelError, match="another kernel"):
        b.identity_layer(x, x)
    with pytest.raises(yr.ArrayError, match="the name is taken"):
        a.attach_input(np.zeros((2, 2), np.float32), "x")
    with pytest.raises(yr.ArrayError, match="elements of type float64"):
        a.attach_input(np.zeros((2, 2)), "y")
    with pytest.raises(yr.Unsupported, match="uint64"):
        a.attach_input(np.zeros((2, 2), np.uint64), "y")
    with pytest.raises(TypeError, match="'name'"):
        a.attach_input(np.zeros((2, 2), np.float32))
    with pytest.raises(yr.Unsupported, match="nvshmem_tensor"):
        a.new_tensor((2, 2), name="z", io_category="nvshmem_tensor")
    with pytest.raises(yr.KernelError, match="row-major"):
        a.new_tensor((2, 2), strides=(1, 2), name="z")
    with pytest.raises(yr.KernelError, match="not compiled"):
        yr.PersistentKernel()()


def test_kernels_come_and_go_without_growth(yr):
    import resource

    def cycles(count):
        for _ in range(count):
            kernel = yr.PersistentKernel(test_mode=True)
            kernel.identity_layer(kernel.attach_input(np.ones((64, 64), np.float32), "x"), kernel.new_tensor((64, 64), name="y"))
            kernel.finalize()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    before = cycles(100)
    assert cycles(900) - before < 8 << 10, "kilobytes"
