"""POST /v2/payments/imports: the bodies it takes, its limits, its errors, and who may send them."""

import gzip
import json
from contextlib import nullcontext
from typing import Any

import pytest
from django.db import DataError, OperationalError
from django.test import Client
from psycopg.errors import LockNotAvailable, NumericValueOutOfRange, QueryCanceled

from payments.api.errors import title
from payments.api.streams import BYTES_MAX, RECORDS_MAX
from payments.ingest.imports import OutcomeUnknown
from payments.models import ApiKey, ImportPart, ImportRun, KeyScope, Organization, Payment
from payments.runtime.hooks import Hook, Progress
from payments.runtime.process import process
from payments.runtime.time_limits import DeadlineExceeded
from tests.support.api import Api, key_text
from tests.support.factories import ApiKeyFactory, OrganizationFactory, PaymentFactory
from tests.support.hooks import registered
from tests.support.lines import CSV_CELLS, line, record
from tests.support.problem import problem

pytestmark = pytest.mark.also("citus")

IMPORTS = "/v2/payments/imports"
JSON, LINES, CSV = "application/json", "application/x-ndjson", "text/csv"
TYPES = "Content-Type must be application/x-ndjson, application/jsonl, application/json or text/csv, in UTF-8."
TOO_LARGE = "Send at most 10000 records and 16777216 bytes, both after decompression. Nothing was written."
INVALID = "Records are invalid, and nothing was written. Correct those in errors, and send all again."
RUNNING = "Another import is running. Send this one again after the seconds in Retry-After."
DAMAGED = "The body cannot be decompressed. Send it again."


def compressed(body: bytes) -> bytes:
    return gzip.compress(body, mtime=0)


ROW = ",".join(CSV_CELLS.values())
ONE_DOCUMENT = "Line 2 of the body: is not one JSON document. Several records are an array, or JSON Lines."
TABLE = f"{','.join(CSV_CELLS)}\n{ROW}\n".encode()


@pytest.fixture
def sender(client: Client, organization: Organization) -> Api:
    """A client with a key for imports."""
    return Api(client, ApiKeyFactory.create(organization=organization, scope=KeyScope.IMPORT, name="Shop"))


def post(api: Api, body: bytes = b"", content_type: str = LINES, /, **headers: str) -> Any:
    extra = {name.replace("_", "-"): value for name, value in headers.items()}
    # Django's client sends the type of an empty body only as a header.
    fields = api.authorization | {"Content-Type": content_type} | extra
    return api.client.generic("POST", IMPORTS, body, content_type, headers=fields)


def counts(response: Any) -> tuple[int, int, int]:
    assert response.status_code == 200, response.content
    document = response.json()
    return document["read"], document["written"], document["unchanged"]


def assert_problem(response: Any, status: int, detail: str, field: str | None = None) -> None:
    """Assert that the response is this error, and perhaps has findings."""
    document = {name: value for name, value in response.json().items() if name != "errors"}
    assert (response.status_code, response.headers["Content-Type"]) == (status, "application/problem+json")
    assert document == problem(status, title(status), detail, field=field)


def errors_of(response: Any) -> Any:
    assert_problem(response, 422, INVALID)
    return response.json()["errors"]


