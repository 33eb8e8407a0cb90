"""An unexpected exception costs one record, and its text, which may contain a card number, appears nowhere.

No known record raises one. So these tests let functions of Python and msgspec fail that the import calls.
"""

from collections.abc import Callable
from io import BufferedReader, BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import msgspec
import pytest
from django.core.management import CommandError, call_command

from payments.ingest import Source, import_payments, validation
from payments.ingest.formats import api_pages
from payments.models import Organization, Payment
from tests.support.lines import CSV_CELLS, compact, line, record
from tests.support.sql import execute

pytestmark = [pytest.mark.django_db, pytest.mark.once]

NUMBER = "4242424242424242"


def failing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function, but it fails if its first argument contains `bug`."""

    def call(value: Any, *arguments: Any, **options: Any) -> Any:
        if b"bug" in (value.encode() if isinstance(value, str) else bytes(value)):
            raise ArithmeticError(NUMBER)
        return function(value, *arguments, **options)

    return call


def json_lines(*urls: str) -> bytes:
    lines = (line(id=f"pt_{number}", webhookUrl=f"https://{url}") for number, url in enumerate(urls))
    return b"\n".join(line[:-1] + b" }" for line in lines)  # not in canonical form


def csv_rows(*orders: str) -> bytes:
    rows = [{**CSV_CELLS, "id": f"pt_{number}", "metadata": order} for number, order in enumerate(orders)]
    return "\n".join([",".join(rows[0]), *(",".join(row.values()) for row in rows)]).encode()


def pages(*ids: str) -> bytes:
    return b"\n".join(compact({"_embedded": {"payments": [record(id=payment_id)]}}) for payment_id in ids)


class Case(NamedTuple):
    """A function that fails, a file whose second record contains `bug`, and the line of this record."""

    module: ModuleType
    function: str
    content: bytes
    line: int


CASES = {
    "the validation": Case(validation, "urlsplit", json_lines("a", "bug", "c"), 2),
    "a row of CSV": Case(msgspec.json, "decode", csv_rows("{}", "bug", "{}"), 3),
    "a page": Case(api_pages, "decode_list", pages("pt_0", "pt_bug", "pt_2"), 2),
}


@pytest.fixture(params=CASES.values(), ids=list(CASES))
def message(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let the function of a case fail, and return the message of the second record. The file is `payments`."""
    case: Case = request.param
    (tmp_path / "payments").write_bytes(case.content)
    monkeypatch.setattr(case.module, case.function, failing(getattr(case.module, case.function)))
    return f"{tmp_path}/payments:{case.line}: cannot be read\n"


@pytest.mark.usefixtures("organization")
@pytest.mark.parametrize("options", [[], ["--keep-going"]], ids=["all or nothing", "keep going"])
def test_unexpected_exception_costs_one_record_and_repeats_nothing(
    message: str,
    options: list[str],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    with pytest.raises(CommandError, match="3 records read"):
        call_command("import_payments", *options, str(tmp_path / "payments"))

    output = capfd.readouterr().err
    assert message in output
    assert NUMBER not in output + caplog.text
    assert sorted(Payment.objects.values_list("id", flat=True)) == (["pt_0", "pt_2"] if options else [])
    [entry] = caplog.records
    assert entry.getMessage().startswith("A record cannot be read: ArithmeticError at payments.ingest.")
    assert entry.exc_info is None


class FailingStream(BytesIO):
    """A stream that fails at its end."""

    def __init__(self, content: bytes, error: Exception) -> None:
        super().__init__(content)
        self.error = error

    def readinto(self, buffer: Any) -> int:
        if not (count := super().readinto(buffer)):
            raise self.error
        return count


def load(error: Exception) -> list[str]:
    errors: list[str] = []
    stream = FailingStream(line() + b"\n" + line(id="pt_2") + b"\n", error)
    import_payments(
        [Source("f", BufferedReader(stream))],
        on_refused=lambda place, error: errors.append(f"{place}: {error}"),
        keep_going=True,
    )
    return errors


@pytest.mark.parametrize("error", [ValueError(NUMBER), RecursionError(NUMBER)])
def test_unexpected_exception_of_a_file_costs_the_rest_of_it(organization: Organization, error: Exception) -> None:
    assert load(error) == ["f:1: cannot be read any further"]


def test_lack_of_memory_is_not_the_fault_of_a_record(organization: Organization) -> None:
    with pytest.raises(MemoryError):
        load(MemoryError())


@pytest.mark.only("sqlite", "postgresql")
def test_payment_that_the_database_refuses_is_reported_without_its_values(
    organization: Organization, tmp_path: Path
) -> None:
    """The text of PostgreSQL has the whole row."""
    execute("CREATE UNIQUE INDEX unexpected ON payments_payment (description)")
    file = tmp_path / "payments"
    file.write_bytes(b"\n".join(line(id=f"pt_{number}", description="Ann Baker") for number in range(2)))

    with pytest.raises(CommandError, match=r"^The database refused a payment, and nothing was changed: \w+\. Report"):
        call_command("import_payments", str(file))

    assert not Payment.objects.exists()
