"""Models: requests, streams, vectors and what goes wrong, with the small model of the repository."""

import asyncio
import json
import os
import pathlib
import re
import threading

import pytest

PROMPT = "In the deep forest"


@pytest.fixture(scope="module")
def llm(bedtime):
    import yirage

    with yirage.LLM(bedtime, precision="exact", max_num_seqs=8) as model:
        yield model


def greedy(yr, **further):
    return yr.SamplingParams(**{"temperature": 0, "max_tokens": 8} | further)


def one(llm, params, prompt=PROMPT):
    return llm.generate(prompt, params)[0].outputs[0]


def test_greedy_tokens_are_those_of_transformers(yr, llm, golden):
    for case in golden["cases"]:
        output = llm.generate(
            {"prompt_token_ids": case["prompt_ids"]}, greedy(yr, max_tokens=len(case["greedy_ids"]), ignore_eos=True)
        )[0]
        assert output.outputs[0].token_ids == case["greedy_ids"], case["id"]
        assert output.prompt_token_ids == case["prompt_ids"] and output.finished


def test_outputs_have_the_fields_of_vllm(yr, llm):
    request = llm.generate(PROMPT, greedy(yr))[0]
    fields = {"request_id", "prompt", "prompt_token_ids", "outputs", "finished", "prompt_logprobs", "metrics",
              "num_cached_tokens"}  # fmt: skip
    assert fields == set(vars(request)) and request.prompt == PROMPT
    answer = request.outputs[0]
    assert set(vars(answer)) == {
        "index", "text", "token_ids", "cumulative_logprob", "logprobs", "finish_reason", "stop_reason"
    }  # fmt: skip
    assert answer.finish_reason == "length" and answer.index == 0 and len(answer.token_ids) == 8


def test_a_batch_gives_what_each_gives_alone(yr, llm):
    prompts = [PROMPT, "Once upon a time", [1, 377, 321], {"prompt": "The king"}, "A"] * 4
    params = [greedy(yr, max_tokens=3 + i % 5) for i in range(len(prompts))]
    done = []
    together = llm._generate(prompts, params, done.append)
    assert len(done) == len(prompts)
    for output, prompt, param in zip(together, prompts, params, strict=True):
        assert output.outputs[0].token_ids == one(llm, param, prompt).token_ids