# Bodies


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        pytest.param(line(id="pt_1") + b"\n\n" + line(id="pt_2"), LINES, id="lines"),
        pytest.param(b"\xef\xbb\xbf" + line(id="pt_1") + b"\r\n" + line(id="pt_2") + b"\r\n", LINES, id="BOM and CRLF"),
        pytest.param(line(id="pt_1") + b"\n" + line(id="pt_2"), "application/jsonl; charset=UTF-8", id="jsonl"),
        pytest.param(b"[" + line(id="pt_1") + b",\n" + line(id="pt_2") + b"]", JSON, id="array"),
        pytest.param(json.dumps([record(id="pt_1"), record(id="pt_2"), {}], indent=2).encode(), JSON, id="indented"),
        pytest.param(
            b'{"count":2,"_embedded":{"payments":[' + line(id="pt_1") + b"," + line(id="pt_2") + b"]}}",
            'Application/JSON;charset="utf-8"',
            id="page",
        ),
        pytest.param(TABLE + ROW.replace("pt_1", "pt_2").encode(), "text/csv; header=present", id="CSV"),
        pytest.param((TABLE + ROW.replace("pt_1", "pt_2").encode()).replace(b",", b";"), CSV, id="semicolons"),
    ],
)
@pytest.mark.parametrize("encoding", ["", "gzip", "x-gzip", "identity"])
def test_body_is_imported(sender: Api, body: bytes, content_type: str, encoding: str) -> None:
    sent = compressed(body) if "gzip" in encoding else body
    headers = {"Content_Encoding": encoding} if encoding else {}

    response = post(sender, sent, content_type, **headers)

    assert response.json() == {
        "read": 2,
        "written": 2,
        "unchanged": 0,
        "_links": {"documentation": {"href": "http://testserver/docs/reference/#import-payments", "type": "text/html"}},
    }
    assert sorted(Payment.objects.values_list("id", flat=True)) == ["pt_1", "pt_2"]
    assert response.headers["Content-Type"] == "application/hal+json"
    assert response.headers["Cache-Control"] == "no-store"
    assert response.headers["Allow"] == "POST, OPTIONS"
    assert "ETag" not in response.headers


@pytest.mark.parametrize(
    ("body", "content_type"),
    [(b"", LINES), (b"\n \n", LINES), (b"", JSON), (b"[]", JSON), (b"[{}, {}]", JSON), (b"{}", JSON), (b"", CSV)],
)
def test_body_without_records_is_imported(sender: Api, body: bytes, content_type: str) -> None:
    assert counts(post(sender, body, content_type)) == (0, 0, 0)


def test_header_of_csv_alone_has_no_records(sender: Api) -> None:
    assert counts(post(sender, TABLE.partition(b"\n")[0], CSV)) == (0, 0, 0)


def test_repeated_body_changes_nothing(sender: Api) -> None:
    body = line(id="pt_1") + b"\n" + line(id="pt_2")

    assert counts(post(sender, body)) == (2, 2, 0)
    assert counts(post(sender, body)) == (2, 0, 2)
    assert counts(post(sender, body.replace(b"10.00", b"11.00"))) == (2, 2, 0)


def test_import_is_visible_to_the_next_request(sender: Api, api: Api) -> None:
    before = api.get("/v2/payments/changes", from_="now").json()["_links"]["later"]["href"]
    etag = api.get().headers["ETag"]

    post(sender, line(id="pt_1"))

    assert [payment["id"] for payment in api.follow(before).json()["_embedded"]["payments"]] == ["pt_1"]
    page = api.send("GET", "/v2/payments", If_None_Match=etag)
    assert page.status_code == 200
    post(sender, line(id="pt_1"))
    assert api.send("GET", "/v2/payments", If_None_Match=page.headers["ETag"]).status_code == 304


# Invalid bodies


@pytest.mark.parametrize(
    ("body", "content_type", "detail"),
    [
        (b"[1, 2]", JSON, "Line 1 of the body: expected a record here."),
        (b'"pt_1"', JSON, "Line 1 of the body: expected a record here."),
        (b"{}\n{}", JSON, ONE_DOCUMENT),
        (b"[{}]\n[{}]", JSON, ONE_DOCUMENT),
        (b'[{"id": "pt_1"}', JSON, "Line 1 of the body: the file ends before its array is closed."),
        (b'{"id": "pt_1"', JSON, "Line 1 of the body: the file ends in the middle of this record."),
        (b"[" + line() + b"]", LINES, "Line 1 of the body: is not JSON Lines. Write one JSON object on each line."),
        (b'{\n"id": "pt_1"}', LINES, "Line 1 of the body: is not JSON Lines. Write one JSON object on each line."),
        (TABLE, LINES, "Line 1 of the body: is not JSON Lines. Write one JSON object on each line."),
        (TABLE, JSON, "Line 1 of the body: expected a record here."),
        (line(), CSV, "Line 1 of the body: is not CSV. The first line must name the fields, such as id,mode."),
        (TABLE + b'"', CSV, None),
        (line().decode().encode("utf-16"), LINES, None),
        (compressed(line()), LINES, "The body is compressed. Send Content-Encoding: gzip."),
    ],
)
def test_body_of_another_form_is_refused(sender: Api, body: bytes, content_type: str, detail: str | None) -> None:
    response = post(sender, body, content_type)

    assert_problem(response, 400, detail or response.json()["detail"])
    assert not ImportRun.objects.exists()


