#!/usr/bin/env python3
"""The reference of the Python package as a page: every public name with its signature and what it says of itself.

Names come from `python/yirage/__init__.py`, signatures from the stubs of the native module and from the package's own
modules, all of them read and none of them imported. What the native module's classes say of themselves stands in the
module alone, so it is taken from the package where that is installed; without it the page has signatures.

    tools/site/reference.py > reference.md
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import pathlib
import re

PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "python/yirage"
NATIVE = "_yirage"
TITLES = {NATIVE: "Kernel graphs"}
INTRODUCTION = """\
# Python reference

`import yirage as yr` brings all of this; the sections are the modules that have it. Shapes are outermost first. Methods
that are not listed here are not part of the interface. How the parts are used together is in [the guide](guide.md), what
their errors mean in [troubleshooting](troubleshooting.md).
"""
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# Letters of a signature on one line.
WIDTH = 96
# Python's own methods that callers use by syntax.
BY_SYNTAX = {"__call__"}


@dataclasses.dataclass
class Entry:
    """A name: what it is, how it is written, what it says of itself, and what it has."""

    name: str
    kind: str
    module: str
    signature: str
    says: str = ""
    members: list[Entry] = dataclasses.field(default_factory=list)


class Sources:
    """The package's modules, parsed."""

    def __init__(self, package: pathlib.Path = PACKAGE) -> None:
        self.trees: dict[str, ast.Module] = {}
        for path in [*package.glob("*.py"), *package.glob("*.pyi")]:
            self.trees[path.stem] = ast.parse(path.read_text(encoding="utf-8"), str(path))

    def public(self) -> list[tuple[str, str]]:
        """Every public name with the module that offers it, in the order of modules."""
        found: list[tuple[str, str]] = []
        for line in self.trees["__init__"].body:
            if not isinstance(line, ast.ImportFrom):
                continue
            module = line.module
            for alias in line.names:
                if module is None:
                    continue  # a module of the package, whose names follow on their own
                names = self.exported(module) if alias.name == "*" else [alias.asname or alias.name]
                found += [(name, module) for name in names if not name.startswith("__")]
        return found

    def exported(self, module: str) -> list[str]:
        """What a module's `__all__` has."""
        for line in self.trees[module].body:
            if isinstance(line, ast.Assign) and any(ast.unparse(target) == "__all__" for target in line.targets):
                names: list[str] = ast.literal_eval(line.value)
                return names
        raise LookupError(f"{module} has no __all__")

    def definition(self, name: str, module: str) -> tuple[ast.stmt, str]:
        """Where a name is defined: imports and other names for it are followed."""
        for line in self.statements(module):
            if isinstance(line, (*FUNCTIONS, ast.ClassDef)) and line.name == name:
                return line, module
            if isinstance(line, ast.ImportFrom):
                for alias in line.names:
                    if (alias.asname or alias.name) == name and alias.name != "*" and line.level:
                        return self.definition(alias.name, line.module or alias.name)
            if isinstance(line, (ast.Assign, ast.AnnAssign)) and line.value is not None:
                targets = line.targets if isinstance(line, ast.Assign) else [line.target]
                if all(ast.unparse(target) != name for target in targets):
                    continue
                other = re.fullmatch(rf"{NATIVE}\.(\w+)", ast.unparse(line.value))
                return self.definition(other[1], NATIVE) if other else (line, module)
        raise LookupError(f"{module} has no {name}")

    def statements(self, module: str) -> list[ast.stmt]:
        """A module's statements; of what is there for those who check types alone, that."""
        found: list[ast.stmt] = []
        for line in self.trees[module].body:
            if isinstance(line, ast.If) and ast.unparse(line.test) == "TYPE_CHECKING":
                found += line.body
            else:
                found.append(line)
        return found

    def bases(self, node: ast.ClassDef, module: str) -> list[tuple[ast.ClassDef, str]]:
        """The classes of this package that a class is made of, nearest first."""
        found: list[tuple[ast.ClassDef, str]] = []
        for base in node.bases:
            words = ast.unparse(base).split(".")
            where = NATIVE if words[0] == NATIVE else module
            try:
                of, place = self.definition(words[-1], where)
            except LookupError:
                continue  # a class of Python's own
            if isinstance(of, ast.ClassDef):
                found += [(of, place), *self.bases(of, place)]
        return found


