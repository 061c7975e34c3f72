"""Forward passes: `InferEngine` and `FusedInferEngine`. What transformers computes is the independent reference."""

import json
import math
import os
import threading

import pytest

IDS = [[1, 377, 321, 300]]


@pytest.fixture(scope="module")
def engine(bedtime):
    import yirage

    with yirage.FusedInferEngine(bedtime) as made:
        yield made


def row(tensor, *at):
    values = tensor.tolist()
    for index in at:
        values = values[index]
    return values


def argmax(values):
    return max(range(len(values)), key=values.__getitem__)


COUNTS = ["cache_hits", "cache_misses", "recordings", "fusion_attempts", "fusion_successes", "fusion_fallbacks"]


def counted(engine):
    stats = engine.get_stats()
    return [stats[name] for name in COUNTS]


def test_the_documented_keys_and_defaults(yr, bedtime):
    assert yr.FUSION_AVAILABLE is True
    with yr.FusedInferEngine(model_path=bedtime, enable_fusion=True, warmup_iterations=1, device="cpu") as engine:
        assert set(engine.get_stats()) == {
            "enabled", "fusion_scheduler_available", "cache_size", "cache_hits", "cache_misses", "recordings",
            "fusion_attempts", "fusion_successes", "fusion_fallbacks", "cached_shapes", "fusion_modes",
        }  # fmt: skip
        assert engine.fusion_enabled and engine.fusion_scheduler_available
        assert engine.config.model_type == "llama" and engine.config.vocab_size == 512
        assert engine.config.to_dict()["hidden_size"] == engine.config.hidden_size
    with yr.FusedInferEngine(bedtime, enable_fusion=False) as engine:
        assert not engine.fusion_enabled and not engine.get_stats()["enabled"]
    assert yr.FusionConfig().min_tensor_elements == 1024 and yr.FusionConfig().min_nodes_for_fusion == 2


def test_greedy_tokens_are_those_of_transformers(yr, bedtime, golden):
    # The quantised file of the repository, so only far from ties: the f32 form is compared in Rust.
    with yr.InferEngine(bedtime) as engine:
        for case in golden["cases"]:
            wanted = case["greedy_ids"]
            (got,) = engine.generate([case["prompt_ids"]], max_new_tokens=len(wanted), temperature=0.0, stop_on_eos=False)
            assert got == wanted, case["id"]


def test_logits_are_those_of_transformers(engine, golden):
    case = golden["cases"][0]
    logits = row(engine.forward([case["prompt_ids"]]), 0)
    step = case["steps"][0]
    assert argmax(logits[step["pos"]]) == step["chosen"]
    for token, wanted in zip(step["top10_ids"], step["top10_logits"], strict=True):
        assert logits[step["pos"]][token] == pytest.approx(wanted, abs=2e-3)


def test_the_first_call_a_replay_and_native_give_the_same(engine):
    first = engine.forward(IDS).tolist()
    assert engine.forward(IDS).tolist() == first
    engine.set_fusion_enabled(False)
    before = counted(engine)
    assert engine.forward(IDS).tolist() == first
    assert counted(engine) == before, "calls while disabled change nothing"
    engine.set_fusion_enabled(True)


def test_a_scripted_sequence_gives_exact_counters(yr, bedtime):
    with yr.FusedInferEngine(bedtime) as engine:
        assert counted(engine) == [0] * 6
        engine.forward(IDS)
        assert counted(engine) == [0, 1, 1, 1, 1, 0]
        for _ in range(3):
            engine.forward(IDS)
        assert counted(engine) == [3, 1, 1, 1, 1, 0]
        engine.forward([[5]], [[4]])
        assert counted(engine) == [3, 2, 2, 2, 2, 0]
        engine.forward([[6]], [[5]])
        assert counted(engine) == [4, 2, 2, 2, 2, 0], "another position is no other plan"
        stats = engine.get_stats()
        assert stats["cache_size"] == 2 == len(stats["cached_shapes"])
        assert stats["fusion_modes"] == dict.fromkeys(stats["cached_shapes"], "fusion")
        with pytest.raises(yr.RequestError):
            engine.forward([[5]], [[99]])
        assert counted(engine) == [4, 2, 2, 2, 2, 0], "what is refused is not counted"
        engine.set_fusion_enabled(False)
        engine.forward(IDS)
        engine.set_fusion_enabled(True)
        assert counted(engine) == [4, 2, 2, 2, 2, 0]
        engine.clear_cache()
        cleared = engine.get_stats()
        assert cleared["cache_size"] == 0 and cleared["cached_shapes"] == [] and counted(engine)[0] == 4
        assert engine._native.plan_bytes == 0
        engine.forward(IDS)
        assert counted(engine) == [4, 3, 3, 3, 3, 0]


