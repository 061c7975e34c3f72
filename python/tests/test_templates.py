"""Templates of settings, and the documents' programs."""

import json
import pathlib
import runpy
import subprocess
import sys

import pytest

from conftest import ROOT

KEYS = {
    "backend", "device_id", "num_workers", "num_local_schedulers", "num_remote_schedulers", "max_seq_length",
    "max_num_batched_requests", "max_num_batched_tokens", "page_size", "max_num_pages",
}  # fmt: skip


def test_there_are_fifteen_templates_and_each_holds_together(yr):
    templates = yr.list_templates()
    assert len(templates) >= 15 and "training" in templates
    assert {"cuda_high_end", "cuda_mid_range", "cuda_low_end", "mps_m3_max", "mps_m2_pro", "mps_m1", "cpu_high_core",
            "cpu_standard", "cpu_low_power", "inference", "training", "memory_constrained", "development"} <= set(templates)  # fmt: skip
    assert "gradients" in templates["training"], "what training means here is said"
    for name in templates:
        settings = yr.get_template(name)
        assert set(settings) == KEYS
        assert all(isinstance(settings[key], int) for key in KEYS - {"backend"})
        assert settings["num_local_schedulers"] <= settings["num_workers"]
        assert settings["max_num_pages"] * settings["page_size"] >= settings["max_seq_length"]
    assert yr.get_template("cuda_high_end")["num_workers"] == 96
    assert yr.get_template("inference")["num_workers"] == yr.auto_configure_backend()["num_workers"]


def test_each_template_constructs_a_persistent_kernel(yr):
    if not hasattr(yr, "PersistentKernel"):
        pytest.skip("the package has no PersistentKernel yet")
    for name in yr.list_templates():
        yr.PersistentKernel(**yr.get_template(name) | {"backend": "cpu"})


def test_templates_are_changed_recommended_saved_and_loaded(yr, tmp_path):
    made = yr.get_template("latency", max_seq_length=100, num_workers=3, num_local_schedulers=1)
    assert (made["max_seq_length"], made["num_workers"], made["max_num_pages"]) == (100, 3, 4)
    assert yr.get_template("latency", max_num_pages=777)["max_num_pages"] == 777
    assert yr.recommended_template() in yr.list_templates()
    assert yr.get_template(yr.recommended_template())["backend"] in ["cpu", *yr.list_available_backends()]
    assert yr.recommended_template("latency") == "latency"
    file = tmp_path / "template.json"
    saved = yr.save_template(file, "throughput", max_num_batched_requests=7)
    assert yr.load_template(file) == saved == json.loads(file.read_text())
    for wrong in [
        lambda: yr.get_template("dreaming"),
        lambda: yr.recommended_template("dreaming"),
        lambda: yr.get_template("latency", colour=1),
        lambda: yr.get_template("latency", num_workers=0),
        lambda: yr.get_template("latency", num_workers=True),
        lambda: yr.get_template("latency", num_workers="4"),
        lambda: yr.get_template("throughput", max_num_batched_tokens=2),
        lambda: yr.get_template("cuda_high_end", backend="cpu"),
    ]:
        with pytest.raises(yr.OptionError):
            wrong()


def program(name, *arguments, code=0, cwd=None):
    """What a program of the repository prints."""
    ran = subprocess.run(
        [sys.executable, str(ROOT / name), *map(str, arguments)], capture_output=True, text=True, timeout=300, cwd=cwd
    )
    assert ran.returncode == code, ran.stdout + ran.stderr
    return ran.stdout if code == 0 else ran.stderr


def test_the_program_of_templates(tmp_path):
    assert "latency" in program("configs/backend_templates.py", "list")
    assert json.loads(program("configs/backend_templates.py", "show", "cuda_mid_range"))["num_workers"] == 64
    file = tmp_path / "saved.json"
    program("configs/backend_templates.py", "save", "development", file)
    assert json.loads(file.read_text())["max_seq_length"] == 512
    assert program("configs/backend_templates.py", "recommended", "latency") == "latency\n"
    custom = program("configs/backend_templates.py", "custom", "development", "max_seq_length=64")
    assert json.loads(custom)["max_seq_length"] == 64
    assert "dreaming" in program("configs/backend_templates.py", "show", "dreaming", code=1)
    assert "KEY=NUMBER" in program("configs/backend_templates.py", "custom", "development", "max", code=1)


def test_the_demonstration():
    told = program("demo/demo_multi_backend.py", "--backend", "cpu", "--iterations", 2, "--skip-persistent")
    assert "== cpu" in told and "median" in told and "PersistentKernel" not in told
    assert "== cpu" in program("demo/demo_multi_backend.py", "--backend", "all", "--iterations", 0)
    assert "nonsense" in program("demo/demo_multi_backend.py", "--backend", "nonsense", code=1)


