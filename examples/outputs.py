"""Writes payments to stdout, or sends them to a service."""

import os
import stat
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus

from apis import Api, Failure
from members import InvalidMember
from pages import Convert, Record, failure, line_of, printable, write


@dataclass
class Output:
    """Writes payments to stdout or to a service."""

    name: str  # of the provider
    convert: Convert
    organization: str
    service: Api | None
    written: int = 0

    def write(self, records: Iterable[Record]) -> set[str]:
        """Write payments. Return the IDs of those that cannot be converted, or that the service refuses."""
        lines, refused = {}, set()
        for record in records:
            try:
                lines[record["id"]] = line_of(record, self.organization, self.convert)
            except InvalidMember as error:
                refused.add(record["id"])
                self.report(record["id"], str(error))
        if self.service:
            refused |= self.send(self.service, lines)
        else:
            print_lines(list(lines.values()))
        self.written += len(lines.keys() - refused)
        self.show_progress()
        return refused

    def send(self, service: Api, lines: dict[str, str]) -> set[str]:
        """Send lines. If the service refuses some, send the others. An import has no effect if it is repeated."""
        refused: set[str] = set()
        while left := [id_ for id_ in lines if id_ not in refused]:
            response = service.send("/v2/payments/imports", "".join(lines[id_] for id_ in left).encode())
            if response.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE and len(left) > 1:
                middle = len(left) // 2
                parts = [{id_: lines[id_] for id_ in part} for part in (left[:middle], left[middle:])]
                return refused.union(*(self.send(service, part) for part in parts))
            document = response.document if isinstance(response.document, dict) else {}
            if response.status == HTTPStatus.OK and document.get("read") == len(left):
                break
            findings = self.findings(response.status, document, left)
            if not findings:
                detail = "" if response.status == HTTPStatus.UNAUTHORIZED else document.get("detail", "Check --send.")
                raise Failure(f"{service.failure(response)} {printable(str(detail))}".rstrip())
            refused |= findings
        return refused

    def findings(self, status: int, document: Record, ids: list[str]) -> set[str]:
        """Report the service's findings. Return the IDs of the records that have one."""
        if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            self.report(ids[0], "is too large")
            return {ids[0]}
        errors = document.get("errors") if status == HTTPStatus.UNPROCESSABLE_ENTITY else []
        refused = set()
        with suppress(LookupError, TypeError):
            for error in errors or []:
                id_ = ids[error["record"] - 1]
                self.report(id_, ": ".join(str(error[name]) for name in ("field", "detail") if error.get(name)))
                refused.add(id_)
        return refused

    def report(self, id_: str, reason: str) -> None:
        sys.stderr.write(f"{self.name}: {printable(id_)}: {printable(reason)}\n")

    def show_progress(self) -> None:
        if sys.stderr.isatty():
            sys.stderr.write(f"{self.name}: {self.written} payments written\n")


def print_lines(lines: list[str]) -> None:
    """Write lines to stdout. A file has them, even if the machine fails then."""
    write(lines)
    try:
        if stat.S_ISREG(os.fstat(sys.stdout.fileno()).st_mode):
            os.fsync(sys.stdout.fileno())
    except OSError as error:
        raise failure("stdout", str(error.strerror)) from None