def test_each_parameter_changes_the_answer(yr, llm):
    plain = one(llm, greedy(yr))
    first, text = plain.token_ids[0], plain.text
    assert len(one(llm, greedy(yr, max_tokens=3)).token_ids) == 3
    drawn = [one(llm, yr.SamplingParams(seed=s, max_tokens=8)).token_ids for s in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert one(llm, yr.SamplingParams(seed=1, max_tokens=8, top_k=1)).token_ids == plain.token_ids
    assert one(llm, yr.SamplingParams(seed=1, max_tokens=8, top_p=1e-6)).token_ids == plain.token_ids
    assert one(llm, yr.SamplingParams(seed=1, max_tokens=8, min_p=1.0)).token_ids == plain.token_ids
    assert one(llm, greedy(yr, logit_bias={first: -100.0})).token_ids[0] != first
    assert set(one(llm, greedy(yr, allowed_token_ids=[300, 301])).token_ids) <= {300, 301}
    long = one(llm, greedy(yr, max_tokens=40, ignore_eos=True)).token_ids
    penalised = [
        one(llm, greedy(yr, max_tokens=40, ignore_eos=True, **{name: value})).token_ids
        for name, value in [("presence_penalty", 2.0), ("frequency_penalty", 2.0), ("repetition_penalty", 5.0)]
    ]
    assert all(tokens != long for tokens in penalised)
    word = text.split()[0]
    assert word not in one(llm, greedy(yr, bad_words=[word])).text
    stopped = one(llm, greedy(yr, stop=[word]))
    assert word not in stopped.text and stopped.finish_reason == "stop" and stopped.stop_reason == word
    kept = one(llm, greedy(yr, stop=word, include_stop_str_in_output=True))
    assert kept.text == stopped.text + word
    ended = one(llm, greedy(yr, stop_token_ids=[plain.token_ids[2]]))
    assert ended.token_ids == plain.token_ids[:3] and ended.stop_reason == plain.token_ids[2]
    held = one(llm, greedy(yr, stop_token_ids=[plain.token_ids[2]], min_tokens=5))
    assert len(held.token_ids) >= 5
    assert one(llm, greedy(yr, detokenize=False)).text == ""


def test_several_answers_to_a_prompt(yr, llm):
    outputs = llm.generate(PROMPT, yr.SamplingParams(n=3, seed=5, max_tokens=8))[0].outputs
    assert [output.index for output in outputs] == [0, 1, 2]
    assert len({tuple(output.token_ids) for output in outputs}) > 1


def test_log_probabilities_sum_up(yr, llm, golden):
    case = next(case for case in golden["cases"] if case.get("prompt") == PROMPT)
    request = llm.generate(PROMPT, greedy(yr, max_tokens=2, logprobs=3, prompt_logprobs=2))[0]
    answer = request.outputs[0]
    step = case["steps"][0]
    row = answer.logprobs[0]
    for token, logit in list(zip(step["top10_ids"], step["top10_logits"], strict=True))[:3]:
        assert row[token].logprob == pytest.approx(logit - step["logsumexp"], abs=2e-3)
    assert row[step["chosen"]].rank == 1 and isinstance(row[step["chosen"]].decoded_token, str)
    assert answer.cumulative_logprob == pytest.approx(
        sum(row[token].logprob for row, token in zip(answer.logprobs, answer.token_ids, strict=True))
    )
    assert request.prompt_logprobs[0] is None and len(request.prompt_logprobs) == len(request.prompt_token_ids)
    for row, token in zip(request.prompt_logprobs[1:], request.prompt_token_ids[1:], strict=True):
        assert token in row and row[token].logprob <= 0


def test_streams_end_where_the_whole_answer_does(yr, llm):
    whole = one(llm, greedy(yr))
    seen = list(llm.stream(PROMPT, greedy(yr)))
    # How often it is read depends on who is faster; that it grows does not.
    lengths = [len(output.outputs[0].token_ids) for output in seen]
    assert lengths == sorted(lengths) and [output.finished for output in seen] == [False] * (len(seen) - 1) + [True]
    assert seen[-1].outputs[0].text == whole.text and seen[-1].outputs[0].token_ids == whole.token_ids

    async def read(prompt):
        last = None
        async with llm.stream(prompt, greedy(yr)) as stream:
            async for output in stream:
                last = output
        return last.outputs[0].token_ids

    async def all_of_them():
        return await asyncio.gather(*[read(PROMPT) for _ in range(12)])

    assert asyncio.run(all_of_them()) == [whole.token_ids] * 12


def test_a_stream_that_is_left_is_cancelled(yr, llm):
    with llm.stream(PROMPT, greedy(yr, max_tokens=200, ignore_eos=True)) as stream:
        next(stream)
    rest = list(stream)
    assert not rest or rest[-1].outputs[0].finish_reason in ("abort", "length")


def test_an_engine_answers_its_requests_step_by_step(yr, bedtime):
    engine = yr.LLMEngine(bedtime, precision="exact")
    lengths = {"a": 3, "b": 8, "c": 5}
    for name, length in lengths.items():
        engine.add_request(name, PROMPT, greedy(yr, max_tokens=length))
    assert engine.get_num_unfinished_requests() == 3
    with pytest.raises(yr.RequestError, match="'b' is still open"):
        engine.add_request("b", PROMPT)
    last = {}
    while engine.has_unfinished_requests():
        last |= {output.request_id: output for output in engine.step()}
    whole = one(engine.llm, greedy(yr)).token_ids
    assert {name: output.outputs[0].token_ids for name, output in last.items()} == {
        name: whole[:length] for name, length in lengths.items()
    }
    assert engine.step() == [] and all(output.finished for output in last.values())
    engine.add_request("long", PROMPT, greedy(yr, max_tokens=400, ignore_eos=True))
    engine.abort_request(["long", "unknown"])
    while engine.has_unfinished_requests():
        last |= {output.request_id: output for output in engine.step()}
    assert last["long"].outputs[0].finish_reason == "abort"
    engine.llm.close()


def test_an_engine_for_loops_of_events_answers_by_ids(yr, bedtime):
    engine = yr.AsyncLLMEngine(bedtime, precision="exact")
    whole = one(engine.llm, greedy(yr)).token_ids

    async def read(name):
        last = None
        async for output in engine.generate(PROMPT, greedy(yr), name):
            last = output
        return last.request_id, last.outputs[0].token_ids

    async def left_and_aborted():
        long = greedy(yr, max_tokens=400, ignore_eos=True)
        async for output in engine.generate(PROMPT, long, "left"):
            await engine.abort("left")
            last = output
        return last.outputs[0].finish_reason

    async def several():
        return await asyncio.gather(*[read(f"r{at}") for at in range(6)])

    assert asyncio.run(several()) == [(f"r{at}", whole) for at in range(6)]
    assert asyncio.run(left_and_aborted()) == "abort"
    engine.shutdown()


def test_requests_that_cannot_run_are_errors(yr, llm):
    for wrong in [
        {"temperature": -1}, {"top_p": 0}, {"top_k": -2}, {"min_p": 2}, {"n": 0}, {"max_tokens": 0},
        {"min_tokens": 9, "max_tokens": 8}, {"presence_penalty": 3}, {"logprobs": 100_000},
    ]:  # fmt: skip
        with pytest.raises(yr.RequestError):
            yr.SamplingParams(**wrong)
    with pytest.raises(TypeError):
        yr.SamplingParams(colour=1)
    for prompt in [{"prompt_token_ids": []}, {"prompt_token_ids": [10**6]}, 3.5, {"text": "x"}]:
        with pytest.raises(yr.RequestError):
            llm.generate(prompt, greedy(yr))
    with pytest.raises(yr.RequestError):
        llm.generate([PROMPT, PROMPT], [greedy(yr)])
    with pytest.raises(yr.RequestError, match="template"):
        llm.chat([{"role": "user", "content": "hi"}])
    with pytest.raises(yr.RequestError, match="n=1"):
        llm.stream(PROMPT, greedy(yr, n=2))
    with pytest.raises(yr.Unsupported):
        llm.score("a", "b")


def test_the_tokenizer_is_the_models(llm, golden):
    tokenizer = llm.get_tokenizer()
    for text in golden["texts"]:
        assert tokenizer.encode(text["text"], add_special_tokens=False)[-len(text["ids"]) + 1 :] == text["ids"][1:]
        plain = text["text"].replace("\u2581", " ")  # which is how the vocabulary writes a space
        assert plain in tokenizer.decode(tokenizer.encode(text["text"]), skip_special_tokens=True)
    assert len(tokenizer) == tokenizer.vocab_size == 512
    with pytest.raises(ValueError):
        tokenizer.decode([512])


def test_a_decoder_makes_vectors_where_it_is_asked_to(yr, bedtime):
    with yr.LLM(bedtime, task="embed") as model:
        one, two = model.embed([PROMPT, "Once upon a time"])
        assert len(one.outputs.embedding) == one.outputs.hidden_size == len(two.outputs.embedding)
        assert sum(x * x for x in one.outputs.embedding) == pytest.approx(1, abs=1e-5)
        assert one.outputs.embedding != two.outputs.embedding
        assert model.embed(PROMPT)[0].outputs.embedding == one.outputs.embedding
        with pytest.raises(yr.OptionError):
            model.embed(PROMPT, pooling="median")


@pytest.mark.skipif("YIRAGE_MODELS" not in os.environ, reason="YIRAGE_MODELS names no folder with an encoder")
def test_an_encoder_makes_vectors_and_no_text(yr):
    folder = pathlib.Path(os.environ["YIRAGE_MODELS"]) / "all-MiniLM-L6-v2"
    if not folder.exists():
        pytest.skip(f"{folder} is not there")
    with yr.LLM(folder) as model:
        rows = [row.outputs.embedding for row in model.embed(["a cat", "a kitten", "tax law"])]
        near, far = (sum(a * b for a, b in zip(rows[0], row, strict=True)) for row in rows[1:])
        assert near > far
        with pytest.raises(yr.Unsupported):
            model.generate("a")


def test_models_that_are_not_there_are_told(yr, tmp_path):
    with pytest.raises(yr.ModelError):
        yr.LLM(tmp_path)
    wrong = tmp_path / "model.gguf"
    wrong.write_bytes(b"GGUF")
    with pytest.raises(yr.ModelError):
        yr.LLM(wrong)
    with pytest.raises(TypeError):
        yr.LLM(wrong, colour="red")


def test_models_that_the_packages_documentation_names_are_of_the_catalogue(yr, python, tmp_path):
    sources = pathlib.Path(yr.__file__).parent.glob("*.py*")
    names = {name for source in sources for name in re.findall(r'LLM\("([^"]+)"', source.read_text())}
    assert names
    for name in names:
        # Known, and nowhere to be had from.
        ran = python(f"import yirage as yr; yr.LLM({name!r})", HF_HUB_OFFLINE="1", HF_HOME=str(tmp_path))
        assert f"{name} could be had by none of" in ran.stderr and "yirage pull" in ran.stderr, ran.stderr


@pytest.mark.parametrize("wrong", [{"task": "sing"}, {"precision": "rough"}, {"kv_cache_dtype": "q1"}, {"threads": 0}])
def test_options_out_of_their_range_are_told(yr, bedtime, wrong):
    with pytest.raises(yr.OptionError):
        yr.LLM(bedtime, **wrong)


def test_arguments_of_vllm_are_taken_reported_once_or_refused(yr, bedtime, caplog):
    neutral = {"tensor_parallel_size": 1, "pipeline_parallel_size": 1, "dtype": "auto", "quantization": None, "trust_remote_code": False,
               "swap_space": 0, "enforce_eager": False, "block_size": 32, "enable_chunked_prefill": True}  # fmt: skip
    reported = {"dtype": "bfloat16", "gpu_memory_utilization": 0.9, "enforce_eager": True, "swap_space": 4,
                "trust_remote_code": True, "block_size": 16, "tokenizer_mode": "slow", "quantization": "awq"}  # fmt: skip
    with caplog.at_level("INFO", "yirage"):
        yr.LLM(bedtime, **neutral).close()
        assert not any("changes nothing" in record.getMessage() for record in caplog.records)
        yr.LLM(bedtime, **reported).close()
    told = [record.getMessage() for record in caplog.records if "changes nothing" in record.getMessage()]
    assert len(told) == len(reported)
    assert all(sum(f" {name}=" in line for line in told) == 1 for name in reported), told
    for refused in [
        {"data_parallel_size": 2}, {"enable_lora": True}, {"cpu_offload_gb": 4},
        {"revision": "v2"}, {"tokenizer": "other"}, {"load_format": "dummy"}, {"hf_overrides": {"rope_theta": 1}},
    ]:  # fmt: skip
        with pytest.raises(yr.Unsupported, match=next(iter(refused))):
            yr.LLM(bedtime, **refused)
    with pytest.raises(TypeError, match="colour"):
        yr.LLM(bedtime, colour="red")


def test_guesses_are_counted_and_change_no_answer(yr, bedtime):
    asked = [{"prompt_token_ids": [1, 5, 9, 5, 9, 5, 9, 5]}]
    params = [yr.SamplingParams(temperature=t, seed=3, max_tokens=48, ignore_eos=True) for t in (0, 1)]
    answers, guessed = [], []
    configs = [None, "auto", {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_min": 1},
               {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_min": 200},
               {"model": bedtime, "num_speculative_tokens": 4}]  # fmt: skip
    for config in configs:
        with yr.LLM(bedtime, speculative_config=config) as llm:
            answers.append([llm.generate(asked, one)[0].outputs[0].token_ids for one in params])
            stats = llm.get_stats()
            assert stats["accepted"] <= stats["drafted"] <= stats["tokens_run"]
            guessed.append(stats["drafted"])
    assert all(answer == answers[0] for answer in answers)
    assert guessed[0] == guessed[3] == 0 and min(guessed[1], guessed[2], guessed[4]) > 0, guessed
    for wrong, part in [("often", "'auto'"), ({"method": "ngram", "number": 1}, "number"), ({}, "nobody"),
                        ({"method": "ngram", "num_speculative_tokens": 0}, "num_speculative_tokens=0"),
                        ({"method": "ngram", "model": bedtime}, "without a model"),
                        ({"method": "mtp", "model": bedtime}, "own layer")]:  # fmt: skip
        with pytest.raises(yr.OptionError, match=part):
            yr.LLM(bedtime, speculative_config=wrong)
    with pytest.raises(yr.Unsupported, match="eagle"):
        yr.LLM(bedtime, speculative_config={"method": "eagle", "model": bedtime})


def encoder(tmp_path, name):
    """A tiny encoder with what transformers makes of texts with it, from its recipe."""
    np = pytest.importorskip("numpy")
    import importlib.util

    root = pathlib.Path(__file__).resolve().parents[2]
    rng = importlib.util.spec_from_file_location("counter_rng", root / "tools/oracle/counter_rng.py")
    made = importlib.util.module_from_spec(rng)
    rng.loader.exec_module(made)
    golden = json.loads((root / f"crates/yirage-testkit/fixtures/encoders/{name}.json").read_text())
    header, at, data = {}, 0, b""
    for tensor, shape, base, exponent in golden["tensors"]:
        values = made.weights(golden["seed"], tensor, shape, np.float32(base), exponent)
        header[tensor] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + values.nbytes]}
        at, data = at + values.nbytes, data + values.tobytes()
    text = json.dumps(header).encode()
    (tmp_path / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
    for file, value in (golden["files"] | {"config.json": golden["config"]}).items():
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(json.dumps(value))
    return golden, tmp_path


def test_a_cross_encoder_scores_as_transformers_does(yr, tmp_path):
    golden, folder = encoder(tmp_path, "score")
    cases = golden["cases"]
    assert len(cases) >= 4 and all(len(case["scores"]) == 1 for case in cases)
    with yr.LLM(folder, task="score", precision="exact") as model:
        for case in cases:
            (got,) = model.score(case["first"], case["second"])
            assert got.outputs.score == pytest.approx(case["scores"][0], abs=1e-4)
        together = model.score([case["first"] for case in cases], [case["second"] for case in cases])
        assert [row.outputs.score for row in together] == pytest.approx([case["scores"][0] for case in cases], abs=1e-4)
        one_to_all = model.score(cases[0]["first"], [case["second"] for case in cases])
        assert one_to_all[0].outputs.score == together[0].outputs.score and len(one_to_all) == len(cases)
        with pytest.raises(ValueError):
            model.score(["a", "b"], ["c"])
        for wrong in [lambda: model.generate("a"), lambda: model.embed("a")]:
            with pytest.raises(yr.Unsupported):
                wrong()


def test_an_encoder_embeds_as_transformers_does(yr, tmp_path):
    golden, folder = encoder(tmp_path, "embed")
    texts = [case["text"] for case in golden["cases"]]
    with yr.LLM(folder, precision="exact") as model:
        rows = model.embed(texts, pooling="cls", normalize=False)
        for row, case in zip(rows, golden["cases"], strict=True):
            position, wanted = case["rows"][0]
            assert position == 0 and row.outputs.embedding == pytest.approx(wanted, abs=1e-4)
        whole = model.embed(texts[:3], normalize=True)
        assert all(sum(x * x for x in row.outputs.embedding) == pytest.approx(1, abs=1e-5) for row in whole)
        with pytest.raises(yr.Unsupported):
            model.score("a", "b")


def test_a_variant_is_chosen_refused_and_changes_no_answer(yr, bedtime):
    asked, params = [{"prompt_token_ids": list(range(1, 70))}], greedy(yr)
    answers, variants = [], []
    for variant in [None, "share=static,piece=4K"]:
        with yr.LLM(bedtime, variant=variant) as model:
            answers.append(one(model, params, asked).token_ids)
            variants.append(model.model_info["variant"])
    assert answers[0] == answers[1]
    assert "piece=4K,share=static" in variants[1] != variants[0]
    with pytest.raises(yr.OptionError, match="drained or static"):
        yr.LLM(bedtime, variant="share=even")


def test_a_variant_of_an_encoder_is_chosen_refused_and_changes_no_vector(yr, tmp_path):
    golden, folder = encoder(tmp_path, "embed")
    vectors, variants = [], []
    for variant in [None, "share=static,piece=4K"]:
        with yr.LLM(folder, variant=variant) as model:
            vectors.append([row.outputs.embedding for row in model.embed([case["text"] for case in golden["cases"]])])
            variants.append(model.model_info["variant"])
    assert vectors[0] == vectors[1]
    assert "piece=4K,share=static" in variants[1] != variants[0]
    with pytest.raises(yr.OptionError, match="drained or static"):
        yr.LLM(folder, variant="share=even")


def test_compiled_plans_are_kept_for_the_next_start(bedtime, python, tmp_path):
    code = f"import yirage; yirage.LLM({str(bedtime)!r}).close()"
    kept = []
    for _ in range(2):
        done = python(code, HF_HOME=str(tmp_path))
        assert done.returncode == 0, done.stderr
        kept.append({plan.name: plan.stat().st_ino for plan in tmp_path.rglob("*.plan")})
    assert kept[0] and kept[0] == kept[1]


def test_a_model_that_is_closed_says_so(yr, bedtime):
    model = yr.LLM(bedtime)
    model.close()
    with pytest.raises(yr.EngineError, match="closed"):
        model.generate(PROMPT)


def test_threads_share_a_model(yr, llm):
    whole, got = one(llm, greedy(yr)).token_ids, []
    threads = [threading.Thread(target=lambda: got.append(one(llm, greedy(yr)).token_ids)) for _ in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert got == [whole] * 8


LOAD = "import yirage as yr, os, signal, threading, time; llm = yr.LLM({model!r})\n"
LONG = "yr.SamplingParams(max_tokens=None, ignore_eos=True, temperature=0)"


def test_ctrl_c_stops_a_generation(bedtime, python):
    code = LOAD.format(model=str(bedtime)) + f"""
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    while True: llm.generate(["a"] * 8, {LONG}, use_tqdm=False)
except KeyboardInterrupt: print("stopped", len(llm.generate("a", yr.SamplingParams(max_tokens=2))[0].outputs))
"""
    ran = python(code)
    assert ran.stdout == "stopped 1\n", ran.stderr


def test_a_process_ends_while_an_answer_is_computed(bedtime, python):
    code = LOAD.format(model=str(bedtime)) + f"s = llm.stream('a', {LONG}); next(s); print('end')"
    ran = python(code)
    assert ran.stdout == "end\n" and ran.returncode == 0, ran.stderr


def test_a_fork_of_a_model_is_an_error_and_no_hang(bedtime, python):
    code = LOAD.format(model=str(bedtime)) + """
pid = os.fork()
if pid == 0:
    try: llm.generate("a")
    except yr.ForkError: raise SystemExit(7)
    raise SystemExit(1)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    assert python(code).stdout == "7\n"


SAMPLERS = [
    {"samplers": ["top_k", "temperature"], "top_k": 2}, {"dry_multiplier": 8.0, "dry_allowed_length": 0},
    {"xtc_probability": 1.0, "xtc_threshold": 0.01}, {"typical_p": 0.2}, {"top_n_sigma": 0.5},
    {"dynatemp_range": 1.9}, {"dynatemp_range": 1.9, "dynatemp_exponent": 5.0}, {"mirostat": 1}, {"mirostat": 2},
    {"mirostat": 2, "mirostat_tau": 1.0}, {"mirostat": 2, "mirostat_tau": 1.0, "mirostat_eta": 1.0},
]  # fmt: skip


def test_each_sampler_of_llama_cpp_changes_the_answer(yr, llm):
    def answer(**further):
        return one(llm, yr.SamplingParams(temperature=2.0, seed=3, max_tokens=40, ignore_eos=True, **further)).token_ids

    answers = [answer()] + [answer(**further) for further in SAMPLERS]
    assert len({tuple(tokens) for tokens in answers}) == len(answers)
    assert answers[1:] == [answer(**further) for further in SAMPLERS]
    assert answer(typical_p=1.0, top_n_sigma=-1.0, mirostat=0, xtc_threshold=0.3) == answers[0]
    repeated = {"prompt": "Tom saw a cat. Tom saw a cat. Tom saw"}
    dry = [
        one(llm, greedy(yr, max_tokens=40, ignore_eos=True, dry_multiplier=4.0, dry_allowed_length=1, **further), repeated)
        for further in [{"dry_penalty_last_n": 0}, {"dry_penalty_last_n": -1}, {"dry_penalty_last_n": -1, "dry_base": 20.0}]
    ]
    assert dry[0].token_ids == one(llm, greedy(yr, max_tokens=40, ignore_eos=True), repeated).token_ids
    assert dry[0].token_ids != dry[1].token_ids
    for wrong in [
        {"samplers": ["top_q"]}, {"mirostat": 3}, {"typical_p": 0.0}, {"dry_base": 0.5}, {"dry_penalty_last_n": -2},
        {"xtc_probability": 2.0}, {"dynatemp_range": -1.0}, {"mirostat_eta": 2.0},
    ]:  # fmt: skip
        with pytest.raises(yr.RequestError):
            yr.SamplingParams(**wrong)