class Spoken:
    """What things say of themselves: the installed package, else the sources."""

    def __init__(self) -> None:
        try:
            self.package = importlib.import_module("yirage")
        except ImportError:
            self.package = None

    def of(self, module: str, path: str, node: ast.AST) -> str:
        """What stands at a path such as `KNGraph.matmul` of a module."""
        if self.package is not None:
            found: object = importlib.import_module(f"yirage.{module}")
            for name in path.split("."):
                found = inspect.getattr_static(found, name, None)
            # Without a text of its own a class would say what its base says.
            text = getattr(found, "__doc__", None)
            return inspect.cleandoc(text) if isinstance(text, str) else ""
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            return ast.get_docstring(node) or ""
        return ""


def entries(sources: Sources | None = None, spoken: Spoken | None = None) -> list[Entry]:
    """Every public name, then the classes that their calls give and that have no name of their own."""
    sources, spoken = sources or Sources(), spoken or Spoken()
    found = [entry_of(sources, spoken, name, module) for name, module in sources.public()]
    known = {entry.name for entry in found}
    at = 0
    while at < len(found):
        for name in given(found[at]):
            if name not in known and is_class(sources, name):
                found.append(entry_of(sources, spoken, name, NATIVE))
                known.add(name)
        at += 1
    return found


def is_class(sources: Sources, name: str) -> bool:
    return any(isinstance(line, ast.ClassDef) and line.name == name for line in sources.statements(NATIVE))


def given(entry: Entry) -> list[str]:
    """The names behind the arrows of an entry and its members."""
    texts = [one.signature for one in [entry, *entry.members]]
    return [name for text in texts for name in re.findall(r"\w+", text.rpartition(" -> ")[2] if " -> " in text else "")]


def entry_of(sources: Sources, spoken: Spoken, name: str, module: str) -> Entry:
    node, place = sources.definition(name, module)
    if isinstance(node, ast.ClassDef):
        return class_entry(sources, spoken, name, module, node, place)
    if isinstance(node, FUNCTIONS):
        return Entry(name, "function", module, f"{name}{arguments(node)}", spoken.of(place, node.name, node))
    return Entry(name, "constant", module, constant(name, node))


def constant(name: str, node: ast.stmt) -> str:
    if isinstance(node, ast.AnnAssign):
        return f"{name}: {ast.unparse(node.annotation)}"
    assert isinstance(node, ast.Assign)
    return f"{name} = {ast.unparse(node.value)}"


def class_entry(sources: Sources, spoken: Spoken, name: str, module: str, node: ast.ClassDef, place: str) -> Entry:
    made = Entry(name, "class", module, heading(node), spoken.of(place, node.name, node))
    family = [(node, place), *sources.bases(node, place)]
    makers = next(filter(None, (constructors(of) for of, _ in family)), [])
    if makers:
        made.signature = "\n".join(f"{name}{arguments(one, of_instance=True, gives=False)}" for one in makers)
    seen: set[str] = set()
    for of, where in family:
        members = [member_of(spoken, line, of.name, where) for line in of.body]
        for member in members:
            if member is not None and member.name not in seen:
                seen.add(member.name)
                made.members.append(member)
    return made


def constructors(node: ast.ClassDef) -> list[ast.FunctionDef]:
    return [line for line in node.body if isinstance(line, ast.FunctionDef) and line.name == "__init__"]


def heading(node: ast.ClassDef) -> str:
    """A class without a constructor of its own: with its fields where these are the constructor's arguments."""
    if any("dataclass" in ast.unparse(one) for one in node.decorator_list):
        fields = [ast.unparse(line) for line in node.body if isinstance(line, ast.AnnAssign)]
        return f"{node.name}({', '.join(field for field in fields if 'init=False' not in field)})"
    bases = ", ".join(ast.unparse(base) for base in node.bases)
    return f"class {node.name}({bases})" if bases else f"class {node.name}"


def member_of(spoken: Spoken, line: ast.stmt, owner: str, module: str) -> Entry | None:
    """A method, property, field or member of an enumeration; none for what is not public."""
    if isinstance(line, FUNCTIONS):
        if line.name.startswith("_") and line.name not in BY_SYNTAX:
            return None
        marks = {ast.unparse(mark) for mark in line.decorator_list}
        says = spoken.of(module, f"{owner}.{line.name}", line)
        if "property" in marks:
            gives = "" if line.returns is None else f": {ast.unparse(line.returns)}"
            return Entry(line.name, "property", module, f"{line.name}{gives}", says)
        return Entry(line.name, "method", module, f"{line.name}{arguments(line, 'staticmethod' not in marks)}", says)
    if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and not line.target.id.startswith("_"):
        return Entry(line.target.id, "field", module, ast.unparse(line))
    if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name):
        name = line.targets[0].id
        return None if name.startswith("_") else Entry(name, "field", module, ast.unparse(line))
    return None