def test_plans_without_fusion_are_replayed_and_counted(yr, bedtime):
    config = yr.FusionConfig(max_graph_size=1)
    with yr.FusedInferEngine(bedtime, fusion_config=config) as plain, yr.FusedInferEngine(bedtime) as fused:
        assert plain.forward(IDS).tolist() == fused.forward(IDS).tolist()
        assert list(plain.get_stats()["fusion_modes"].values()) == ["graph_replay"]
        assert counted(plain) == [0, 1, 1, 0, 0, 0]


def test_a_model_is_fused_without_a_limit_and_not_with_infinilms_ten(yr, bedtime):
    for most, mode in [(None, "fusion"), (10, "graph_replay"), (10**6, "fusion")]:
        with yr.FusedInferEngine(bedtime, fusion_config=yr.FusionConfig(max_graph_size=most)) as engine:
            engine.forward(IDS)
            assert list(engine.get_stats()["fusion_modes"].values()) == [mode]
    assert yr.FusionConfig().max_graph_size is None


@pytest.mark.parametrize(
    ("config", "counts"),
    [
        ({"enable_cache": False}, [0, 2, 2, 2, 2, 0]),
        ({"enable_fusion": False}, [0] * 6),
        ({"min_nodes_for_fusion": 10**6}, [1, 1, 1, 0, 0, 0]),
        ({"min_tensor_elements": 10**9}, [1, 1, 1, 0, 0, 0]),
        ({"cache_bytes": 1}, [0, 2, 2, 2, 2, 0]),
    ],
)
def test_each_setting_of_fusion_changes_something(yr, bedtime, config, counts):
    with yr.FusedInferEngine(bedtime, fusion_config=yr.FusionConfig(**config)) as engine:
        assert engine.forward(IDS).tolist() == engine.forward(IDS).tolist()
        assert counted(engine) == counts


def test_what_happens_beside_a_result_is_logged(yr, bedtime, caplog):
    for debug, level in [(True, "INFO"), (False, "DEBUG")]:
        caplog.clear()
        config = yr.FusionConfig(max_graph_size=1, debug_mode=debug)
        with caplog.at_level("DEBUG", "yirage"), yr.FusedInferEngine(bedtime, fusion_config=config) as engine:
            engine.forward(IDS)
        told = [record for record in caplog.records if "the graph is not fused" in record.getMessage()]
        assert told and told[0].levelname == level


def test_a_replay_follows_tokens_positions_and_cached_lengths(engine):
    tokens = [1, 377, 321, 300, 44, 17, 260, 301]
    whole = row(engine.forward([tokens]), 0)
    engine.reset_cache()
    assert engine.cached_lengths and set(engine.cached_lengths) == {0}
    pieces = row(engine.forward([tokens[:3]], [[0, 1, 2]]), 0)
    for at in range(3, len(tokens)):
        pieces += row(engine.forward([[tokens[at]]], pos=[[at]]), 0)
    assert pieces == whole
    # The same shape at an earlier position: what was cached behind it is forgotten.
    again = row(engine.forward([[tokens[3]]], position_ids=[[3]]), 0)
    assert again == whole[3:4] and engine.cached_lengths[0] == 4
    other = row(engine.forward([[tokens[3]]], pos=[[2]]), 0)
    assert other != again
    assert row(engine.forward([[tokens[3]]], past_kv_lengths=[3], total_kv_lengths=[4]), 0) == row(
        engine.forward([[tokens[3]]], pos=[3]), 0
    )


