"""Pages for users: their blocks run from top to bottom in one namespace, as a reader would run them.

A block of text right behind a block of Python is what that prints; its last line is the exception where it raises one.
In such text `...` stands for anything, also for whole lines. Other blocks of text show what is no program of ours.
"""

import contextlib
import dataclasses
import functools
import io
import re
import traceback

from conftest import ROOT
from documents import blocks

FOLDER = ROOT / "docs/python"
README = ROOT / "README.md"
PAGES = sorted(FOLDER.glob("*.md"))


@dataclasses.dataclass(frozen=True)
class Example:
    """A block of Python, and what stands behind it, if something does."""

    path: object
    line: int
    source: str
    shown: str | None

    @property
    def name(self):
        return f"{self.path.stem}:{self.line}"

    @property
    def needs_torch(self):
        return re.search(r"^import torch\b", self.source, re.MULTILINE) is not None

    def run(self, namespace):
        """Runs it, and says what is wrong with its outcome: nothing, or the lines for people."""
        said = io.StringIO()
        raised = None
        # Lines of tracebacks are those of the page.
        code = compile("\n" * self.line + self.source, str(self.path), "exec")
        with contextlib.redirect_stdout(said):
            try:
                exec(code, namespace)  # noqa: S102 - that is what it is for
            except Exception as error:  # noqa: BLE001 - each is compared with the page
                raised = error
        told = said.getvalue()
        if raised is not None:
            told += "".join(traceback.format_exception_only(raised))
        if raised is not None and self.shown is None:
            return f"{self.name}: it raises and the page shows nothing\n" + "".join(traceback.format_exception(raised))
        if self.shown is not None and not fits(self.shown.strip(), told.strip()):
            return f"{self.name}\nshown:\n{self.shown}\nis:\n{told}"
        return None


def examples(path):
    """The blocks of Python of a page, in order."""
    found = blocks.of_document(path)
    lines = path.read_text(encoding="utf-8").splitlines()
    made = []
    for block, following in zip(found, [*found[1:], None], strict=True):
        if block.language != "python":
            continue
        shown = None
        if following is not None and following.language == "text":
            # The line numbers of a block are those of its fence, from 1.
            between = lines[block.line + block.source.count("\n") + 1 : following.line - 1]
            shown = following.source if not any(line.strip() for line in between) else None
        made.append(Example(path, block.line, block.source, shown))
    return made


def shell(path):
    """The lines of the blocks of a page that are for a shell, each with its place."""
    found = [block for block in blocks.of_document(path) if block.language == "sh"]
    lines = [(block, line) for block in found for line in block.source.splitlines() if line.strip()]
    return [(f"{path.stem}:{block.line}", line) for block, line in lines]


def fits(pattern, text):
    """Whether `text` is `pattern` with each `...` replaced by something."""
    return re.fullmatch(".*?".join(map(re.escape, pattern.split("..."))), text, re.DOTALL) is not None


PLACE = re.compile(r"\{[^{}]*\}")
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')
# Letters of a message that are the program's own, and not the caller's.
LEAST = 16


@functools.cache
def messages():
    """The texts of the sources that are long enough to be told apart, cut where values enter them."""
    found = set()
    for path in [*ROOT.glob("crates/*/src/**/*.rs"), *ROOT.glob("python/yirage/*.py")]:
        # A text over several lines is one.
        text = re.sub(r"\\\n\s*", "", path.read_text(encoding="utf-8"))
        for literal in LITERAL.findall(text):
            parts = tuple(PLACE.split(literal.replace('\\"', '"')))
            if " " in literal and sum(map(len, parts)) >= LEAST:
                found.add(parts)
    return found


def is_said(message):
    """Whether a text of the sources makes such a message, or a part of it."""
    for parts in messages():
        if max(parts, key=len) in message and re.search(".*?".join(map(re.escape, parts)), message, re.DOTALL):
            return True
    return False


def unexplained(message):
    """What is left of a message without values when all that the sources say is taken away."""
    parts = {part for text in messages() for part in text if len(part) >= 8 and part in message}
    for part in sorted(parts, key=len, reverse=True):
        message = message.replace(part, "")
    return message.replace("...", "").strip()
