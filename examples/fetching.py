"""Reads the payments of a provider's API, and writes those that are new or changed to stdout or to a service.

A run reads the payments that were created since the last run or in the days before it, and older ones that changed. It
writes a payment once. The first run reads all payments.
"""

import argparse
import os
import re
import signal
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from apis import Api, Failure, Parameters, address
from members import InvalidMember, Members
from outputs import Output
from pages import Pages, Record, printable
from state_file import State

REFUSED_MAX = 1000
PART_RECORDS = 100


class Page(NamedTuple):
    """Records of a list, and the cursor of the next page; None on the last one."""

    records: list[Record]
    cursor: str | None


class Provider(ABC):
    """An API that lists payments, newest first."""

    name: ClassVar[str]
    url: ClassVar[str]
    key_name: ClassVar[str]  # the variable that has the key
    url_name: ClassVar[str]  # the variable that may have another URL
    headers: ClassVar[Mapping[str, str]] = {}
    days: ClassVar[int]  # the default of --days

    def __init__(self) -> None:
        self.api = Api(self.name, self.url_from_environment(), self.key_name, self.headers)

    def url_from_environment(self) -> str:
        try:
            return address(os.environ.get(self.url_name) or self.url)
        except ValueError:
            raise Failure(f"Set {self.url_name} to a URL such as {self.url}, or leave it out.") from None

    @staticmethod
    @abstractmethod
    def convert(record: Record, organization: str, /) -> Record:
        """Return the payment as a record of import_payments."""

    @abstractmethod
    def pages(self, since: datetime | None, cursor: str | None) -> Iterator[Page]:
        """Yield pages from the cursor, until a page has payments that were created before this time."""

    @abstractmethod
    def changes(self, until: datetime, since: datetime) -> dict[str, Record | None] | None:
        """Return the IDs of payments that may have changed after the last run; None if the API has forgotten them.

        A payment has its record if the list has it. Payments that were created after `since` may be left out.
        """

    @abstractmethod
    def payment(self, id_: str) -> Record | None:
        """Return a payment; None if it does not exist."""

    def read(self, pages: Pages, path: str, parameters: Parameters) -> tuple[Any, list[Record]]:
        """Return a page and its records."""
        page = self.api.get(path, parameters)
        try:
            records = pages.records_of(page)
            if all(isinstance(record.get("id"), str) for record in records):
                return page, records
        except ValueError:
            pass
        raise Failure(f"{self.name}: GET {path} did not return a page of {pages.endpoint}.")


def fetch(provider: Provider, state: State, output: Output, *, days: int) -> set[str]:
    """Write new and changed payments, then move the state. Return the IDs of payments that were refused.

    A service confirms the payments. Without one, the state moves at the end if all payments were converted.
    """
    since = None if state.until is None or state.cursor else state.until - timedelta(days=days)
    changed = provider.changes(state.until, since) if since and state.until else {}
    if changed is None:
        since, changed = None, {}
    until = state.until if state.cursor else None
    pending = {**dict.fromkeys(state.refused), **changed}
    refused: set[str] = set()
    for page in provider.pages(since, state.cursor):
        until = until or provider.api.now
        if until is None:
            raise Failure(f"{provider.name} sends no Date.")
        refused |= checked(output.write(page.records), refused)
        for record in page.records:
            pending.pop(record["id"], None)
        if since is None and output.service and page.cursor:
            state.save(until, cursor=page.cursor, refused=refused | (state.refused & pending.keys()))
    for records in pending_records(provider, pending):
        refused |= checked(output.write(records), refused)
    if until and (output.service or not refused):
        state.save(until, refused=refused)
    return refused


def checked(refused: set[str], earlier: set[str]) -> set[str]:
    if len(refused | earlier) > REFUSED_MAX:
        reason = "Check --organization, and the organization and the mode of the key in PAYMENTS_KEY."
        raise Failure(f"More than {REFUSED_MAX} payments were refused. {reason}")
    return refused


def pending_records(provider: Provider, pending: Mapping[str, Record | None]) -> Iterator[list[Record]]:
    """Yield the payments in parts. A payment that does not exist any more is left out."""
    ids = list(pending)
    for start in range(0, len(ids), PART_RECORDS):
        records = {id_: pending[id_] or provider.payment(id_) for id_ in ids[start : start + PART_RECORDS]}
        for id_, record in records.items():
            if record is None:
                sys.stderr.write(f"{provider.name}: {printable(id_)}: does not exist any more\n")
            elif Members(record).get("id", str) != id_:
                raise Failure(f"{provider.name} returned another payment than {printable(id_)}.")
        yield [record for record in records.values() if record]


def organization(value: str) -> str:
    if not re.fullmatch("[1-9][0-9]{0,18}", value):
        raise ValueError(value)
    return value


def days(value: str) -> int:
    if not re.fullmatch("[1-9][0-9]{0,3}", value):
        raise ValueError(value)
    return int(value)


def read_options(kind: type[Provider], usage: str | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=usage, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--organization", type=organization, required=True, metavar="ID", help="gets the payments")
    parser.add_argument("--state", type=Path, required=True, metavar="FILE", help="has the position of the last run")
    parser.add_argument("--send", type=address, metavar="URL", help="of the service; without it, write to stdout")
    again = f"read the payments of so many days before the last run again (default: {kind.days})"
    parser.add_argument("--days", type=days, default=kind.days, metavar="N", help=again)
    return parser.parse_args()


def run(kind: type[Provider], usage: str | None) -> None:
    """Run the program."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    options = read_options(kind, usage)
    try:
        refused = run_once(kind, options)
    except (Failure, InvalidMember) as error:
        sys.exit(str(error) if isinstance(error, Failure) else f"{kind.name}: {error}")
    except OSError as error:
        sys.exit(f"{printable(str(options.state))} cannot be used: {error.strerror}.")
    if refused:
        sys.exit(f"Refused payments: {len(refused)}. Later runs try them again.")


def run_once(kind: type[Provider], options: argparse.Namespace) -> set[str]:
    provider = kind()
    service = Api("The service", options.send, "PAYMENTS_KEY") if options.send else None
    mode = "test" if "test" in provider.api.token.split("_")[:2] else "live"
    source = f"{kind.name} ({mode}), organization {options.organization}, {options.send or 'stdout'}"
    state = State(options.state, source)
    with state.locked():
        state.load()
        return fetch(provider, state, Output(kind.name, kind.convert, options.organization, service), days=options.days)
