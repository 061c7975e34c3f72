"""What tests share: the package, the small model of the repository, and what may be absent."""

import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BEDTIME = ROOT / "crates/yirage-testkit/fixtures/bedtime"

# What a shell starts in the background ignores Ctrl-C, and hands that on to the processes of tests.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def bedtime():
    """The path of a small trained model."""
    return BEDTIME / "bedtime-q8_0.gguf"


@pytest.fixture(scope="session")
def golden():
    """What transformers computes with that model in float32."""
    return json.loads((BEDTIME / "golden.json").read_text())


@pytest.fixture
def yr():
    """The package, with nothing set or registered before and after."""
    import yirage

    yirage.BackendRegistry.reset()
    yield yirage
    yirage.BackendRegistry.reset()


@pytest.fixture
def python():
    """Runs a program in a process of its own: ``python(code, **environment)`` gives it, ended."""

    def run(code, **environment):
        kept = {k: v for k, v in os.environ.items() if not k.startswith("YIRAGE_")}
        return subprocess.run(
            [sys.executable, "-c", code], env=kept | environment, capture_output=True, text=True, timeout=120
        )

    return run
