"""Regular expressions name the letters and digits that they compare.

If they ignore case without `re.ASCII`, `[A-Z]` matches four letters beyond ASCII, such as the Kelvin sign. A pattern
that wants all letters says `re.UNICODE`. The class of digits matches those of all scripts, and `isdigit` accepts some
that `int` refuses, such as a superscript. Code that then expects ASCII fails.
"""

import ast
import re
from collections.abc import Callable, Iterable, Iterator

import pytest

from tests.support.processes import ROOT

pytestmark = pytest.mark.once

FOLDERS = ("payments", "payments_site", "tests", "benchmarks", "examples")

IGNORES_CASE, NAMES_LETTERS = {"IGNORECASE", "I"}, {"ASCII", "A", "UNICODE", "U"}
SERVICE = ("payments", "payments_site")
ANY_DIGIT = re.compile(r"(?<!\\W)\\d")  # not in [^\W\d_], which is a letter
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
        case ast.Attribute(value=ast.Name(id="re"), attr=name) | ast.Name(id="IGNORECASE" as name):
            yield name


def loose_digits(source: str) -> list[int]:
    """Return the lines of a module that accept other digits than 0 to 9."""
    return sorted(node.lineno for node in ast.walk(ast.parse(source)) if isinstance(node, ast.expr) and is_loose(node))


def is_loose(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=str(text)):
            return ANY_DIGIT.search(text) is not None
        case ast.Attribute(attr="isdigit" | "isnumeric"):
            return True
    return False


def find_lines(find: Callable[[str], list[int]], folders: Iterable[str]) -> dict[str, list[int]]:
    """Return the lines that a function finds in the modules of some folders, by their paths."""
    modules = [path for folder in folders for path in (ROOT / folder).rglob("*.py") if "node_modules" not in path.parts]
    assert modules
    return {str(path.relative_to(ROOT)): lines for path in modules if (lines := find(path.read_text()))}


def test_patterns_that_ignore_case_name_their_letters() -> None:
    assert find_lines(unclear_patterns, FOLDERS) == {}


def test_service_accepts_no_digits_of_other_scripts_by_mistake() -> None:
    assert find_lines(loose_digits, SERVICE) == {}


def test_pattern_without_its_letters_is_noticed() -> None:
    source = """
re.compile("a", re.IGNORECASE)
re.sub("a", "", text, flags=re.MULTILINE | re.I)
re.compile("(?{flag})a")
RegexValidator("a", flags=IGNORECASE)
re.compile("a", re.ASCII | re.IGNORECASE)
re.compile("a")
"""

    assert unclear_patterns(source.format(flag="i")) == [2, 3, 4, 5]


def test_digits_of_other_scripts_are_noticed() -> None:
    source = r"""
re.compile(r"\d+")
re.compile(rf"{name}-\d+")
text.isdigit()
re.compile(r"[^\W\d_]|[0-9]")
text.isdecimal()
"""

    assert loose_digits(source) == [2, 3, 4]
