"""The file formats of an export, as options of a command."""

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Mapping
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError

from payments.export.bookkeeping import DECIMALS, DELIMITERS, Book, BookOptions, InvalidColumns, parse_columns
from payments.export.csv_files import FORMATS, Format
from payments.models import Organization
from payments.models.days import validate_time_zone


def add_format_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--format",
        choices=FORMATS,
        default="jsonl",
        help="JSON Lines (default), or CSV",
    )
    group = parser.add_argument_group("CSV for a bookkeeper", "these need --format csv")
    group.add_argument(
        "--columns", type=columns, metavar="id,createdAt,...", help="fields of a payment, refunded, fees or net"
    )
    group.add_argument("--decimal", choices=DECIMALS, help="between the digits of an amount (default: point)")
    group.add_argument("--delimiter", choices=DELIMITERS, help="between the columns (default: comma)")
    group.add_argument(
        "--time-zone",
        type=time_zone,
        metavar="ZONE",
        help="of the times (default: the zone of --organization, otherwise UTC)",
    )
    group.add_argument(
        "--totals",
        action="store_true",
        default=None,
        help="add the paid, refunded and net amount and the fees of succeeded payments by currency",
    )


def columns(text: str) -> list[str]:
    try:
        return parse_columns(text.split(","))
    except InvalidColumns as error:
        raise ArgumentTypeError(str(error)) from None


def time_zone(name: str) -> str:
    try:
        validate_time_zone(name)
    except ValidationError as error:
        raise ArgumentTypeError(error.message) from None
    return name


def requested_format(options: Mapping[str, Any], *, organization: Organization | None) -> Format | Book:
    """Return the format of the options.

    :raises CommandError: an option needs another one
    """
    names = ("columns", "decimal", "delimiter", "time_zone", "totals")
    values = {name: options[name] for name in names if options[name] is not None}
    if not values:
        return FORMATS[options["format"]]
    if options["format"] != "csv":
        raise CommandError(f"--{next(iter(values)).replace('_', '-')} needs --format csv.")
    default = organization.time_zone if organization else "UTC"
    return Book(BookOptions(**{"time_zone": default, **values}))
