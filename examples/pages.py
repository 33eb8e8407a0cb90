"""Reads saved pages of another system's API, and prints their records as JSON Lines for import_payments."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from members import InvalidMember

Record = dict[str, Any]
Convert = Callable[[Record, str], Record]


class Pages(NamedTuple):
    """The pages of an endpoint: its name, the records of a page, and the member of each record that has one value."""

    endpoint: str
    records: Callable[[Any], Any]
    member: str
    value: str

    def convert(self, convert: Convert, *, usage: str | None) -> None:
        """Print the records of the files in the program's arguments. Print nothing if one of them is invalid."""
        if len(sys.argv) < 3:  # noqa: PLR2004  the program, the organization and a file
            sys.exit(usage)
        organization, *files = sys.argv[1:]
        lines, errors = [], []
        for file in files:
            for number, record in enumerate(self.read(file), start=1):
                try:
                    lines.append(line_of(record, organization, convert))
                except InvalidMember as error:
                    errors.append(f"{printable(file)}: record {number}: {error}\n")
        if errors:
            sys.stderr.writelines(errors)
            sys.exit("Nothing was converted. Correct these records, or remove them from the files.")
        write(lines)

    def read(self, file: str) -> list[Record]:
        try:
            text = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
            return self.records_of(json.loads(text, parse_constant=refuse))
        except OSError as error:
            raise failure(file, str(error.strerror)) from None
        except (ValueError, RecursionError):
            raise failure(file, f"is not a page of {self.endpoint}") from None

    def records_of(self, page: Any) -> list[Record]:
        """Return the records of a page.

        :raises ValueError: the page has another form
        """
        try:
            records = self.records(page)
            if isinstance(records, list) and all(record[self.member] == self.value for record in records):
                return list(records)
        except (LookupError, TypeError):
            pass
        raise ValueError("another form")


def line_of(record: Record, organization: str, convert: Convert) -> str:
    """Return the converted record as a line of JSON.

    :raises InvalidMember: the record cannot be converted
    """
    try:
        return f"{json.dumps(convert(record, organization), allow_nan=False)}\n"
    except InvalidMember:
        raise
    except ValueError:
        raise InvalidMember("has a number that is too large") from None
    except RecursionError:
        raise InvalidMember("is nested too deeply") from None


def write(lines: list[str]) -> None:
    try:
        sys.stdout.writelines(lines)
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes stdout again at the end
        raise failure("stdout", str(error.strerror)) from None


def refuse(constant: str) -> NoReturn:
    raise ValueError(constant)  # NaN and Infinity are not JSON


def failure(file: str, reason: str) -> SystemExit:
    return SystemExit(f"{printable(file)}: {reason}")


def printable(file: str) -> str:
    """Return a file's name in a form that cannot control the terminal."""
    return file if file.isprintable() else ascii(file)