def test_the_benchmark_is_consistent_with_itself(tmp_path):
    file = tmp_path / "results.json"
    program(
        "benchmark/multi_backend_benchmark.py", "--iterations", 3, "--warmup", 1, "--output", file, "--batch-sizes", 1, 2,
        "--seq-lengths", 4, "--hidden-sizes", 32, "--vocab-sizes", 64, "--dtype", "float16", "--backends", "cpu", "nonsense",
    )  # fmt: skip
    report = json.loads(file.read_text())
    assert "nonsense" in report["errors"] and len(report["results"]) == 8
    for row in report["results"]:
        assert row["throughput_gflops"] == pytest.approx(row["flops"] / row["mean_ms"] / 1e6)
        assert row["min_ms"] <= row["mean_ms"] <= row["max_ms"] and row["std_ms"] >= 0 and row["dtype"] == "float16"
        if row["op"] in ("matmul", "head"):
            m, k, n = row["shape"]
            assert row["flops"] == 2 * m * k * n


def test_a_model_by_a_template():
    told = program("examples/llm_inference_multi_backend.py", "--template", "development", "--max-new-tokens", 4)
    assert "by development" in told and "Once upon a time" in told
    assert "by latency" in program("examples/llm_inference_multi_backend.py", "--template", "latency", "--compare-all")
    wrong = program("examples/llm_inference_multi_backend.py", "--template", "inference", "--model", "/no/such", code=1)
    assert "/no/such" in wrong


def test_jiuge(yr, bedtime):
    plain = program("examples/jiuge.py", "--cpu", "--model_path", bedtime, "--max-new-tokens", 6)
    assert plain.startswith("Once upon a time") and "cache_hits" not in plain
    fused = program("examples/jiuge.py", "--cpu", "--model_path", bedtime, "--max-new-tokens", 6, "--enable-fusion")
    assert fused.splitlines()[:-1] == plain.splitlines() and "'fusion_successes': 2" in fused
    both = program("examples/jiuge.py", "--cpu", "--model_path", bedtime, "--max-new-tokens", 6, "--batch-size", 2)
    assert both == plain * 2
    drawn = [
        program("examples/jiuge.py", "--model_path", bedtime, "--temperature", 2, "--top-k", 0, "--seed", seed)
        for seed in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1] != drawn[2]
    assert "tokens/s" in program("examples/jiuge.py", "--model_path", bedtime, "--bench", "--max-new-tokens", 3)
    assert program("examples/jiuge.py", "--model_path", bedtime, "--prompt", "The king").startswith("The king")
    for name in ["nvidia", "metax", "moore", "iluvatar", "cambricon"]:
        if not yr.is_backend_available(name):
            assert "jiuge.py: " in program("examples/jiuge.py", f"--{name}", "--model_path", bedtime, code=1)


def test_the_manager_of_backends(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    manager = "tools/yirage_backend_manager.py"
    assert "cpu 0" in program(manager, "info")
    file = tmp_path / "out.json"
    assert "workers" in program(manager, "optimize", "--backend", "cpu", "--apply", "--output", file)
    assert json.loads(file.read_text())["backend"] == "cpu"
    assert json.loads(program(manager, "benchmark", "--duration", 0.1, "--json"))["backends"]
    program(manager, "set", "cpu")
    assert json.loads(program(manager, "config", "show", "--json"))["settings"]["backend"] == "cpu"
    saved = tmp_path / "kept.json"
    program(manager, "config", "save", saved)
    program(manager, "reset")
    program(manager, "config", "load", saved)
    assert "cpu" in program(manager, "config", "show")
    assert "passed" in program(manager, "test", "cpu", "--quick")
    program(manager, "set", "nonsense", code=2)


def test_the_perplexity_of_a_text(bedtime, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("Once upon a time there was a king who had a little garden.")
    assert program("examples/jiuge.py", "--model_path", bedtime, "--perplexity", text)


def test_the_package_is_the_command_as_well():
    ran = subprocess.run([sys.executable, "-m", "yirage", "--version"], capture_output=True, text=True)
    assert ran.returncode == 0 and ran.stdout.startswith("yirage")


def test_the_short_test_of_backends(monkeypatch):
    made = runpy.run_path(str(ROOT / "tests/test_multi_backend.py"))
    assert made["run_tests"]() is True


def test_the_names_of_other_projects(python):
    compat = str(ROOT / "python/compat")
    ran = python(
        f"import runpy, unittest, sys; sys.path.insert(0, {compat!r})\n"
        f"sys.argv = ['x']; runpy.run_path({str(ROOT / 'tests/unit/test_backends.py')!r}, run_name='__main__')"
    )
    assert ran.returncode == 0 and "OK" in ran.stderr, ran.stderr
    alone = python(f"import runpy, sys; sys.path.insert(0, {compat!r})\n"
                   f"runpy.run_path({str(ROOT / 'tests/standalone_test_backends.py')!r}, run_name='__main__')")  # fmt: skip
    assert alone.returncode == 0 and "all tests passed" in alone.stdout, alone.stderr


def test_the_installer_says_what_it_would_do():
    script = str(ROOT / "install_multi_backend.sh")
    told = subprocess.run(["bash", script, "--dry-run", "--only", "cpu", "cuda", "--with-compat"], capture_output=True, text=True)
    assert told.returncode == 0 and "--features cpu,cuda" in told.stdout and "python/compat" in told.stdout, told.stderr
    assert subprocess.run(["bash", script, "--colour"], capture_output=True).returncode == 2
    assert pathlib.Path(script).stat().st_mode & 0o111