COMPRESSED = compressed(line() * 100)


@pytest.mark.parametrize(
    "body", [COMPRESSED[:-5], COMPRESSED[:40], b"x", line(), COMPRESSED + b"x", COMPRESSED[:30] + b"\0" * 20]
)
def test_damaged_gzip_is_refused(sender: Api, body: bytes) -> None:
    assert_problem(post(sender, body, Content_Encoding="gzip"), 400, DAMAGED)


@pytest.mark.parametrize(
    "content_type",
    [
        *("", "*/*", "application/*", "text/plain", "application/xml", "application/x-www-form-urlencoded", "a" * 300),
        *("application/json; charset=latin-1", "text/csv;charset=utf-16", "multipart/form-data; boundary=a", "\xff"),
    ],
)
def test_other_media_type_is_refused(sender: Api, content_type: str) -> None:
    assert_problem(post(sender, line(), content_type), 415, TYPES)
    assert_problem(post(sender, b"", content_type), 415, TYPES)


@pytest.mark.parametrize("encoding", ["br", "deflate", "gzip, gzip", "zstd"])
def test_other_encoding_is_refused(sender: Api, encoding: str) -> None:
    response = post(sender, line(), Content_Encoding=encoding)

    assert_problem(response, 415, "Content-Encoding must be gzip, or absent.")
    assert response.headers["Accept-Encoding"] == "gzip"


def test_each_error_has_its_place(sender: Api) -> None:
    body = b"\n".join([line(id="pt_1"), b"", line(id="x", status="paid"), b"nonsense", line(id="pt_4", tip="1")])

    errors = errors_of(post(sender, body))

    assert [(error["line"], error["record"], error.get("field")) for error in errors] == [
        (3, 2, "id"),
        (3, 2, "status"),
        (4, 3, None),
        (5, 4, "tip"),
    ]
    assert errors[3]["detail"] == "is not a field of a record"
    assert not Payment.objects.exists()


def test_records_of_one_line_have_their_numbers(sender: Api) -> None:
    body = b"[{}, " + line(id="pt_1") + b", " + line(id="pt_2", status="paid") + b"]"

    [error] = errors_of(post(sender, body, JSON))

    assert (error["line"], error["record"]) == (1, 2)


def test_unknown_column_of_csv_is_a_finding(sender: Api) -> None:
    [error] = errors_of(post(sender, TABLE.replace(b"description", b"text"), CSV))

    assert error["line"] == 1
    assert error["detail"] == "columns are missing: description; columns are unknown: text"


@pytest.mark.parametrize("count", [100, 101, 250])
def test_errors_are_at_most_one_hundred(sender: Api, count: int) -> None:
    assert len(errors_of(post(sender, b"\n".join([line(status="paid")] * count)))) == 100


def test_card_numbers_are_not_repeated(sender: Api) -> None:
    response = post(sender, line(**{"4111 1111 1111 1111": "1", "description": "4111111111111111"}))

    assert len(errors_of(response)) == 2
    assert b"1111" not in response.content


# Limits


def test_most_records_are_imported(sender: Api) -> None:
    assert counts(post(sender, b"{}\n" * RECORDS_MAX)) == (0, 0, 0)


