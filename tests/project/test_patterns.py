"""Regular expressions that ignore case name the letters that they compare.

Without `re.ASCII`, `[A-Z]` matches four letters beyond ASCII, such as the Kelvin sign. Code that then expects ASCII
fails. A pattern that wants all letters says `re.UNICODE`.
"""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.support.processes import ROOT

pytestmark = pytest.mark.once

FOLDERS = ("payments", "payments_site", "tests", "benchmarks", "examples")

IGNORES_CASE, NAMES_LETTERS = {"IGNORECASE", "I"}, {"ASCII", "A", "UNICODE", "U"}
INLINE = re.compile(r"\(\?(?=[Lmsx]*i)[Limsx]+[:)-]")


def unclear_patterns(source: str) -> list[int]:
    """Return the lines of a module whose patterns ignore case and do not name their letters."""
    nodes = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.expr))
    return sorted(node.lineno for node in nodes if is_unclear(node))


def is_unclear(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and INLINE.search(node.value) is not None
    if not isinstance(node, ast.Call):
        return False
    return any(
        names & IGNORES_CASE and not names & NAMES_LETTERS
        for argument in (*node.args, *(keyword.value for keyword in node.keywords))
        if (names := set(flags_of(argument)))
    )


def flags_of(argument: ast.expr) -> Iterator[str]:
    """Yield the names of the flags of `re` that an argument combines."""
    match argument:
        case ast.BinOp(left=left, right=right):
            yield from (*flags_of(left), *flags_of(right))
        case ast.Attribute(value=ast.Name(id="re"), attr=name):
            yield name


def test_patterns_that_ignore_case_name_their_letters() -> None:
    modules = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py") if "node_modules" not in path.parts]

    unclear = {str(path.relative_to(ROOT)): unclear_patterns(path.read_text()) for path in modules}

    assert "payments/ingest/cards/details.py" in unclear
    assert {path: lines for path, lines in unclear.items() if lines} == {}


def test_pattern_without_its_letters_is_noticed() -> None:
    source = """
re.compile("a", re.IGNORECASE)
re.sub("a", "", text, flags=re.MULTILINE | re.I)
re.compile("(?{flag})a")
re.compile("a", re.ASCII | re.IGNORECASE)
re.compile("a")
"""

    assert unclear_patterns(source.format(flag="i")) == [2, 3, 4]
