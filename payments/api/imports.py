"""Imports over the API: a key of scope `import` sends the payments of its organization and mode."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http import HTTPStatus
from typing import Any

from django.db import Error, connection, transaction
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponseBase
from msgspec import UNSET
from rest_framework.exceptions import APIException, AuthenticationFailed, Throttled
from rest_framework.request import Request
from rest_framework.response import Response

from payments.access.keys import AuthenticatedKey
from payments.api import request_ids
from payments.api.base import PaymentsView
from payments.api.bodies import (
    Body,
    BodyNegotiation,
    CSVParser,
    JSONLinesParser,
    JSONLParser,
    JSONParser,
    UnsupportedType,
    is_compressed,
)
from payments.api.errors import NOT_STORED, Finding, Unavailable
from payments.api.parameters import parse_query, query_string
from payments.api.streams import LimitedStream, discard
from payments.conf import conf
from payments.database.limits import change_settings
from payments.hal import HTML, Link
from payments.ingest import ImportResult, import_payments
from payments.ingest.background import quick_switches
from payments.ingest.errors import FieldError, InvalidRecord, printable_name
from payments.ingest.formats.sources import InvalidHeader, Location
from payments.ingest.imports import OutcomeUnknown
from payments.ingest.recording import NotBegun, Origin
from payments.models import ApiKey, ImportWay, KeyScope
from payments.runtime import time_limits
from payments.runtime.database_errors import is_locked, is_outage, is_timeout
from payments.runtime.process import process
from payments.runtime.shares import NoPlace, NoThread
from payments.runtime.time_limits import DeadlineExceeded

FINDINGS_MAX = 100

# The words of a command's errors that name an option of the command.
OPTION = "; --"


class ImportRunning(Throttled, NotBegun):
    """Another import must end first: of the same key, of the same worker, or of the same payments."""

    default_detail = "Another import is running. Send this one again after the seconds in Retry-After."


class ImportTimeout(Unavailable):
    """The import took too long."""

    default_detail = "The import took too long, and nothing was written. Send fewer records at a time."


class ImportUnknown(Unavailable):
    """The database failed during the commit."""

    default_detail = "The database failed, so it is unknown whether the payments were written. Send them again."


class RefusedPayment(Exception):
    """The database refused a payment that the validation accepted: a bug."""


class InvalidRecords(APIException):
    """Records are invalid, so nothing was written."""

    status_code = HTTPStatus.UNPROCESSABLE_ENTITY
    default_detail = "Records are invalid, and nothing was written. Correct those in errors, and send all again."

    def __init__(self, errors: list[Finding]) -> None:
        super().__init__()
        self.errors = errors


class PaymentImports(PaymentsView):
    """Import payments. They are written together or not at all."""

    name = "Payment imports"
    http_method_names = ["post", "options"]
    key_scope = KeyScope.IMPORT
    parser_classes = [JSONLinesParser, JSONLParser, JSONParser, CSVParser]
    content_negotiation_class = BodyNegotiation

    def initialize_request(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Request:
        self.request_id = request_ids.assign(request.META)
        return super().initialize_request(request, *args, **kwargs)

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        if response.status_code >= HTTPStatus.BAD_REQUEST and response.status_code != HTTPStatus.REQUEST_TIMEOUT:
            discard(request._request)  # noqa: SLF001  DRF's documentation names it
        return super().finalize_response(request, response, *args, **kwargs)

    def post(self, request: Request, **kwargs: str) -> HttpResponseBase:
        key: Any = request.auth
        parse_query(query_string(request.META))  # refuses all parameters
        with only_import(key) as name, process.deadline.extended(conf.IMPORT_SECONDS_MAX), quick_switches():
            result = import_body(self.read_body(request), key, name=name)
        links = {"documentation": Link(self.links.section("import-payments"), HTML)}
        counts = {"read": result.read, "written": result.written, "unchanged": result.unchanged}
        return Response({**counts, "_links": links}, headers=NOT_STORED)

    def read_body(self, request: Request) -> Body:
        """Return the body. DRF's `request.data` would skip a body without a length.

        :raises APIException: it is not the body of an import
        """
        parser: Any = self.get_content_negotiator().select_parser(request, self.get_parsers())
        if parser is None:
            raise UnsupportedType
        http_request = request._request  # noqa: SLF001  DRF's documentation names it
        context = {"is_compressed": is_compressed(http_request)}
        body: Body = parser.parse(LimitedStream(http_request), parser_context=context)
        return body


@contextmanager
def only_import(key: AuthenticatedKey) -> Iterator[str]:
    """Occupy the place for imports of this worker, and yield the name of the key.

    :raises ImportRunning: another import is running
    """
    try:
        with process.shares.imports(key.digest):
            with refused_while_locked(), transaction.atomic():
                api_key = lock(key)
            if api_key is None:
                raise AuthenticationFailed("This API key is invalid.")  # it was revoked after the authentication
            yield api_key.name
    except NoThread:
        raise
    except NoPlace:
        raise ImportRunning from None


@contextmanager
def refused_while_locked() -> Iterator[None]:
    """Refuse an import that would have to wait.

    :raises ImportRunning: another transaction holds a lock
    """
    try:
        yield
    except Error as error:
        if is_locked(error):
            raise ImportRunning from error
        raise


def lock(key: AuthenticatedKey) -> ApiKey | None:
    """Return the key, if it is active, and lock it until the end of the transaction: no other machine can use it.

    On SQLite, the transaction has the only lock for writers already.

    :raises Error: another transaction has locked it
    """
    return ApiKey.objects.active(now=Now()).select_for_update(nowait=True).filter(pk=key.id).first()


def import_body(body: Body, key: AuthenticatedKey, *, name: str) -> ImportResult:
    """Import the records of a body.

    :raises InvalidRecords: records are invalid
    :raises ImportRunning: another import holds a lock
    :raises Unavailable: the database failed, or the time was not enough
    """
    refused: list[tuple[Location, FieldError]] = []
    origin = Origin(ImportWay.API, name, key.access, partial(begin, key))

    def refuse(location: Location, invalid: InvalidRecord) -> None:
        refused.extend((location, error) for error in invalid.errors[: FINDINGS_MAX - len(refused)])

    try:
        with refused_while_locked():
            result = import_payments([body.source], on_refused=refuse, origin=origin)
    except OutcomeUnknown as error:
        raise ImportUnknown from error
    except DeadlineExceeded:
        raise ImportTimeout from None
    except Error as error:
        if is_timeout(error):
            raise ImportTimeout from error
        if is_outage(error):
            raise
        # The text of the error may have the values of a record.
        raise RefusedPayment(type(error.__cause__).__name__) from None
    if refused:
        raise InvalidRecords(list(findings(refused, body)))
    return result


def begin(key: AuthenticatedKey) -> None:
    """Lock the key, and give each statement of the transaction the time of an import.

    :raises ImportRunning: another import of the key is running
    """
    with refused_while_locked():
        api_key = lock(key)
    if api_key is None:
        raise ImportRunning  # the next request learns why
    if connection.vendor == "postgresql":
        milliseconds = round(process.deadline.remaining_seconds * 1000)
        limits = {"statement_timeout": f"{milliseconds}ms", "lock_timeout": time_limits.LOCK.milliseconds}
        with connection.cursor() as cursor:
            change_settings(cursor, limits)


def findings(refused: list[tuple[Location, FieldError]], body: Body) -> Iterator[Finding]:
    """Yield the errors of records. The body is read again to count its records."""
    numbers: dict[tuple[int, int | None], int] = {}
    with suppress(InvalidHeader):  # there are no records then
        for number, raw in enumerate(body.records(), start=1):
            numbers[raw.location.line, raw.location.number] = number
    for location, (field, reason) in refused:
        record = numbers.get((location.line, location.number), UNSET)
        name = printable_name(field) if field else UNSET
        yield Finding(location.line, record, name, reason.partition(OPTION)[0])
