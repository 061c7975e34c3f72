"""The pages for users of Python, the notebook and the site: every block runs, every message is one that is raised."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import types

import pytest

np = pytest.importorskip("numpy", reason="NumPy is not installed here")

import pages  # noqa: E402 - the examples need NumPy
from conftest import ROOT  # noqa: E402
from model_files import folder, golden_vision, vision_folder  # noqa: E402

sys.path.insert(0, str(ROOT / "tools/site"))

import hooks  # noqa: E402 - it lies there
import reference  # noqa: E402

NOTEBOOK = ROOT / "examples/notebook.ipynb"
TROUBLESHOOTING = pages.FOLDER / "troubleshooting.md"
MIGRATION = pages.FOLDER / "migration.md"
TEMPLATE = "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}assistant:"


@pytest.fixture
def place(tmp_path, monkeypatch, bedtime):
    """The folder of a reader: a small model, folders of one with a template and of one that reads pictures, nothing set."""
    for name in [name for name in os.environ if name.startswith(("YIRAGE_", "OMP_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.syspath_prepend(str(ROOT / "python/compat"))
    (tmp_path / "model.gguf").symlink_to(bedtime)
    (folder(tmp_path / "chat-model", "llama") / "chat_template.jinja").write_text(TEMPLATE)
    vision_folder(tmp_path / "vision-model", seeing := golden_vision("llava"))
    (tmp_path / "picture.png").write_bytes(seeing["pictures"]["first"])
    (tmp_path / "story.txt").write_text("One day, a little cat named Tom went to the park.")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ran(path, namespace):
    """Runs what a page has, but for blocks that need PyTorch where it is not."""
    torch = importlib.util.find_spec("torch") is not None
    examples = [one for one in pages.examples(path) if torch or not one.needs_torch]
    assert examples, f"{path} has no example"
    wrong = [one.run(namespace) for one in examples]
    assert not any(wrong), "\n\n".join(filter(None, wrong))


@pytest.mark.parametrize("path", pages.PAGES, ids=lambda path: path.stem)
def test_the_examples_of_a_page_run(yr, place, path):
    ran(path, {"__name__": "__main__"})


def test_the_examples_of_the_readme_run(yr, place, tmp_path, monkeypatch):
    arrays = {"a": np.ones((8, 64), np.float32), "b": np.ones((64, 32), np.float32)}
    # The same in little time.
    shorter = pages.README.read_text().replace('config="mlp"', 'config="mlp", budget=2000, profile_iters=20')
    (tmp_path / "README.md").write_text(shorter)
    ran(tmp_path / "README.md", {"__name__": "__main__"} | arrays)


TORCH = [one for path in pages.PAGES for one in pages.examples(path) if one.needs_torch]


@pytest.mark.parametrize("example", TORCH, ids=lambda one: one.name)
def test_examples_with_torch_stand_alone(yr, place, example):
    pytest.importorskip("torch", reason="PyTorch is not installed here")
    assert example.run({"__name__": "__main__"}) is None


def test_there_are_the_pages_that_were_promised():
    assert {path.stem for path in pages.PAGES} == {"guide", "migration", "performance", "quickstart", "troubleshooting"}
    assert len(TORCH) >= 1 and sum(len(pages.examples(path)) for path in pages.PAGES) >= 50


LINES = [pytest.param(line, id=name) for path in pages.PAGES for name, line in pages.shell(path)]


@pytest.mark.parametrize("line", LINES)
def test_lines_for_a_shell_run(place, line):
    """`pip` looks at what it would install, and changes no environment: tools/python/run.sh installs the wheel."""
    programs = place / "programs"
    programs.mkdir()
    for name, text in {
        "python": f'exec "{sys.executable}" "$@"',
        "yirage": f'exec "{sys.executable}" -m yirage "$@"',
        "pip": '[ "$1" = install ] && for last; do :; done && [ -f "$last/pyproject.toml" ]',
    }.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    for name in ["python", "pyproject.toml", "tools", "demo", "benchmark", "configs", "examples"]:
        (place / name).symlink_to(ROOT / name)
    paths = [str(ROOT / "python/compat"), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    own = {"HOME": str(place), "XDG_CONFIG_HOME": str(place / "config")}
    own["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    own["PATH"] = os.pathsep.join([str(programs), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-euc", line], env=os.environ | own, cwd=place, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"


def told(message):
    """A message without the class of its exception."""
    return re.sub(r"^(\w+\.)*\w*(Error|Unsupported): ", "", message)


RAISED = {one.shown for one in pages.examples(TROUBLESHOOTING)}
SHOWN = [block for block in pages.blocks.of_document(TROUBLESHOOTING) if block.language == "text"]
# What `DEBUG` and the name of a variable take, which are values in the sources.
VALUES = 24


@pytest.mark.parametrize("block", SHOWN, ids=lambda block: f"line {block.line}")
def test_each_message_is_one_of_the_sources(block):
    message = told(block.source)
    assert pages.is_said(message), message
    if block.source not in RAISED:
        # No example raises it, so that the sources have to say all of it.
        assert len(pages.unexplained(message)) <= VALUES, pages.unexplained(message)


def test_messages_that_nobody_raises_are_noticed():
    wrong = "the flux capacitor of ... is empty: fill it and start again"
    assert not pages.is_said(wrong) and len(pages.unexplained(wrong)) > VALUES
    assert pages.fits("a ... c", "a b\nb c") and not pages.fits("a ... c", "a c d") and pages.fits("...", "")


def test_every_class_of_exceptions_has_its_trouble(yr):
    text = TROUBLESHOOTING.read_text()
    bases = {"YirageError", "BackendError"}
    assert [name for name in yr.exceptions.__all__ if name not in bases and f"`{name}`" not in text] == []


@pytest.mark.parametrize("project", ["Mirage", "YiRage", "sageLLM", "InfiniLM", "vLLM"])
def test_both_sides_of_a_migration_are_shown(project):
    parts = re.split(r"^## ", MIGRATION.read_text(), flags=re.MULTILINE)
    (section,) = [part for part in parts if part.startswith(f"From {project}\n")]
    assert section.count("```text") >= 1 and section.count("```python") >= 1


def public(package):
    """What `import yirage` brings."""
    names = vars(package).items()
    return {name for name, value in names if not name.startswith("_") and not isinstance(value, types.ModuleType)}


def test_the_reference_has_every_public_name(yr):
    entries = {entry.name: entry for entry in reference.entries()}
    assert public(yr) <= set(entries)
    text = reference.page(list(entries.values()))
    for name in public(yr):
        assert f"\n### {name}\n" in text
        value = getattr(yr, name)
        if not isinstance(value, type):
            continue
        own = {member for member in vars(value) if not member.startswith("_")}
        missing = own - {member.name for member in entries[name].members}
        assert not missing, f"{name}: {missing}"


def test_the_reference_says_what_things_say_of_themselves(yr):
    entries = {entry.name: entry for entry in reference.entries()}
    assert "float32" in entries["KNGraph"].says
    assert entries["LLM"].signature.startswith("LLM(model")
    assert {"generate", "get_tokenizer", "close"} <= {member.name for member in entries["LLM"].members}
    assert {"linear_layer", "__call__"} <= {member.name for member in entries["PersistentKernel"].members}
    assert "Tokenizer" in entries and "Stream" not in entries, "what calls give, and nothing that only works inside"
    assert "LLM(\n    model: _Path,\n    *,\n" in reference.page(list(entries.values()))
    assert reference.laid_out("f(a: int) -> None") == "f(a: int) -> None"
    said = reference.markdown("A.\n\nArgs:\n    x, y: one\n        two\n\nRaises:\n    OptionError: where.")
    assert "- `x, y`: one\n    two" in said and "- `OptionError`: where." in said


def test_the_reference_can_be_made_without_the_package(yr):
    class Silent(reference.Spoken):
        def __init__(self):
            self.package = None

    entries = {entry.name: entry for entry in reference.entries(spoken=Silent())}
    assert public(yr) <= set(entries) and entries["LLM"].says.startswith("A model that is loaded.")


def test_links_lead_to_the_pages_of_the_site():
    for link, source, wanted in [
        ("docs/guide.md", "README.md", "guide.md"),
        ("../guide.md#a-b", "docs/python/guide.md", "../guide.md#a-b"),
        ("../../README.md", "docs/python/quickstart.md", "../index.md"),
        ("../../python/yirage/_yirage.pyi", "docs/python/guide.md", "reference.md"),
        ("#here", "docs/guide.md", "#here"),
        ("https://example.org/x", "docs/guide.md", "https://example.org/x"),
        ("../Dockerfile", "docs/deployment.md", "R/blob/main/Dockerfile"),
        ("crates", "README.md", "R/tree/main/crates"),
    ]:
        assert hooks.target(link, source, "R") == wanted
    text = "[a](docs/cli.md) ![b](docs/pictures/terminal.svg)\n```\n[c](docs/cli.md)\n```\n[d](docs/cli.md)"
    wanted = "[a](cli.md) ![b](pictures/terminal.svg)\n```\n[c](docs/cli.md)\n```\n[d](cli.md)"
    assert hooks.rewritten(text, "README.md", "R") == wanted
    assert hooks.anchor("## `yirage run`: a first model".lstrip("#")) == "yirage-run-a-first-model"


def test_every_page_is_in_the_menu_and_every_entry_is_a_page():
    menu = set(re.findall(r"[\w/-]+\.md$", (ROOT / "mkdocs.yml").read_text().split("\nnav:\n")[1], re.MULTILINE))
    here = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert menu == here | set(hooks.OUTSIDE.values()) | {hooks.REFERENCE}
    assert all((ROOT / path).is_file() for path in hooks.OUTSIDE)


def cells():
    """The cells of the notebook that are code."""
    notebook = json.loads(NOTEBOOK.read_text())
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def test_the_notebook_has_no_outputs_and_prose_between_its_cells():
    notebook = json.loads(NOTEBOOK.read_text())
    assert notebook["nbformat"] == 4 and len(cells()) >= 6
    kinds = [cell["cell_type"] for cell in notebook["cells"]]
    assert kinds[0] == "markdown" and ("code", "code") not in set(zip(kinds, kinds[1:], strict=False))
    assert len({cell["id"] for cell in notebook["cells"]}) == len(kinds)
    for cell in notebook["cells"]:
        assert cell.get("outputs", []) == [] and cell.get("execution_count") is None


def test_the_notebook_runs_from_top_to_bottom(yr, place, monkeypatch, capsys):
    # Its folder is where a reader opens it.
    monkeypatch.chdir(NOTEBOOK.parent)
    if all(importlib.util.find_spec(name) for name in ["nbclient", "ipykernel"]):
        executed_by_jupyter()
        return
    namespace = {"__name__": "__main__"}
    for number, source in enumerate(cells(), 1):
        exec(compile(source, f"{NOTEBOOK.name}, code cell {number}", "exec"), namespace)  # noqa: S102 - it is for that
    assert capsys.readouterr().out, "its cells print something"


def executed_by_jupyter():
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(NOTEBOOK.parent)}}).execute()
    assert any(cell.outputs for cell in notebook.cells if cell.cell_type == "code"), "its cells print something"


def test_the_site_is_built_strictly_before_a_release():
    assert "mkdocs\" build --strict" in (ROOT / "tools/site/build.sh").read_text()
    assert "tools/site/build.sh" in (ROOT / ".ci/long").read_text()