def test_rows_of_a_batch_are_those_of_each_alone(engine):
    rows = [[1, 377, 321], [300, 44, 17], [5, 6, 7]]
    together = engine.forward(rows).tolist()
    alone = [row(engine.forward([one]), 0) for one in rows]
    assert together == alone
    made = engine.generate(rows, max_new_tokens=5, temperature=0.0)
    assert made == [engine.generate([one], max_new_tokens=5, temperature=0.0)[0] for one in rows]


def test_tokens_are_chosen_as_is_asked(engine):
    logits = row(engine.forward(IDS), 0, -1)
    assert engine.forward(IDS, temperature=0.0) == [argmax(logits)]
    assert engine.forward(IDS, top_k=1) == [argmax(logits)]
    assert engine.forward(IDS, temperature=1.0, top_p=1e-6) == [argmax(logits)]
    drawn = {engine.forward(IDS, temperature=5.0, seed=seed)[0] for seed in range(12)}
    assert len(drawn) > 1
    assert engine.forward(IDS, temperature=5.0, seed=3) == engine.forward(IDS, temperature=5.0, seed=3)
    hot = [engine.generate(IDS, max_new_tokens=8, temperature=3.0, top_k=0, seed=seed)[0] for seed in (1, 1, 2)]
    assert hot[0] == hot[1] != hot[2]
    greedy = engine.generate(IDS, max_new_tokens=8, temperature=0.0, stop_on_eos=False)[0]
    assert engine.generate(IDS, max_new_tokens=8, top_k=1, stop_on_eos=False)[0] == greedy
    ended = engine.generate(IDS, max_new_tokens=8, temperature=0.0, eos_token_id=greedy[2])[0]
    assert ended == greedy[: greedy.index(greedy[2]) + 1]
    assert engine.generate(IDS, max_new_tokens=3, temperature=0.0, stop_on_eos=False)[0] == greedy[:3]


def test_what_cannot_be_computed_is_told(yr, engine):
    for ids, pos in [
        ([[]], None), ([[1], [1, 2]], None), ([[512]], None), ([[-1]], None), ("text", None), ([[1.5]], None),
        ([[1, 2]], [[0, 2]]), ([[1, 2]], [[0]]), ([[1]], [[10**5]]), ([[1] * 5000], None),
    ]:  # fmt: skip
        with pytest.raises(yr.RequestError):
            engine.forward(ids, pos)
    with pytest.raises(yr.RequestError, match="past_kv_lengths"):
        engine.forward([[1]], [[0]], past_kv_lengths=[3])
    with pytest.raises(yr.RequestError, match="total_kv_lengths"):
        engine.forward([[1]], [[0]], total_kv_lengths=[3])
    with pytest.raises(yr.RequestError, match="max_new_tokens"):
        engine.generate(IDS)
    with pytest.raises(yr.RequestError, match="temperature"):
        engine.generate(IDS, max_new_tokens=1, temperature=-1.0)
    with pytest.raises(yr.Unsupported, match="block_tables"):
        engine.forward(IDS, block_tables=[[0]])
    with pytest.raises(TypeError, match="colour"):
        engine.forward(IDS, colour=1)
    assert engine.forward(IDS, block_tables=None, pixel_values=None).shape == (1, 4, 512)


def test_names_of_infinilm_do_what_they_say_or_refuse(yr, engine):
    ids = [[1, 377, 321]]
    assert engine.forward_raw(ids).tolist() == engine.forward(ids).tolist()
    with pytest.raises(TypeError, match="top_k"):
        engine.forward_raw(ids, top_k=1)
    assert engine.process_weights_after_loading() is None
    with pytest.raises(yr.Unsupported, match="cached_lengths"):
        engine.get_kv_cache()
    with pytest.raises(yr.Unsupported, match="StaticKVCacheConfig"):
        engine.reset_cache(yr.PagedKVCacheConfig(num_blocks=4))


