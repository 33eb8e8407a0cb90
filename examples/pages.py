"""Reads saved pages of another system's API, and prints their records as JSON Lines for import_payments."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

Record = dict[str, Any]


class Pages(NamedTuple):
    """The pages of an endpoint: its name, the records of a page, and the member of each record that has one value."""

    endpoint: str
    records: Callable[[Any], list[Record]]
    member: str
    value: str

    def convert(self, convert: Callable[[Record, str], Record], *, usage: str | None) -> None:
        """Print the records of the files in the program's arguments. Print nothing if one of them is invalid."""
        if len(sys.argv) < 3:  # noqa: PLR2004  the program, the organization and a file
            sys.exit(usage)
        organization, *files = sys.argv[1:]
        lines = []
        for file in files:
            for number, record in enumerate(self.read(file), start=1):
                try:
                    lines.append(f"{json.dumps(convert(record, organization))}\n")
                except Exception as error:  # noqa: BLE001  a record may have any form
                    raise failure(file, f"record {number} cannot be converted ({type(error).__name__})") from None
        sys.stdout.writelines(lines)

    def read(self, file: str) -> list[Record]:
        try:
            records = self.records(json.loads(Path(file).read_bytes()))
            if all(record[self.member] == self.value for record in records):
                return records
        except OSError as error:
            raise failure(file, str(error.strerror)) from None
        except (ValueError, LookupError, TypeError, RecursionError):  # not JSON, or another form
            pass
        raise failure(file, f"is not a page of {self.endpoint}")


def failure(file: str, reason: str) -> SystemExit:
    """Return the end of the program in one line, in which a file's name cannot control the terminal."""
    return SystemExit(f"{file if file.isprintable() else ascii(file)}: {reason}")
