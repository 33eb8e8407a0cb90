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
        """Print the records of the files in the program's arguments. Print nothing if one of them is not a page."""
        if len(sys.argv) < 3:  # noqa: PLR2004  the program, the organization and a file
            sys.exit(usage)
        organization, *files = sys.argv[1:]
        for records in list(map(self.read, files)):
            for record in records:
                print(json.dumps(convert(record, organization)))

    def read(self, file: str) -> list[Record]:
        try:
            records = self.records(json.loads(Path(file).read_bytes()))
            if all(record[self.member] == self.value for record in records):
                return records
        except OSError as error:
            sys.exit(f"{file}: {error.strerror}")
        except (ValueError, LookupError, TypeError):  # not JSON, or another form
            pass
        sys.exit(f"{file}: is not a page of {self.endpoint}")
