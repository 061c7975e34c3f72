"""What mkdocs is told about this repository.

The pages of the site are the repository's own documents. Some lie outside of `docs`, links lead from it to sources, and
anchors are those of the repository's hosts: this file makes all of it one site, so that no document is written twice.
"""

from __future__ import annotations

import pathlib
import posixpath
import re
import tomllib
from typing import Any

# It lies beside this file, where mkdocs looks for what a hook imports.
import reference

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Documents outside of docs, with their places in the site.
OUTSIDE = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
REFERENCE = "python/reference.md"
# What the reference is made of: links to it lead to the reference.
STUBS = "python/yirage/_yirage.pyi"
LINK = re.compile(r"\]\(([^)\s]+)")


def repository() -> str:
    """The address of the sources, which the workspace's manifest has."""
    manifest = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))
    address: str = manifest["workspace"]["package"]["repository"]
    return address


def anchor(heading: str, separator: str = "-") -> str:
    """A heading's anchor, as `cargo xtask tidy` checks links: lower case, punctuation dropped."""
    kept = "".join(letter for letter in heading.strip().lower() if letter.isalnum() or letter in " -_")
    return kept.replace(" ", separator)


def place_of(path: str) -> str | None:
    """Where a file of the repository stands in the site; nowhere for sources."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return REFERENCE if path == STUBS else OUTSIDE.get(path)


def target(link: str, source: str, address: str) -> str:
    """A link of the document `source`, as it has to be in the site."""
    path, mark, heading = link.partition("#")
    if "://" in link or link.startswith("mailto:") or not path:
        return link
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    place = place_of(path)
    if place is None:
        kind = "tree" if (ROOT / path).is_dir() else "blob"
        return f"{address}/{kind}/main/{path}{mark}{heading}"
    return posixpath.relpath(place, posixpath.dirname(place_of(source) or "") or ".") + mark + heading


def rewritten(text: str, source: str, address: str) -> str:
    """A document with its links as they have to be in the site. What stands in blocks of code stays."""
    lines, fenced = [], False
    for line in text.split("\n"):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            line = LINK.sub(lambda found: f"]({target(found[1], source, address)}", line)
        lines.append(line)
    return "\n".join(lines)


def on_config(config: Any) -> Any:
    config["mdx_configs"].setdefault("toc", {})["slugify"] = anchor
    config["repo_url"], config["repo_name"] = repository(), "Sources"
    return config


def on_files(files: Any, config: Any) -> Any:
    from mkdocs.structure.files import File

    for path, place in OUTSIDE.items():
        files.append(File.generated(config, place, content=(ROOT / path).read_text(encoding="utf-8")))
    files.append(File.generated(config, REFERENCE, content=reference.page(reference.entries())))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    if page.file.src_uri == REFERENCE:
        return markdown
    outside = {place: path for path, place in OUTSIDE.items()}
    source = outside.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    return rewritten(markdown, source, config["repo_url"])
