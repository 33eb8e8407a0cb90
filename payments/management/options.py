"""Options and argument types of the commands: what they select, the filters of the API's list, and file formats."""

import re
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError
from django.utils import timezone

from payments.export.bookkeeping import DECIMALS, DELIMITERS, Book, BookOptions, InvalidColumns, parse_columns
from payments.export.files import FORMATS, Format
from payments.listing.filters import (
    FILTERS,
    LIST_FILTERS,
    METADATA_PAIRS_MAX,
    SINGLE_FILTERS,
    InvalidSelection,
    parse_selection,
)
from payments.listing.query import select
from payments.models import Access, Mode, Organization, PaymentQuerySet
from payments.models.days import validate_time_zone

ADVICE = " ("  # begins advice for query strings


def add_organization_option(parser: ArgumentParser, *, subject: str) -> None:
    """Add `--organization ID`, which limits a command to one organization. The help calls the records `subject`."""
    parser.add_argument(
        "--organization", type=int, metavar="ID", help=f"only {subject} of this organization (default: all)"
    )


def add_access_options(parser: ArgumentParser) -> None:
    add_organization_option(parser, subject="payments")
    parser.add_argument("--mode", choices=Mode.values, help="only payments of this mode (default: both)")


def find_organization(organization_id: int) -> Organization:
    try:
        return Organization.objects.get(id=organization_id)
    except (Organization.DoesNotExist, OverflowError):
        next_step = f"To create it: manage.py create_organization {organization_id} --name NAME"
        raise CommandError(f"Organization {organization_id} does not exist. {next_step}") from None


def parse_day(text: str) -> datetime:
    """Return the start of a day in UTC. The text has the form YYYY-MM-DD."""
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        raise ArgumentTypeError(f"{text!r} is not a date such as 2026-01-31")
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a day of the calendar") from None


def parse_past_day(text: str) -> datetime:
    """Return the start of a day in UTC, which must not be in the future. The text has the form YYYY-MM-DD."""
    start = parse_day(text)
    if start > timezone.now():
        raise ArgumentTypeError(f"{text!r} is in the future")
    return start


def add_filter_options(parser: ArgumentParser) -> None:
    """Add an option per filter: `--status`, `--customer-id`, `--created-at-gte`, `--metadata KEY=VALUE`."""
    group = parser.add_argument_group(
        "filters", "filters of the API's list; a payment must match all; amounts need --currency"
    )
    for name in SINGLE_FILTERS:
        words = re.findall("[A-Z]?[a-z]+", name)
        filter_ = FILTERS[name]
        rule = filter_.rule.partition(ADVICE)[0]
        help_text = f"{filter_.effect}: {rule}"
        option = "--" + "-".join(words).lower()
        group.add_argument(option, dest=name, action="append", metavar=filter_.kind, help=help_text)
    group.add_argument(
        "--metadata",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help=f"metadata must contain this pair; repeat the option for up to {METADATA_PAIRS_MAX} pairs",
    )


def has_filter_options(options: Mapping[str, Any]) -> bool:
    return bool(options["metadata"]) or any(options[name] is not None for name in SINGLE_FILTERS)


def apply_filter_options(
    payments: PaymentQuerySet, options: Mapping[str, Any], *, access: Access | None
) -> PaymentQuerySet:
    """Return the payments that match the options. `access` is theirs, if they are of one organization and mode."""
    parameters = {}
    for name in SINGLE_FILTERS:
        if texts := options[name]:
            if len(texts) > 1 and name not in LIST_FILTERS:
                raise CommandError(f"{name} must occur only once.")
            parameters[name] = ",".join(texts)
    for pair in options["metadata"]:
        key, equals, value = pair.partition("=")
        name = f"metadata[{key}]"
        if not key or not equals or name in parameters:
            raise CommandError("--metadata must be KEY=VALUE. Use each key once.")
        parameters[name] = value
    try:
        selection = parse_selection(parameters)
    except InvalidSelection as error:
        raise CommandError(str(error).partition(ADVICE)[0].removesuffix(".") + ".") from None
    return select(payments, selection.filters, access=access)


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
    names = ("columns", "decimal", "delimiter", "time_zone", "totals")
    values = {name: options[name] for name in names if options[name] is not None}
    if not values:
        return FORMATS[options["format"]]
    if options["format"] != "csv":
        raise CommandError(f"--{next(iter(values)).replace('_', '-')} needs --format csv.")
    default = organization.time_zone if organization else "UTC"
    return Book(BookOptions(**{"time_zone": default, **values}))
