"""Rules for the names and the imports of test modules."""

import ast
from pathlib import Path

from tests.support.processes import ROOT

NAME_LENGTH_MAX = 80

MODULES = sorted((ROOT / "tests").rglob("test_*.py"))


def test_names_of_tests_are_short() -> None:
    names = {name for module in MODULES for name in names_of_tests(module)}

    assert "test_names_of_tests_are_short" in names
    assert sorted(name for name in names if len(name) > NAME_LENGTH_MAX) == []


def test_no_test_module_imports_from_another() -> None:
    names = {module_name(module) for module in MODULES}

    imports = {(module_name(module), name) for module in MODULES for name in imported_names(module)}
    assert ("tests.support.test_placement", "tests.support.placement") in imports
    assert sorted((importer, name) for importer, name in imports if name in names) == []


def names_of_tests(module: Path) -> list[str]:
    """Return the names of the test functions of a module."""
    nodes = ast.walk(ast.parse(module.read_text()))
    return [node.name for node in nodes if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def imported_names(module: Path) -> set[str]:
    """Return the dotted names of the modules and objects that a module imports."""
    names = set()
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names
