"""Where blocks are run, and what became of them."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
# The blocks of the founding documents, one file a document: what stood around them is not here.
FOUNDING = pathlib.Path(__file__).resolve().parent / "founding"
MODEL = ROOT / "crates/yirage-testkit/fixtures/bedtime/bedtime-q8_0.gguf"
COUNTS: dict[str, list[str]] = {}


@pytest.fixture
def outcome():
    """Writes down what became of a block: `outcome(kind, block)`."""

    def told(kind, block):
        COUNTS.setdefault(kind, []).append(block.name)

    return told


def pytest_terminal_summary(terminalreporter):
    if not COUNTS:
        return
    terminalreporter.section("blocks of the documents")
    for kind, names in sorted(COUNTS.items()):
        terminalreporter.write_line(f"{len(names):3} {kind}: {', '.join(names)}")
    terminalreporter.write_line(f"{sum(map(len, COUNTS.values())):3} in all")


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    """A folder as a reader of the documents has it: the repository's programs, a home with a model, `python` on the way."""
    place = tmp_path_factory.mktemp("documents")
    for name in ["tools", "demo", "benchmark", "examples", "tests", "configs", "CMakeLists.txt", "Cargo.toml", "crates"]:
        (place / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "python/compat", place / "python/compat")
    model = place / "home/models/TinyLlama"
    model.mkdir(parents=True)
    (model / "model.gguf").symlink_to(MODEL)
    programs = place / "programs"
    programs.mkdir()
    for name, text in {
        "python": f'exec "{sys.executable}" "$@"',
        # An installer that changes no environment: it looks at what it would install.
        "pip": '[ "$1 $2 $3" = "install -e ." ] && [ -f pyproject.toml ]',
    }.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    (place / "build").mkdir()
    return place


@pytest.fixture
def ran(place):
    """Runs words in that place: `ran(words, folder)` gives the process, ended."""

    def run(words, folder="."):
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("YIRAGE_", "XDG_"))}
        path = os.pathsep.join([str(place / "programs"), kept.get("PATH", "")])
        # What is on the way to the tests is on the way to the blocks.
        known = [str(ROOT / "python/compat"), *kept.get("PYTHONPATH", "").split(os.pathsep)]
        home = {"HOME": str(place / "home"), "PATH": path, "PYTHONPATH": os.pathsep.join(filter(None, known))}
        return subprocess.run(
            words, cwd=place / folder, env=kept | home, capture_output=True, text=True, timeout=600, check=False
        )

    return run