def test_arguments_of_infinilm_are_taken_reported_or_refused(yr, bedtime, caplog):
    with caplog.at_level("INFO", "yirage"):
        yr.InferEngine(bedtime, distributed_config=yr.DistConfig(1), attention_backend="flash-attn", use_mla=False).close()
    assert sum("attention_backend" in record.getMessage() for record in caplog.records) == 1
    assert not any("use_mla" in record.getMessage() for record in caplog.records)
    with pytest.raises(yr.OptionError, match="moe_ep_size=4: expected 1, or 2"):
        yr.InferEngine(bedtime, distributed_config=yr.DistConfig(2), moe_ep_size=4)
    with pytest.raises(yr.OptionError, match="expected a model with experts, got one without"):
        yr.InferEngine(bedtime, distributed_config=yr.DistConfig(2), moe_ep_size=2)
    with pytest.raises(TypeError, match="colour"):
        yr.InferEngine(bedtime, colour="red")
    for wrong in [{"precision": "rough"}, {"kv_cache_dtype": "q1"}]:
        with pytest.raises(yr.OptionError):
            yr.InferEngine(bedtime, **wrong)
    with pytest.raises(yr.ModelNotFoundError):
        yr.InferEngine("/no/such/model")


def test_devices_are_named_in_every_way(yr, bedtime):
    class Device:
        def __init__(self, kind, index):
            self.type, self.index = kind, index

    for device in ["cpu", "cpu:0", yr.BackendType.CPU, Device("cpu", 0), Device("cpu", None), None]:
        yr.InferEngine(bedtime, device=device).close()
    with pytest.raises(yr.OptionError, match="cpu:x"):
        yr.InferEngine(bedtime, device="cpu:x")
    if not yr.is_backend_available("cuda"):
        for device in ["cuda", "cuda:0", Device("cuda", 0)]:
            with pytest.raises(yr.BackendUnavailableError):
                yr.FusedInferEngine(bedtime, device=device)


def test_the_cache_has_the_size_that_is_asked_for(yr, bedtime):
    sizes = yr.StaticKVCacheConfig(max_batch_size=3, max_cache_len=64)
    with yr.InferEngine(bedtime, cache_config=sizes) as engine:
        assert engine.cached_lengths == [0, 0, 0]
        with pytest.raises(yr.RequestError, match="64"):
            engine.forward([[1] * 65])
        engine.forward([[1] * 64])
        engine.reset_cache(yr.StaticKVCacheConfig(max_batch_size=2, max_cache_len=32))
        assert engine.cached_lengths == [0, 0]
        with pytest.raises(yr.RequestError, match="32"):
            engine.forward([[1] * 33])
        with pytest.raises(yr.RequestError, match="opened with 64"):
            engine.reset_cache(yr.StaticKVCacheConfig(max_cache_len=65))


