"""Settings of YiRage's own files as arguments of a kernel, names of traces, and the model that the package's documentation names."""

import json
import logging
import re

import pytest

import yirage
from conftest import BEDTIME

# Keys that YiRage's `backend_utils` writes beside those that mean something here.
KEYS = {
    "memory_pool_size_mb": 1024,
    "use_mixed_precision": True,
    "optimize_for_inference": False,
    "use_unified_memory": True,
    "use_openmp": True,
    "openmp_threads": 8,
    "use_blas": True,
}


def test_a_kernel_takes_what_a_file_of_settings_has(yr, tmp_path, caplog):
    caplog.set_level(logging.INFO, logger="yirage")
    file = tmp_path / "settings.json"
    file.write_text(json.dumps(yr.auto_configure_backend("cpu") | KEYS))
    kernel = yr.PersistentKernel(**yr.BackendOptimizer().load_config(file))
    assert kernel.backend == "cpu"
    told = [record.getMessage() for record in caplog.records]
    for key, value in KEYS.items():
        assert sum(f"{key}={value} changes nothing: " in text for text in told) == 1, (key, told)
    with pytest.raises(TypeError, match="unexpected keyword argument 'use_openmpi'"):
        yr.PersistentKernel(use_openmpi=True)


@pytest.mark.parametrize("name", ["", "/", "traces/", ".", "..", "traces/.", "a\0b"])
def test_a_trace_without_a_name_is_refused(yr, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for make in [yr.PersistentKernel, lambda **named: yr.MPK(yr.MPKMetadata(model_path=str(tmp_path), **named))]:
        with pytest.raises(yr.OptionError, match=re.escape("trace_name=")):
            make(trace_name=name)
    graph = yr.new_kernel_graph()
    graph.mark_output(graph.exp(graph.new_input([4], dtype="float32")))
    if "\0" not in name:
        with pytest.raises(yr.OptionError, match=re.escape("file_name=")):
            graph.visualize(name)
    assert list(tmp_path.iterdir()) == []


def test_a_kernel_is_saved_in_a_folder_that_has_a_name(yr, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kernel = yr.PersistentKernel()
    for call in [kernel.compile, kernel.save]:
        with pytest.raises(yr.OptionError, match="output_dir='': the name of a folder"):
            call("")
    assert list(tmp_path.iterdir()) == []


def test_the_example_of_the_package_runs_as_it_stands(yr, python, tmp_path):
    lines = [line.strip().removeprefix(">>> ") for line in yirage.__doc__.splitlines() if line.strip().startswith(">>> ")]
    (name,) = re.findall(r'LLM\("([^"]+)"\)', "\n".join(lines))
    # What is no name of the catalogue is refused with all that are.
    with pytest.raises(yr.ModelNotFoundError) as unknown:
        yr.LLM("no-such-model")
    assert name in str(unknown.value)
    code = "import array\narray = memoryview(array.array('f', [0.5] * 512)).cast('B').cast('f', (8, 64))\n"
    # The story model of the tests stands for the model, which is not fetched here.
    code += "\n".join(lines).replace(f'"{name}"', repr(str(BEDTIME / "bedtime-q8_0.gguf")))
    ran = python(code, HF_HOME=str(tmp_path))
    assert ran.returncode == 0, ran.stderr
