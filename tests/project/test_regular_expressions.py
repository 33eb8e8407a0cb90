"""Regular expressions mean the same in every supported Python."""

import re

import pytest

from tests.support.processes import ROOT

pytestmark = pytest.mark.once

POSSESSIVE_GROUP = re.compile(r"\)(?:[*+?]|\{[0-9,]+\})\+")

# The number of such groups in each file. They cannot fail after their start, or nothing can match after that.
HARMLESS = {"fast_path.py": 1, "json_documents.py": 2, "spreadsheets.py": 2}


def test_possessive_groups_are_harmless_before_python_3_11_5() -> None:
    """Elsewhere they match too much (CPython gh-106052). `(?>(?:...)*)` is correct in every version."""
    counts = {}
    for file in (*(ROOT / "payments").rglob("*.py"), *(ROOT / "payments_site").rglob("*.py")):
        code = re.sub(r"^ *# .*|  # .*", "", file.read_text(), flags=re.MULTILINE)
        if groups := POSSESSIVE_GROUP.findall(code):
            counts[file.name] = len(groups)

    assert counts == HARMLESS
