"""Blocks of code in documents."""

import dataclasses
import pathlib
import re
import textwrap

FENCE = re.compile(r"^\s*```(\S*)\s*$")


@dataclasses.dataclass(frozen=True)
class Block:
    """A block with its place: the document, which of its blocks, and the line above it."""

    document: str
    number: int
    line: int
    language: str
    source: str

    @property
    def name(self):
        return f"{self.document}-{self.number:02}-{self.language or 'text'}"

    @property
    def is_code(self):
        return bool(self.language)


def of_document(path: pathlib.Path):
    """The blocks of a document, in order."""
    blocks, language, lines, began = [], None, [], 0
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        fence = FENCE.match(line)
        if fence is None:
            if language is not None:
                lines.append(line)
        elif language is None:
            language, lines, began = fence[1].lower(), [], number
        else:
            source = textwrap.dedent("\n".join(lines)) + "\n"
            blocks.append(Block(path.stem.split("_")[0], len(blocks) + 1, began, language, source))
            language = None
    assert language is None, f"{path}:{began}: a block without an end"
    return blocks


def statements(source):
    """The statements of a block of Python; of one with prompts what stands behind them."""
    lines = source.splitlines()
    if not any(line.startswith(">>>") for line in lines):
        return source
    prompted = [line[4:] for line in lines if line.startswith((">>>", "..."))]
    return "\n".join(prompted) + "\n"