@pytest.mark.parametrize("start", [b"", line(status="paid") + b"\n"])
def test_more_records_are_refused_even_if_some_are_invalid(sender: Api, start: bytes) -> None:
    assert_problem(post(sender, start + (line() + b"\n") * (RECORDS_MAX + 1)), 413, TOO_LARGE)
    assert not ImportRun.objects.exists()


@pytest.mark.parametrize(("length", "status"), [(BYTES_MAX, 200), (BYTES_MAX + 1, 413)])
def test_longest_body_is_imported(sender: Api, length: int, status: int) -> None:
    body = b"\n" * length

    assert post(sender, body).status_code == status
    assert post(sender, compressed(body), Content_Encoding="gzip").status_code == status


def test_bomb_is_refused(sender: Api) -> None:
    bomb = compressed(b"\n" * 2**20) * 1000

    assert_problem(post(sender, bomb, Content_Encoding="gzip"), 413, TOO_LARGE)


def test_body_without_content_may_not_be_longer(sender: Api) -> None:
    empty = compressed(b"") * (BYTES_MAX // len(compressed(b"")) + 1)

    assert_problem(post(sender, empty, Content_Encoding="gzip"), 413, TOO_LARGE)


# Keys


def test_key_that_reads_cannot_import(api: Api) -> None:
    response = post(api, line())

    assert_problem(response, 403, "This needs an API key with the scope import.")
    challenge = 'Bearer realm="payments", error="insufficient_scope", scope="import"'
    assert response.headers["WWW-Authenticate"] == challenge
    assert not Payment.objects.exists()


@pytest.mark.parametrize("path", ["", "/changes", "/totals?from=x", "/pt_1"])
def test_key_that_imports_cannot_read(sender: Api, path: str) -> None:
    PaymentFactory.create(id="pt_1", organization=sender.key.organization)

    response = sender.send("GET", f"/v2/payments{path}")

    assert_problem(response, 403, "This needs an API key with the scope read.")
    challenge = 'Bearer realm="payments", error="insufficient_scope", scope="read"'
    assert response.headers["WWW-Authenticate"] == challenge


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "PATCH", "DELETE"])
def test_other_methods_are_refused_before_the_scope(sender: Api, api: Api, method: str) -> None:
    for each in (sender, api):
        response = each.send(method, IMPORTS)
        assert (response.status_code, response.headers["Allow"]) == (405, "POST, OPTIONS")
        if method != "HEAD":
            assert response.json()["detail"] == "Only POST and OPTIONS are allowed."


def test_options_needs_no_key(client: Client, sender: Api) -> None:
    for response in (client.options(IMPORTS), sender.send("OPTIONS", IMPORTS)):
        assert (response.status_code, response.headers["Allow"]) == (200, "POST, OPTIONS")
        assert response.json()["parses"] == [LINES, "application/jsonl", JSON, CSV]


@pytest.mark.parametrize("changes", [{"organizationId": "2"}, {"organizationId": "3"}, {"mode": "test"}])
def test_records_of_others_are_findings(sender: Api, changes: dict[str, str]) -> None:
    OrganizationFactory.create(id=2)

    [error] = errors_of(post(sender, line(id="pt_1") + b"\n" + line(id="pt_2", **changes)))

    [field] = changes
    other = "another organization" if field == "organizationId" else "the other mode"
    assert error == {"line": 2, "record": 2, "field": field, "detail": f"the API key belongs to {other}"}
    assert not Payment.objects.exists()
    assert list(ImportPart.objects.values_list("organization_id", "mode")) == [(1, "live")]


@pytest.mark.only("sqlite", "postgresql")  # with Citus, each organization has its own IDs
def test_payment_of_another_organization_is_not_taken_over(sender: Api) -> None:
    PaymentFactory.create(id="pt_1", organization=OrganizationFactory.create(id=2))

    [error] = errors_of(post(sender, line(id="pt_1")))

    assert error["field"] in {"organizationId", "id"}
    assert Payment.objects.get().organization_id == 2


