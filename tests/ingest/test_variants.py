"""Records and files as other systems write them, each with the result of its import: tests/corpus/imports.

| key | |
|---|---|
| `why` | what the case is about |
| `changes` | the record differs in these members from `RECORD` |
| `text` | the content of the file, if it is not one record |
| `options` | options of the command |
| `becomes` | the exported record differs in these members from `RECORD`; null: the member is absent |
| `errors` | the messages of a refused file, with their line unless it is a single record |
| `ignored` | how many unknown fields were skipped |
"""

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from payments.models import Organization, Payment
from tests.support.lines import MISSING, RECORD, compact, export_payments, line

VARIANTS = [
    json.loads(text)
    for file in sorted((Path(__file__).parents[1] / "corpus/imports").glob("*.jsonl"))
    for text in file.read_text().splitlines()
]

ACCEPTED = [variant for variant in VARIANTS if "becomes" in variant]
REFUSED = [variant for variant in VARIANTS if "errors" in variant]


def file_of(variant: dict[str, Any], directory: Path) -> Path:
    file = directory / "payments"
    file.write_bytes(variant["text"].encode() if "text" in variant else compact(RECORD | variant["changes"]))
    return file


def why(variant: dict[str, Any]) -> str:
    return str(variant["why"])


def test_there_are_at_least_200_variants_with_one_result_each() -> None:
    assert len(VARIANTS) == len(ACCEPTED) + len(REFUSED) >= 200


@pytest.mark.parametrize("variant", ACCEPTED, ids=why)
def test_variant_is_accepted(
    variant: dict[str, Any], organization: Organization, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    call_command("import_payments", *variant.get("options", []), str(file_of(variant, tmp_path)))

    becomes = {name: MISSING if value is None else value for name, value in variant["becomes"].items()}
    assert list(export_payments(Payment.objects.all())) == [line(**becomes) + b"\n"]
    skipped = f" {variant['ignored']} unknown fields were skipped." if "ignored" in variant else ""
    [summary, *_next_steps] = capfd.readouterr().err.splitlines()
    assert summary == f"1 records read: 1 payments created, 0 changed, 0 unchanged, 0 refused.{skipped}"


@pytest.mark.once
@pytest.mark.parametrize("variant", REFUSED, ids=why)
def test_variant_is_refused(
    variant: dict[str, Any], organization: Organization, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = file_of(variant, tmp_path)

    with pytest.raises(CommandError, match=r"Nothing was changed\.$"):
        call_command("import_payments", *variant.get("options", []), str(file))

    start = file if "text" in variant else f"{file}:1"
    separator = ":" if "text" in variant else ": "
    assert capfd.readouterr().err.splitlines() == [f"{start}{separator}{error}" for error in variant["errors"]]
    assert not Payment.objects.exists()
