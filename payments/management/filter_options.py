"""The list's filters as a command's options."""

import re
from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandError

from payments.filters import FILTERS, METADATA_PAIRS_MAX, InvalidFilter, parse_selection
from payments.models import PaymentQuerySet

SIGNS = {"gte": ">=", "gt": ">", "lte": "<=", "lt": "<"}
NAMES = [name for name in FILTERS if name != "metadata"]


def add_filters(parser: ArgumentParser) -> None:
    """Add an option for each: `--status`, `--customer-id`, `--created-at-gte`, `--metadata KEY=VALUE`."""
    group = parser.add_argument_group(
        "filters", "those of the API's list; a payment must match all; amounts need --currency"
    )
    for name in NAMES:
        words = re.findall("[A-Z]?[a-z]+", name)
        metavar, described = described_value(name)
        group.add_argument("--" + "-".join(words).lower(), dest=name, metavar=metavar, help=described)
    group.add_argument(
        "--metadata",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help=f"what metadata must hold; for up to {METADATA_PAIRS_MAX} pairs, given again",
    )


def described_value(name: str) -> tuple[str, str]:
    """Return what an option's value is called, and what it must be and does."""
    must_be = FILTERS[name].must_be.partition(" (")[0]  # in brackets is what a query string takes beside
    field, _, bound = name.rstrip("]").partition("[")
    if not bound:
        return "WORDS", must_be
    metavar = "AMOUNT" if field == "amount" else "TIME"
    return metavar, f"{field} {SIGNS[bound]} {metavar}, {must_be}"


def filtered(payments: PaymentQuerySet, options: Mapping[str, Any]) -> PaymentQuerySet:
    """Return the payments that match the options.

    :raises CommandError: where one of them is wrong
    """
    given = {name: options[name] for name in NAMES if options[name] is not None}
    for pair in options["metadata"]:
        key, equals, value = pair.partition("=")
        if not key or not equals or f"metadata[{key}]" in given:
            raise CommandError("--metadata must be KEY=VALUE, each key once.")
        given[f"metadata[{key}]"] = value
    try:
        asked = parse_selection(given)
    except InvalidFilter as error:
        raise CommandError(str(error)) from None
    for _, each, values in asked.filters:
        payments = each.select(payments, values)
    return payments
