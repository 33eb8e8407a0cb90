"""Creates payments and API keys for tests in this process. A process of manage.py would take a second to start."""

from collections.abc import Iterable
from typing import NoReturn

from payments.ingest import import_payments
from payments.ingest.errors import InvalidRecord
from payments.ingest.imports import ImportResult
from payments.ingest.sources import Location
from payments.models import ApiKey, Organization
from tests.support.lines import source


def store(lines: Iterable[bytes]) -> ImportResult:
    """Import records and create missing organizations. Every record must be valid."""
    return import_payments([source(b"\n".join(lines))], on_refused=fail, create_organizations=True)


def fail(location: Location, error: InvalidRecord) -> NoReturn:
    raise AssertionError(f"{location}: {error}")


def issue_key(*, organization: int, mode: str) -> str:
    """Create an API key and return it."""
    _, text = ApiKey.objects.issue(Organization.objects.get(id=organization), mode=mode, name="Tests")
    return text