def hf_folder(tmp_path):
    """A tiny Llama as Hugging Face writes it, with random weights in float32."""
    np = pytest.importorskip("numpy")
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 32, "intermediate_size": 48,
        "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2, "vocab_size": 64, "rms_norm_eps": 1e-5,
        "max_position_embeddings": 64, "rope_theta": 10000.0, "tie_word_embeddings": True, "torch_dtype": "float32",
        "hidden_act": "silu", "eos_token_id": 2,
    }  # fmt: skip
    shapes = {"model.embed_tokens.weight": (64, 32), "model.norm.weight": (32,)}
    layer = "model.layers.0."
    shapes |= {f"{layer}self_attn.{name}_proj.weight": (32, 32) for name in "qkvo"}
    shapes |= {f"{layer}mlp.{name}_proj.weight": (48, 32) for name in ("gate", "up")}
    shapes |= {f"{layer}mlp.down_proj.weight": (32, 48)}
    shapes |= {f"{layer}{name}_layernorm.weight": (32,) for name in ("input", "post_attention")}
    rng = np.random.default_rng(7)
    state = {name: rng.standard_normal(shape).astype(np.float32) / 4 for name, shape in shapes.items()}
    header, at, data = {}, 0, b""
    for name, array in state.items():
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at, data = at + array.nbytes, data + array.tobytes()
    text = json.dumps(header).encode()
    (tmp_path / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
    (tmp_path / "config.json").write_text(json.dumps(config))
    return tmp_path, state


def reference(np, state, ids):
    """That model's logits, written down anew in float64."""
    weights = {name: array.astype(np.float64) for name, array in state.items()}
    norm = lambda x, w: x / np.sqrt(np.mean(x * x, -1, keepdims=True) + 1e-5) * w
    x = weights["model.embed_tokens.weight"][ids]
    layer, heads, width = "model.layers.0.", 2, 16
    angles = np.arange(len(ids))[:, None] * 10000.0 ** (-np.arange(0, width, 2) / width)[None]
    cos, sin = np.cos(angles), np.sin(angles)

    def rotated(y):
        y = y.reshape(len(ids), heads, 2, width // 2)
        a, b = y[:, :, 0], y[:, :, 1]
        return np.concatenate([a * cos[:, None] - b * sin[:, None], b * cos[:, None] + a * sin[:, None]], -1)

    h = norm(x, weights[layer + "input_layernorm.weight"])
    q, k, v = (h @ weights[f"{layer}self_attn.{name}_proj.weight"].T for name in "qkv")
    q, k, v = rotated(q), rotated(k), v.reshape(len(ids), heads, width)
    scores = np.einsum("ihd,jhd->hij", q, k) / math.sqrt(width)
    scores = np.where(np.tril(np.ones(scores.shape[1:], bool)), scores, -np.inf)
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    shares /= shares.sum(-1, keepdims=True)
    seen = np.einsum("hij,jhd->ihd", shares, v).reshape(len(ids), -1)
    x = x + seen @ weights[f"{layer}self_attn.o_proj.weight"].T
    h = norm(x, weights[layer + "post_attention_layernorm.weight"])
    gate, up = h @ weights[layer + "mlp.gate_proj.weight"].T, h @ weights[layer + "mlp.up_proj.weight"].T
    x = x + (gate / (1 + np.exp(-gate)) * up) @ weights[layer + "mlp.down_proj.weight"].T
    return norm(x, weights["model.norm.weight"]) @ weights["model.embed_tokens.weight"].T


def test_a_state_dict_is_loaded_and_names_are_compared(yr, tmp_path):
    np = pytest.importorskip("numpy")
    folder, state = hf_folder(tmp_path)
    ids = [3, 1, 4, 15, 9, 26]
    with yr.FusedInferEngine(folder) as engine:
        assert engine.config.dtype is yr.float32
        assert sorted(engine.state_dict_keyname()) == sorted(state)
        got = engine.forward(np.array([ids]))
        assert isinstance(got, np.ndarray) and got.shape == (1, 6, 64)
        np.testing.assert_allclose(got[0], reference(np, state, ids), rtol=1e-3, atol=1e-3)
        other = {name: np.asfortranarray(array * 1.25) for name, array in state.items()}
        keys = engine.load_state_dict(other | {"lm_head.weight": other["model.embed_tokens.weight"]})
        assert keys == ([], [])
        np.testing.assert_allclose(engine.forward(np.array([ids]))[0], reference(np, other, ids), rtol=1e-3, atol=1e-3)
        missing = dict(state)
        del missing["model.norm.weight"]
        with pytest.raises(yr.ModelError, match="missing: model.norm.weight; unexpected: model.extra"):
            engine.load_state_dict(missing | {"model.extra": state["model.norm.weight"]})
        np.testing.assert_allclose(engine.forward(np.array([ids]))[0], reference(np, other, ids), rtol=1e-3, atol=1e-3)
        loose = engine.load_state_dict(missing | {"model.extra": state["model.norm.weight"]}, strict=False)
        assert loose.missing_keys == ["model.norm.weight"] and loose.unexpected_keys == ["model.extra"]
        np.testing.assert_allclose(engine.forward(np.array([ids]))[0], reference(np, state, ids), rtol=1e-3, atol=1e-3)
        with pytest.raises(yr.ModelError, match="shape"):
            engine.load_state_dict(state | {"model.norm.weight": np.ones(31, np.float32)})
        with pytest.raises(yr.ArrayError):
            engine.load_state_dict(state | {"model.norm.weight": np.ones(32, np.int32)})
        half = {name: array.astype(np.float16) for name, array in state.items()}
        engine.load_state_dict(half)
        np.testing.assert_allclose(engine.forward(np.array([ids]))[0], reference(np, half, ids), rtol=1e-2, atol=1e-2)


def test_weights_come_from_files(yr, tmp_path, bedtime, caplog):
    folder, _ = hf_folder(tmp_path)
    with yr.FusedInferEngine(folder) as engine:
        with caplog.at_level("INFO", "yirage"):
            yr.load_model_state_dict_by_file(engine, folder, dtype=engine.config.dtype)
            assert not any("dtype" in record.getMessage() for record in caplog.records)
            yr.load_model_state_dict_by_file(engine, folder, dtype="bfloat16")
            assert any("dtype=bfloat16" in record.getMessage() for record in caplog.records)
        engine.forward([[1, 2, 3]])
        with pytest.raises(yr.ModelError, match="another model"):
            yr.load_model_state_dict_by_file(engine, bedtime)
        engine.forward([[1, 2, 3]])


def test_torch_goes_in_and_comes_out(engine):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed here")
    ids = torch.tensor(IDS, dtype=torch.long)
    got = engine.forward(input_ids=ids, pos=torch.arange(4)[None])
    assert isinstance(got, torch.Tensor) and got.dtype == torch.float32 and tuple(got.shape) == (1, 4, 512)
    assert got.tolist() == engine.forward(IDS).tolist()


def test_threads_share_an_engine(engine):
    wanted = engine.forward(IDS).tolist()
    got, rows = [], [[[1, 377, 321, 300]], [[5, 6, 7, 8]]]
    other = engine.forward(rows[1]).tolist()
    before = sum(counted(engine)[:2])

    def work(which):
        for _ in range(8):
            got.append((which, engine.forward(rows[which]).tolist()))

    threads = [threading.Thread(target=work, args=(i % 2,)) for i in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(got) == 64 and all(values == (other if which else wanted) for which, values in got)
    assert sum(counted(engine)[:2]) == before + 64


def test_a_closed_engine_says_so(yr, bedtime):
    engine = yr.InferEngine(bedtime)
    engine.close()
    with pytest.raises(yr.EngineError, match="closed"):
        engine.forward(IDS)


def test_the_tokenizer_is_the_models(yr, engine, bedtime):
    tokenizer = engine.get_tokenizer()
    with yr.LLM(bedtime) as model:
        text = "Once upon a time"
        assert tokenizer.encode(text) == model.get_tokenizer().encode(text)
        assert tokenizer.decode(tokenizer.encode(text), skip_special_tokens=True).strip() == text


def test_ctrl_c_stops_a_generation(bedtime, python):
    ran = python(f"""
import os, signal, threading, yirage as yr
engine = yr.InferEngine({str(bedtime)!r})
engine.forward([[1]])
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    while True: engine.generate([[1, 377]] * 4, max_new_tokens=200, stop_on_eos=False)
except KeyboardInterrupt: print("stopped", engine.forward([[1]]).shape)
""")
    assert ran.stdout == "stopped (1, 1, 512)\n", ran.stderr


def test_engines_come_and_go_without_growth(yr, bedtime):
    def once():
        with yr.FusedInferEngine(bedtime) as engine:
            engine.forward(IDS)

    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    [once() for _ in range(5)]
    before = resident()
    [once() for _ in range(20)]
    assert resident() < before + (32 << 20)


def test_questions_wait_for_a_generation_of_another_thread(python, bedtime):
    code = f"""
import threading
import yirage as yr
with yr.InferEngine({str(bedtime)!r}) as engine:
    thread = threading.Thread(target=lambda: engine.generate([[1]], max_new_tokens=300, temperature=0.0, stop_on_eos=False))
    thread.start()
    while thread.is_alive():
        engine.cached_lengths, engine.state_dict_keyname()
    print("over")
"""
    ran = python(code)
    assert ran.stdout.strip() == "over", ran.stderr
