"""Every block of code of the founding documents runs.

A block is run as it stands. One that asks for a device which is absent here has to say so as documented, and then runs
again with the processor in the device's place, so that its other lines run as well.
"""

import importlib.util
import shutil
import sys

import pytest

from . import assumed, blocks
from .conftest import FOUNDING

FOUND = [block for path in sorted(FOUNDING.glob("*.txt")) for block in blocks.of_document(path)]
CODE = [block for block in FOUND if block.is_code]


def named(block):
    return block.name


def test_the_documents_are_there():
    assert len({block.document for block in FOUND}) == 5 and len(CODE) >= 50


def test_nothing_is_left_out_that_is_code(outcome):
    for block in FOUND:
        if not block.is_code:
            outcome("excluded, no code", block)
        else:
            assert block.language in {"python", "bash", "sh", "cmake", "dockerfile"}, block.name


def words_of(block, source):
    """What runs a block, and where."""
    if block.language == "python":
        code = blocks.statements(source)
        return [sys.executable, "-c", "\n".join([*assumed.before(code), code])], "."
    folder = "build" if "cmake " in source else "."
    script = "\n".join(f"( {line} )" if line.startswith("cd ") else line for line in joined(source))
    return ["bash", "-euo", "pipefail", "-c", script], folder


def joined(source):
    """The lines of a script, those that begin with `cd` together with what runs there."""
    lines = []
    for line in source.replace("\\\n", " ").splitlines():
        if lines and lines[-1].startswith("cd ") and line.startswith("pip "):
            lines[-1] += f" && {line}"
        else:
            lines.append(line)
    return lines


@pytest.mark.parametrize("block", CODE, ids=named)
def test_a_block_runs(block, ran, outcome):
    source = assumed.shorter(block.source)
    if "cmake " in source and shutil.which("cmake") is None:
        outcome("not run: there is no cmake here", block)
        pytest.skip("there is no cmake here")
    if needs_torch(source) and importlib.util.find_spec("torch") is None:
        outcome("not run: PyTorch is not installed here", block)
        pytest.skip("PyTorch is not installed here")
    as_it_stands = ran(*words_of(block, source))
    if as_it_stands.returncode == 0:
        outcome("executed as it stands", block)
        return
    told = as_it_stands.stdout + as_it_stands.stderr
    refusals = assumed.PYTHON_REFUSALS if block.language == "python" else assumed.COMMAND_REFUSALS
    assert any(words in told for words in refusals), told
    again = assumed.on_the_processor(source)
    assert again != source, f"nothing in it names an absent device:\n{told}"
    second = ran(*words_of(block, again))
    assert second.returncode == 0, second.stdout + second.stderr
    outcome("raised as documented, and run again on the processor", block)


def needs_torch(source):
    return "torch" in source and "torch_npu" not in source or "[step, tokens]" in source


def test_the_words_of_devices_are_those_of_the_table():
    assert assumed.on_the_processor("yr.set_backend('cuda')") == "yr.set_backend('cpu')"
    assert assumed.on_the_processor("jiuge.py --nvidia --x") == "jiuge.py --cpu --x"
    assert assumed.shorter("benchmark --duration 60") == "benchmark --duration 0.2"
    assert assumed.before("print(batch_size)\nfor b in range(3):\n    print(b)\n") == ["batch_size = 8"]
    assert blocks.statements(">>> a = 1\n>>> for i in x:\n...     i\n2\n") == "a = 1\nfor i in x:\n    i\n"
