"""The stubs name what the module has, and nothing else."""

import ast
import pathlib

import yirage
from yirage import _yirage

STUB = pathlib.Path(yirage.__file__).with_name("_yirage.pyi")


def public(names):
    return {name for name in names if not name.startswith("__") and not (name.startswith("_") and name[1:2].isupper())}


def test_the_stubs_name_every_class_function_and_method():
    tree = ast.parse(STUB.read_text())
    defined = [node for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))]
    assert {node.name for node in defined} == public(vars(_yirage))
    for node in defined:
        if not isinstance(node, ast.ClassDef):
            continue
        members = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
        members |= {item.target.id for item in node.body if isinstance(item, ast.AnnAssign)}
        assert public(members) == public(vars(getattr(_yirage, node.name))), node.name


def test_members_and_exceptions_are_of_the_package():
    assert {"CPU", "CUDA", "MPS", "ASCEND", "CAMBRICON", "HYGON", "METAX", "MOORE", "ILUVATAR", "KUNLUN", "QY", "ALI", "AUTO"} <= set(
        yirage.BackendType.__members__
    )
    raised = [value for value in vars(yirage.exceptions).values() if isinstance(value, type)]
    assert len(raised) > 10 and all(issubclass(value, yirage.YirageError) for value in raised)


def test_checkers_of_types_see_the_backends_of_the_registry():
    tree = ast.parse(pathlib.Path(yirage.backends.__file__).read_text())
    (checked,) = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == "BackendType"]
    named = {line.targets[0].id: line.value.value for line in checked.body if isinstance(line, ast.Assign)}
    assert named == {name: member.value for name, member in yirage.BackendType.__members__.items()}
