"""The files that the documents name exist."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.api import Api
from tests.support.processes import ROOT

pytestmark = pytest.mark.once

DOCUMENTS = sorted(path for folder in (".", "benchmarks", "deploy", "docs/**") for path in ROOT.glob(f"{folder}/*.md"))

LINK = re.compile(r"\]\((?!https?://)([^)#]+)\)")
PATH = re.compile(r"`((?:benchmarks|deploy|docs|examples|payments|payments_site|scripts|tests)/[\w./-]*)`")
MODULE = re.compile(r"`([\w/]+\.py)`")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_files_that_a_document_names_exist(document: Path) -> None:
    text = document.read_text()
    module_names = {
        path.name
        for folder in ("examples", "payments", "payments_site", "tests")
        for path in (ROOT / folder).rglob("*.py")
    }

    missing = [link for link in LINK.findall(text) if not (document.parent / link).exists()]
    missing += [path for path in PATH.findall(text) if not (ROOT / path).exists()]
    missing += [name for name in MODULE.findall(text) if Path(name).name not in module_names | {"manage.py"}]

    assert missing == []


def test_all_documents_are_checked() -> None:
    assert {"README.md", "SECURITY.md", "CHANGELOG.md", "decisions.md", "reliability.md", "reference.md"} <= {
        document.name for document in DOCUMENTS
    }


def test_test_of_the_testing_guide_passes(api: Api) -> None:
    [block] = re.findall(r"```python\n(.*?)```", (ROOT / "docs/testing.md").read_text(), flags=re.DOTALL)
    names: dict[str, Any] = {}

    exec(block, names)  # noqa: S102

    [test] = [function for name, function in names.items() if name.startswith("test_")]
    test(api)