# The order of the checks


def test_first_error_is_reported(sender: Api, api: Api) -> None:
    """Repair a request with all errors, one after the other."""
    request: dict[str, Any] = {"path": f"{IMPORTS}?x=1", "data": b"nonsense", "content_type": "text/plain"}
    headers = {"Accept": "text/css", "Authorization": "Bearer x", "Content-Encoding": "br"}
    repairs: list[tuple[int, dict[str, Any], dict[str, str]]] = [
        (406, {}, {"Accept": "*/*"}),
        (401, {}, api.authorization),
        (403, {}, sender.authorization),
        (400, {"path": IMPORTS}, {}),
        (429, {}, {}),
        (415, {"content_type": LINES}, {}),
        (415, {}, {"Content-Encoding": ""}),
        (400, {"data": line(status="paid")}, {}),
        (422, {}, {}),
    ]
    for status, changes, changed_headers in repairs:
        with process.shares.imports("another") if status == 429 else nullcontext():
            assert sender.client.generic("POST", **request, headers=headers).status_code == status
        request |= changes
        headers |= changed_headers


def test_parameters_are_refused(sender: Api) -> None:
    response = sender.client.post(f"{IMPORTS}?limit=1", line(), content_type=LINES, headers=sender.authorization)

    assert_problem(response, 400, "Unknown parameter.", field="limit")


def test_import_beside_another_one_of_the_worker_is_refused(sender: Api) -> None:
    with process.shares.imports("another"):
        response = post(sender, line())

    assert_problem(response, 429, RUNNING)
    assert response.headers["Retry-After"] == "1"
    assert not ImportRun.objects.exists()


# Errors of the database


class Failing(Hook):
    """Raises an error of the database after the records were written."""

    def __init__(self, error: Exception, cause: Exception | None = None) -> None:
        self.error = error
        self.error.__cause__ = cause

    def import_progressed(self, progress: Progress) -> None:
        raise self.error


@pytest.mark.parametrize(
    ("error", "cause", "status"),
    [
        (OperationalError("4111111111111111"), None, 503),
        (OperationalError("4111111111111111"), QueryCanceled(), 503),
        (OperationalError("4111111111111111"), LockNotAvailable(), 429),
        (DataError("4111111111111111"), NumericValueOutOfRange("4111111111111111"), 500),
        (DeadlineExceeded(), None, 503),
        (OutcomeUnknown(), None, 503),
    ],
)
def test_error_of_the_database_writes_nothing(
    sender: Api, caplog: pytest.LogCaptureFixture, error: Exception, cause: Exception | None, status: int
) -> None:
    sender.client.raise_request_exception = False
    with registered(Failing(error, cause)):
        response = post(sender, line())

    assert response.status_code == status
    assert ("Retry-After" in response.headers) == (status != 500)
    assert not Payment.objects.exists()
    assert [run.outcome for run in ImportRun.objects.all()] == ["failed"]
    if status == 500:
        assert "4111" not in caplog.text


# What staff see


def test_staff_see_the_import_with_the_name_of_the_key(sender: Api) -> None:
    post(sender, line(id="pt_1") + b"\n" + line(id="pt_2"))
    post(sender, line(status="paid"))

    values = ("way", "actor", "source", "outcome", "read", "created", "refused")
    assert list(ImportRun.objects.order_by("id").values_list(*values)) == [
        ("api", "Shop", "request", "succeeded", 2, 2, 0),
        ("api", "Shop", "request", "failed", 1, 0, 1),
    ]
    [message] = ImportRun.objects.latest("id").errors
    assert message.startswith("request:1: status: ")


def test_use_of_the_key_is_noted(sender: Api) -> None:
    ApiKey.objects.update(last_used_at=None)

    post(sender, line())

    assert ApiKey.objects.get(pk=sender.key.pk).last_used_at is not None
    assert key_text(sender.key) not in str(ImportRun.objects.values())