def arguments(node: ast.FunctionDef | ast.AsyncFunctionDef, of_instance: bool = False, gives: bool = True) -> str:
    """Arguments and result as they are written, without `self`."""
    args = node.args
    if of_instance:
        own = [*args.posonlyargs, *args.args][:1]
        args = ast.arguments(
            posonlyargs=[one for one in args.posonlyargs if one not in own],
            args=[one for one in args.args if one not in own],
            vararg=args.vararg,
            kwonlyargs=args.kwonlyargs,
            kw_defaults=args.kw_defaults,
            kwarg=args.kwarg,
            defaults=args.defaults,
        )
    result = f" -> {ast.unparse(node.returns)}" if gives and node.returns is not None else ""
    return f"({ast.unparse(args)}){result}"


SECTION = re.compile(r"(Args|Arguments|Returns|Raises|Yields):$")
ITEM = re.compile(r"([\w*]+(?:, [\w*]+)*): (.*)$")


def markdown(says: str) -> str:
    """A docstring as Markdown: its sections are lists, whose items begin with names."""
    lines: list[str] = []
    inside = False
    for line in says.splitlines():
        depth = len(line) - len(line.lstrip())
        text = line.strip()
        if SECTION.fullmatch(text) and depth == 0:
            inside = True
            lines += ["", f"**{text[:-1]}**", ""]
        elif not inside or depth == 0:
            inside = inside and not text
            lines.append(text)
        elif depth == 4:
            item = ITEM.match(text)
            lines.append(f"- `{item[1]}`: {item[2]}" if item else f"- {text}")
        else:
            lines.append(f"    {text}")
    return "\n".join(lines).strip()


def page(found: list[Entry]) -> str:
    """The page."""
    sources = Sources()
    parts, section = [INTRODUCTION, kinds(sources)], None
    public = {name for name, _ in sources.public()}
    for entry in found:
        wanted = TITLES.get(entry.module, f"yirage.{entry.module}") if entry.name in public else "What calls give"
        if wanted != section:
            section = wanted
            parts.append(f"## {section}\n")
        parts.append(shown(entry))
    return "\n".join(parts)


def kinds(sources: Sources) -> str:
    """What the names that signatures have for kinds of arguments stand for."""
    lines = [line for line in sources.trees[NATIVE].body if isinstance(line, ast.AnnAssign) and line.value is not None]
    aliases = [line for line in lines if ast.unparse(line.annotation) == "TypeAlias"]
    named = [f"- `{ast.unparse(line.target)}`: `{ast.unparse(line.value)}`" for line in aliases if line.value]
    return "In signatures these stand for:\n\n" + "\n".join(named) + "\n"


def laid_out(signature: str) -> str:
    """A signature of one line, or with a line for each argument where that would be too long."""
    first, last = signature.find("("), signature.rfind(")")
    if len(signature) <= WIDTH or "\n" in signature or first < 0:
        return "\n".join(map(laid_out, signature.split("\n"))) if "\n" in signature else signature
    depth, begin, pieces = 0, first + 1, []
    for at in range(first + 1, last):
        depth += (signature[at] in "([{") - (signature[at] in ")]}")
        if signature[at] == "," and depth == 0:
            pieces.append(signature[begin:at].strip())
            begin = at + 1
    pieces.append(signature[begin:last].strip())
    return signature[: first + 1] + "\n" + "".join(f"    {piece},\n" for piece in pieces) + signature[last:]


def shown(entry: Entry) -> str:
    """An entry with its members, the fields of which stand together."""
    parts = [f"### {entry.name}\n", f"```python\n{laid_out(entry.signature)}\n```\n"]
    if entry.says:
        parts.append(markdown(entry.says) + "\n")
    fields = [one.signature for one in entry.members if one.kind == "field"]
    if fields and not entry.signature.startswith(f"{entry.name}("):
        parts.append("```python\n" + "\n".join(fields) + "\n```\n")
    for one in entry.members:
        if one.kind == "field":
            continue
        parts.append(f"#### {entry.name}.{one.name}\n\n```python\n{laid_out(one.signature)}\n```\n")
        if one.says:
            parts.append(markdown(one.says) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    print(page(entries()), end="")
