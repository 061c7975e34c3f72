"""The programs of the repository where the package is not installed: a sentence that says how to install it, and no traceback."""

import os
import subprocess
import sys

import pytest

from conftest import ROOT

PROGRAMS = [
    "examples/jiuge.py",
    "examples/llm_inference_multi_backend.py",
    "demo/demo_multi_backend.py",
    "benchmark/multi_backend_benchmark.py",
    "configs/backend_templates.py",
    "tools/yirage_backend_manager.py",
    "tests/test_multi_backend.py",
]


def test_every_example_is_among_the_programs():
    assert {f"examples/{path.name}" for path in (ROOT / "examples").glob("*.py")} <= set(PROGRAMS)


@pytest.mark.parametrize("name", PROGRAMS)
def test_without_the_package_a_program_says_how_to_install_it(name, tmp_path):
    # No environment and no site packages: the package is nowhere, as before it was installed.
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    ran = subprocess.run(
        [sys.executable, "-S", "-E", str(ROOT / name)], capture_output=True, text=True, timeout=60, cwd=tmp_path, env=kept
    )
    assert ran.returncode == 1, ran.stderr
    assert "Traceback" not in ran.stderr and ran.stdout == ""
    (line,) = ran.stderr.splitlines()
    assert line.startswith(name.split("/")[-1]) and "yirage is not installed" in line and "pip install ." in line
